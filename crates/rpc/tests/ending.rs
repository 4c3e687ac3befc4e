//! However a connection ends, nothing is left running and nobody is left waiting.

mod support;

use std::time::Duration;

use protocol::ErrorKind;
use rpc::{End, Limits};
use serde_json::{Value, json};
use support::{Setup, setup, until_idle};
use tokio::io::AsyncWriteExt as _;

fn start() -> Setup {
    setup(Limits::default(), 1 << 20)
}

#[tokio::test(start_paused = true)]
async fn end_of_input_cancels_what_is_under_way_and_fails_what_was_asked() {
    let mut it = start();
    it.raw.ask(1, "wait", json!(["a"])).await;
    it.raw.ask(2, "heed", json!({})).await;
    let remote = it.bench.remote.clone();
    let call = tokio::spawn(async move { remote.call::<_, Value>("x", &json!({})).await });
    it.raw.receive().await.unwrap();
    it.raw.stream.shutdown().await.unwrap();

    // What was under way is still answered, because the other half is open.
    let mut answers = Vec::new();
    while let Some(answer) = it.raw.receive().await {
        answers.push((answer["id"].clone(), answer["error"]["code"].clone()));
    }
    assert_eq!(
        answers,
        [(json!(1), json!(-32800)), (json!(2), json!(-32800))]
    );
    assert!(matches!(it.running.await.unwrap(), End::EndOfInput));
    assert_eq!(
        it.bench.log.lines(),
        ["started a", "started heed", "dropped a", "put away"]
    );
    assert_eq!(
        call.await.unwrap().unwrap_err().kind,
        ErrorKind::Disconnected
    );
    // And so does whatever is asked or told later.
    let later = it.bench.remote.call::<_, Value>("x", &json!({})).await;
    assert_eq!(later.unwrap_err().kind, ErrorKind::Disconnected);
    let later = it.bench.remote.notify("x", &json!({})).await;
    assert_eq!(later.unwrap_err().kind, ErrorKind::Disconnected);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_ends_is_dropped_after_the_grace() {
    let mut it = start();
    it.raw.ask(1, "stubborn", json!({})).await;
    until_idle().await;
    let before = tokio::time::Instant::now();
    it.raw.stream.shutdown().await.unwrap();
    assert!(matches!(it.running.await.unwrap(), End::EndOfInput));
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(3));
    assert_eq!(it.bench.log.lines(), ["dropped stubborn"]);
}

#[tokio::test]
async fn a_stream_that_ends_within_a_frame_is_told_apart() {
    let mut it = start();
    it.raw
        .stream
        .write_all(b"Content-Length: 10\r\n\r\n{}")
        .await
        .unwrap();
    it.raw.stream.shutdown().await.unwrap();
    assert!(matches!(it.running.await.unwrap(), End::Truncated));
}

#[tokio::test]
async fn closing_writes_what_was_queued_and_reads_no_more() {
    let mut it = start();
    it.bench.remote.notify("last", &json!({})).await.unwrap();
    it.raw.tell("close", json!({})).await;
    it.raw.ask(1, "echo", json!({})).await;
    let mut seen = Vec::new();
    while let Some(message) = it.raw.receive().await {
        seen.push(message);
    }
    assert!(matches!(it.running.await.unwrap(), End::Closed));
    assert_eq!(
        seen,
        [json!({"jsonrpc": "2.0", "method": "last", "params": {}})]
    );
}

#[tokio::test]
async fn a_peer_that_is_dropped_leaves_nobody_waiting() {
    let mut it = start();
    it.raw.ask(1, "wait", json!(["a"])).await;
    let remote = it.bench.remote.clone();
    let call = tokio::spawn(async move { remote.call::<_, Value>("x", &json!({})).await });
    it.raw.receive().await.unwrap();
    it.running.abort();
    assert_eq!(
        call.await.unwrap().unwrap_err().kind,
        ErrorKind::Disconnected
    );
    assert!(it.running.await.unwrap_err().is_cancelled());
    assert_eq!(it.bench.log.lines(), ["started a", "dropped a"]);
}

#[tokio::test]
async fn a_side_that_went_away_ends_the_peer() {
    let it = start();
    let remote = it.bench.remote.clone();
    drop(it.raw);
    assert!(matches!(
        it.running.await.unwrap(),
        End::EndOfInput | End::Failed(_)
    ));
    remote.closed().await;
}
