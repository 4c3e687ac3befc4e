//! The page: what it says to whom, and that it fetches nothing.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use axum::body::Body;
use support::Ward;

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

#[tokio::test]
async fn curl_gets_text() {
    let ward = Ward::start().await;
    let answer = ward.get("/", &ward.token).await;
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    insta::assert_snapshot!(answer.body);
}

#[tokio::test]
async fn a_browser_gets_a_page_that_can_fetch_nothing() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), BROWSER];
    let answer = ward.send("GET", "/", &headers, Body::empty()).await;
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"));
    assert!(answer.body.contains("/home/ada/&lt;script&gt;"));
    for outside in ["<script", "src=", "href=", "url(", "@import", "style=\""] {
        assert!(!answer.body.contains(outside), "{outside}");
    }
}

#[tokio::test]
async fn a_stranger_is_told_how_to_sign_in_and_nothing_about_this_machine() {
    let ward = Ward::start().await;
    for headers in [
        &[BROWSER][..],
        &[("accept", "*/*")],
        &[("cookie", "ward=x")],
    ] {
        let answer = ward.send("GET", "/", headers, Body::empty()).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("1.2.3"));
        assert!(!answer.body.contains("/home/ada"), "{}", answer.body);
        assert!(!answer.body.contains("landlock"), "{}", answer.body);
    }
}
