//! What the other side may do wrong, what it is told, and that the stream goes on.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use protocol::{ErrorKind, Failure};
use rpc::Limits;
use serde_json::{Value, json};
use support::{Setup, setup};
use tokio::io::AsyncWriteExt as _;

fn start() -> Setup {
    setup(
        Limits {
            frame: 1_000,
            ..Limits::default()
        },
        1 << 20,
    )
}

/// The code, the kind and the id of the error that comes next, and that the stream goes on.
async fn refused(it: &mut Setup) -> (Value, Value, Value) {
    let error = it.raw.receive().await.unwrap();
    it.raw.ask("next", "echo", json!({})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": "next", "result": {}})
    );
    (
        error["id"].clone(),
        error["error"]["code"].clone(),
        error["error"]["data"]["kind"].clone(),
    )
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_parse_error() {
    let mut it = start();
    it.raw.send_text("{\"jsonrpc\":").await;
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32700), json!("parse_error"))
    );
    it.raw.send_text("").await;
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32700), json!("parse_error"))
    );
}

#[tokio::test]
async fn a_header_that_cannot_be_read_is_a_parse_error() {
    let mut it = start();
    it.raw
        .stream
        .write_all(b"Content-Length: lots\r\n\r\n{\"jsonrpc\":\"2.0\"}")
        .await
        .unwrap();
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32700), json!("parse_error"))
    );
}

#[tokio::test]
async fn a_batch_is_refused_as_an_invalid_request() {
    let mut it = start();
    it.raw
        .send(json!([{"jsonrpc": "2.0", "id": 1, "method": "echo"}]))
        .await;
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32600), json!("invalid_request"))
    );
}

#[tokio::test]
async fn an_invalid_request_is_refused_under_its_id() {
    let mut it = start();
    it.raw.send(json!({"id": 4, "method": "echo"})).await;
    assert_eq!(
        refused(&mut it).await,
        (json!(4), json!(-32600), json!("invalid_request"))
    );
    it.raw
        .send(json!({"jsonrpc": "2.0", "id": [4], "method": "echo"}))
        .await;
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32600), json!("invalid_request"))
    );
}

#[tokio::test]
async fn an_id_that_is_still_under_way_cannot_be_used_again() {
    let mut it = start();
    it.raw.ask(1, "wait", json!(["a"])).await;
    it.raw.ask(1, "wait", json!(["b"])).await;
    assert_eq!(
        refused(&mut it).await,
        (json!(1), json!(-32600), json!("invalid_request"))
    );
    assert_eq!(it.bench.log.lines(), ["started a"]);
    it.bench.gate.add_permits(1);
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": "a"})
    );
    // Answered, it is free again.
    it.raw.ask(1, "echo", json!({})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_under_its_id() {
    let mut it = start();
    // The members in the order in which clients write them.
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"echo","params":["{}"]}}"#,
        "x".repeat(5_000)
    );
    it.raw.send_text(&large).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32600,
            "message": "The frame has 5054 bytes, and the limit is 1000. Send less at once.",
            "data": {"kind": "frame_too_large", "length": 5054, "limit": 1000}}})
    );
    it.raw.send_text(&"[".repeat(2_000)).await;
    assert_eq!(
        refused(&mut it).await,
        (Value::Null, json!(-32600), json!("frame_too_large"))
    );
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_the_call() {
    let mut it = start();
    let remote = it.bench.remote.clone();
    let call = tokio::spawn(async move { remote.call::<_, Value>("big", &json!({})).await });
    it.raw.receive().await.unwrap();
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":"{}"}}"#,
        "x".repeat(2_000)
    );
    it.raw.send_text(&large).await;
    assert_eq!(
        call.await.unwrap(),
        Err(Failure::new(
            ErrorKind::FrameTooLarge,
            "The frame has 2036 bytes, and the limit is 1000. Send less at once."
        )
        .with("length", 2036)
        .with("limit", 1000))
    );
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_passed_over() {
    let mut it = start();
    it.raw
        .send(json!({"jsonrpc": "2.0", "id": 77, "result": 1}))
        .await;
    it.raw
        .send(json!({"jsonrpc": "2.0", "id": "x", "result": 1}))
        .await;
    it.raw
        .send(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}))
        .await;
    it.raw.ask(1, "echo", json!({})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_told_with_the_method() {
    let mut it = start();
    it.raw.ask(1, "wait", json!({"no": "list"})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602,
            "message": "The parameters of `wait` do not fit: invalid type: map, expected a sequence at line 1 column 0.",
            "data": {"kind": "invalid_params"}}})
    );
}
