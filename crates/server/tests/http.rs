//! What is answered over HTTP, by the service as it is served.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use protocol::sandbox::{LayerStatus, SandboxStatus, Tier};
use serde_json::{Value, json};
use server::About;
use store::{Append, Event, Seq, Store, StoreError, StreamName};
use tower::ServiceExt as _;

/// A store that has seven events, or has failed.
struct Counted(Result<u64, StoreError>);

impl Store for Counted {
    async fn append(&self, _: Vec<Append>) -> Result<Vec<Seq>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn read(&self, _: &StreamName, _: Seq, _: usize) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.0.clone()
    }
}

fn about() -> About {
    About {
        version: "1.2.3".into(),
        workspace: "/home/ada/<script>".into(),
        sandbox: SandboxStatus {
            tier: Tier::Walls,
            minimum: Tier::Walls,
            layers: vec![LayerStatus {
                name: "landlock".into(),
                available: true,
                detail: "ABI 5".into(),
                hint: None,
            }],
        },
        store: "/home/ada/.local/share/ward/ward.db".into(),
    }
}

async fn ask(store: Counted, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server::router(about(), store, ([127, 0, 0, 1], 3000).into())
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
}

async fn text(response: Response<Body>) -> String {
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The failure, after checking that it names its own status.
async fn failure(response: Response<Body>) -> Value {
    let status = response.status().as_u16();
    let failure: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(failure["code"], status);
    failure
}

const HERE: (&str, &str) = ("host", "localhost:3000");

#[tokio::test]
async fn health_is_told_to_programs() {
    let response = ask(Counted(Ok(7)), "GET", "/healthz", &[HERE]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        serde_json::from_str::<Value>(&text(response).await).unwrap(),
        json!({
            "status": "ok",
            "version": "1.2.3",
            "workspace": "/home/ada/<script>",
            "sandbox": {
                "tier": "walls",
                "minimum": "walls",
                "layers": [{"name": "landlock", "available": true, "detail": "ABI 5"}],
            },
            "store": {"path": "/home/ada/.local/share/ward/ward.db", "events": 7},
        })
    );
}

#[tokio::test]
async fn curl_gets_text() {
    let response = ask(Counted(Ok(7)), "GET", "/", &[HERE, ("accept", "*/*")]).await;
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; charset=utf-8"
    );
    insta::assert_snapshot!(text(response).await);
}

#[tokio::test]
async fn a_browser_gets_a_page_that_can_fetch_nothing() {
    let accept = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let response = ask(Counted(Ok(7)), "GET", "/", &[HERE, accept]).await;
    assert_eq!(
        response.headers()["content-type"],
        "text/html; charset=utf-8"
    );
    let policy = response.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"));
    let page = text(response).await;
    assert!(page.contains("/home/ada/&lt;script&gt;"));
    for outside in ["<script", "src=", "href=", "url(", "@import", "style=\""] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[tokio::test]
async fn every_failure_has_the_one_shape() {
    assert_eq!(
        failure(ask(Counted(Ok(7)), "GET", "/nowhere", &[HERE]).await).await,
        json!({
            "error": "There is nothing at `/nowhere`. `GET /` says what is there.",
            "code": 404,
            "kind": "not_found",
        })
    );
    let response = ask(Counted(Ok(7)), "POST", "/healthz", &[HERE]).await;
    assert_eq!(response.headers()["allow"], "GET,HEAD");
    assert_eq!(
        failure(response).await,
        json!({
            "error": "`/healthz` does not take POST; the `Allow` header says what it takes.",
            "code": 405,
            "kind": "method_not_allowed",
        })
    );
    let broken = Counted(Err(StoreError::Failed("disk I/O error".into())));
    assert_eq!(
        failure(ask(broken, "GET", "/healthz", &[HERE]).await).await["kind"],
        "internal"
    );
}

#[tokio::test]
async fn a_request_for_another_host_is_refused_before_anything_looks_at_it() {
    for path in ["/", "/healthz", "/nowhere"] {
        let host = ("host", "evil.example:3000");
        let failure = failure(ask(Counted(Ok(7)), "GET", path, &[host]).await).await;
        assert_eq!(failure["code"], 403);
        assert_eq!(failure["kind"], "wrong_host");
    }
}
