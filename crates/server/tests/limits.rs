//! What is too large, too slow, too much or not what was asked for is refused with a sentence.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use support::{JSON, Ward};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_or_not_it_says_so() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), JSON];
    let large = || Bytes::from(vec![b' '; 8 * 1024 * 1024 + 1]);
    let answer = ward.send("POST", "/actions", &headers, large()).await;
    assert_eq!(answer.failure(), (413, "too_large".into()));
    let pieces = stream::iter([Ok::<_, Infallible>(large())]);
    let unannounced = Body::from_stream(pieces);
    let answer = ward.send("POST", "/actions", &headers, unannounced).await;
    assert_eq!(answer.failure(), (413, "too_large".into()));
}

#[tokio::test]
async fn what_is_sent_has_to_be_json() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let token = ("authorization", &*bearer);
    let body = json!({"action": "fs.read", "wait": 0}).to_string();
    for headers in [
        &[token][..],
        &[token, ("content-type", "text/plain")],
        &[token, ("content-type", "application/x-www-form-urlencoded")],
        &[token, ("content-type", "application/jsonp")],
    ] {
        let answer = ward.send("POST", "/actions", headers, body.clone()).await;
        assert_eq!(answer.failure(), (415, "wrong_content_type".into()));
    }
    let form = [token, ("content-type", "text/plain")];
    for path in ["/actions/a/cancel", "/login", "/logout"] {
        let answer = ward.send("POST", path, &form, "x").await;
        assert_eq!(answer.failure(), (415, "wrong_content_type".into()));
    }
    let utf8 = [token, ("content-type", "Application/JSON; charset=utf-8")];
    let answer = ward.send("POST", "/actions", &utf8, body).await;
    assert_eq!(answer.status, 202);
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_told_what_does_not() {
    let ward = Ward::start().await;
    let refused = [
        ("", 400, "parse_error"),
        ("{", 400, "parse_error"),
        ("[]", 400, "invalid_params"),
        ("{} {}", 400, "invalid_params"),
        (r#"{"action": "fs.read"} x"#, 400, "parse_error"),
        (r#"{"action": 1}"#, 400, "invalid_params"),
        (
            r#"{"action": "fs.read", "extra": 1}"#,
            400,
            "invalid_params",
        ),
        (
            r#"{"action": "fs.read", "wait": -1}"#,
            400,
            "invalid_params",
        ),
        (
            r#"{"action": "fs.read", "wait": 3601}"#,
            400,
            "invalid_params",
        ),
        (
            r#"{"action": "fs.read", "mode": "root"}"#,
            400,
            "invalid_params",
        ),
        (
            r#"{"action": "fs.read", "runtime": 7}"#,
            400,
            "invalid_params",
        ),
        (
            r#"{"action": "fs.read", "id": "../x"}"#,
            400,
            "invalid_params",
        ),
        (r#"{"action": "fs.nothing"}"#, 404, "unknown_action"),
        (
            r#"{"action": "fs.read", "role": "nobody"}"#,
            404,
            "unknown_role",
        ),
        (
            r#"{"action": "fs.read", "workspace": "/nowhere"}"#,
            404,
            "not_a_directory",
        ),
        (
            r#"{"action": "fs.read", "workspace": "here"}"#,
            404,
            "not_a_directory",
        ),
    ];
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), JSON];
    for (body, code, kind) in refused {
        let answer = ward.send("POST", "/actions", &headers, body).await;
        assert_eq!(answer.failure(), (code, kind.into()), "{body}");
    }
    let deep = format!(
        r#"{{"action": "fs.read", "params": {}"#,
        "[".repeat(100_000)
    );
    let answer = ward.send("POST", "/actions", &headers, deep).await;
    assert_eq!(answer.failure().0, 400);
    let unreadable: &[u8] = b"{\"action\": \"\xff\"}";
    let answer = ward.send("POST", "/actions", &headers, unreadable).await;
    assert_eq!(answer.failure(), (400, "parse_error".into()));
}

#[tokio::test]
async fn a_query_and_an_id_that_do_not_fit_are_refused() {
    let ward = Ward::start().await;
    for (path, code, kind) in [
        ("/ledger?limit=0", 400, "invalid_params"),
        ("/ledger?limit=1001", 400, "invalid_params"),
        ("/ledger?last=5&after=1", 400, "invalid_params"),
        ("/ledger?after=-1", 400, "invalid_params"),
        ("/ledger?kind=nothing", 400, "invalid_params"),
        ("/ledger?limit=1&limit=2", 400, "invalid_params"),
        ("/ledger?lmit=1", 400, "invalid_params"),
        ("/ledger/events?from=x", 400, "invalid_params"),
        ("/approvals/events?front=maybe", 400, "invalid_params"),
        ("/roles?workspace=nowhere", 404, "not_a_directory"),
        ("/actions/%2e%2e%2fx", 404, "unknown"),
        ("/actions/%ff", 400, "invalid_params"),
        ("/approvals/none", 404, "unknown"),
        ("/actions/", 404, "not_found"),
    ] {
        let answer = ward.get(path, &ward.token).await;
        assert_eq!(answer.failure(), (code, kind.into()), "{path}");
    }
    let answer = ward.get("/ledger/events?from=x", &ward.token).await;
    let said = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("The query does not fit: ") && !said.contains("deserialize"),
        "{said}"
    );
    let bearer = format!("Bearer {}", ward.token);
    let headers = [("authorization", &*bearer), ("last-event-id", "x")];
    let answer = ward
        .send("GET", "/ledger/events", &headers, Body::empty())
        .await;
    assert_eq!(answer.failure(), (400, "invalid_params".into()));
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let ward = Ward::start().await;
    let mut stream = tokio::net::TcpStream::connect(ward.address).await.unwrap();
    let start = "GET / HTTP/1.1\r\nhost: localhost\r\nx: ";
    stream.write_all(start.as_bytes()).await.unwrap();
    // Ward may hang up before all of it is written.
    let _ = stream.write_all(&[b'x'; 128 * 1024]).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
}

#[tokio::test]
async fn one_actor_cannot_have_all_places() {
    let ward = Ward::start().await;
    let (_, agent) = ward.agent();
    let mut open = Vec::new();
    for number in 0..128 {
        let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 0, "id": number.to_string()});
        assert_eq!(ward.post("/actions", &agent, &body).await.status, 202);
        let path = format!("/actions/{number}/events");
        open.push(ward.follow(&path, &agent, None).await);
    }
    let answer = ward.get("/actions/1/events", &agent).await;
    assert_eq!(answer.failure(), (503, "busy".into()));
    assert_eq!(ward.get("/grants", &ward.token).await.status, 200);
    // Who goes makes room.
    open.clear();
    let ended = async {
        while ward
            .post("/actions", &agent, &json!({"action": "fs.read", "wait": 1}))
            .await
            .status
            == 503
        {}
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), ended)
        .await
        .unwrap();
}
