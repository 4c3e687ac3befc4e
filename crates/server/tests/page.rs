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
    assert!(!policy.contains("unsafe"));
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    if answer.body.contains("/assets/") {
        return the_chat_page(&ward, policy, &answer.body).await;
    }
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(answer.body.contains("/home/ada/&lt;script&gt;"));
    for outside in ["<script", "src=", "href=", "url(", "@import", "style=\""] {
        assert!(!answer.body.contains(outside), "{outside}");
    }
}

/// Where the chat page is built in: it has nothing but its own parts, and those are there to keep.
async fn the_chat_page(ward: &Ward, policy: &str, body: &str) {
    for part in [
        "script-src 'self';",
        "connect-src 'self';",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    for outside in ["//", "<style", "style=\"", "{{"] {
        assert!(!body.contains(outside), "{outside}");
    }
    let named: Vec<&str> = body
        .split(['"', ' '])
        .filter(|word| word.starts_with("/assets/"))
        .collect();
    assert!(named.len() >= 2, "{body}");
    for path in named {
        let answer = ward.send("GET", path, &[], Body::empty()).await;
        assert_eq!(answer.status, 200, "{path}");
        let kept = answer.headers["cache-control"].to_str().unwrap();
        assert!(kept.contains("immutable"), "{kept}");
        let etag = answer.headers["etag"].to_str().unwrap();
        let again = [("if-none-match", etag)];
        let again = ward.send("GET", path, &again, Body::empty()).await;
        assert_eq!(again.status, 304, "{path}");
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
