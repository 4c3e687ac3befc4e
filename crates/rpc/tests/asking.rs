//! Requests, notifications and cancelling, as they should go.

mod support;

use protocol::{ErrorKind, Failure};
use rpc::{Limits, NoService, Peer};
use serde_json::{Value, json};
use support::{Setup, setup, until_idle};

fn start() -> Setup {
    setup(Limits::default(), 1 << 20)
}

#[tokio::test]
async fn requests_are_answered_under_the_id_they_came_with() {
    let mut it = start();
    it.raw.ask(1, "echo", json!({"a": [1, 2.50, "ü"]})).await;
    it.raw.ask("one", "echo", json!([])).await;
    it.raw.ask(-7, "fail", json!({})).await;
    it.raw.ask(2, "nothing", json!({})).await;
    assert_eq!(
        [
            it.raw.receive().await.unwrap(),
            it.raw.receive().await.unwrap(),
            it.raw.receive().await.unwrap(),
            it.raw.receive().await.unwrap(),
        ],
        [
            json!({"jsonrpc": "2.0", "id": 1, "result": {"a": [1, 2.50, "ü"]}}),
            json!({"jsonrpc": "2.0", "id": "one", "result": []}),
            json!({"jsonrpc": "2.0", "id": -7, "error": {"code": -32000, "message": "Not there.",
                "data": {"kind": "not_found", "path": "a"}}}),
            json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32601,
                "message": "There is no method `nothing`.",
                "data": {"kind": "method_not_found", "method": "nothing"}}}),
        ]
    );
}

#[tokio::test]
async fn both_sides_may_ask_at_once() {
    let mut it = start();
    it.raw.ask(1, "back", json!({"what": "now"})).await;
    let question = it.raw.receive().await.unwrap();
    assert_eq!(
        question,
        json!({"jsonrpc": "2.0", "id": 0, "method": "question", "params": {"what": "now"}})
    );
    it.raw
        .send(json!({"jsonrpc": "2.0", "id": 0, "result": "soon"}))
        .await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": "soon"})
    );
}

#[tokio::test]
async fn two_peers_understand_each_other() {
    let it = start();
    let (reader, writer) = tokio::io::split(it.raw.stream);
    let (peer, remote) = Peer::new(reader, writer, Limits::default());
    tokio::spawn(peer.run(NoService));
    assert_eq!(
        remote.call("echo", &json!({"a": 1})).await,
        Ok(json!({"a": 1}))
    );
    assert_eq!(
        remote.call::<_, Value>("fail", &json!({})).await,
        Err(Failure::new(ErrorKind::NotFound, "Not there.").with("path", "a"))
    );
    remote.notify("first", &json!({})).await.unwrap();
    assert_eq!(
        remote.call("count", &json!({})).await,
        Ok(json!(["first {}"]))
    );
    // The other direction meets a side that takes no requests.
    assert_eq!(
        it.bench.remote.call::<_, Value>("x", &json!({})).await,
        Err(Failure::new(ErrorKind::MethodNotFound, "There is no method `x`.").with("method", "x"))
    );
}

#[tokio::test]
async fn answers_come_when_they_are_ready_not_in_the_order_of_the_questions() {
    let mut it = start();
    it.raw.ask(1, "wait", json!(["a"])).await;
    it.raw.ask(2, "echo", json!({})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 2, "result": {}})
    );
    it.bench.gate.add_permits(1);
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": "a"})
    );
}

#[tokio::test(start_paused = true)]
async fn notifications_are_handled_in_order_before_what_follows_them() {
    let mut it = start();
    it.raw.tell("slow", json!([1])).await;
    it.raw.tell("quick", json!([2])).await;
    it.raw.ask(1, "count", json!({})).await;
    until_idle().await;
    assert_eq!(it.bench.log.lines(), Vec::<String>::new());
    it.bench.gate.add_permits(1);
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": ["slow [1]", "quick [2]"]})
    );
}

#[tokio::test]
async fn a_cancelled_request_is_dropped_and_answered_as_cancelled() {
    let mut it = start();
    it.raw.ask("a", "wait", json!(["a"])).await;
    it.raw.ask("b", "wait", json!(["b"])).await;
    it.raw.tell("$/cancelRequest", json!({"id": "a"})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32800,
            "message": "The request was cancelled.", "data": {"kind": "cancelled"}}})
    );
    assert_eq!(
        it.bench.log.lines(),
        ["started a", "started b", "dropped a"]
    );
    it.bench.gate.add_permits(1);
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": "b", "result": "b"})
    );
}

#[tokio::test]
async fn a_handler_that_took_the_token_is_told_and_answers_itself() {
    let mut it = start();
    it.raw.ask(1, "heed", json!({})).await;
    it.raw.tell("$/cancelRequest", json!({"id": 1})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "Put away.",
            "data": {"kind": "cancelled", "by": "itself"}}})
    );
    assert_eq!(it.bench.log.lines(), ["started heed", "put away"]);
}

#[tokio::test]
async fn cancelling_what_is_not_there_does_nothing() {
    let mut it = start();
    for params in [json!({"id": 9}), json!({"id": null}), json!([]), json!({})] {
        it.raw.tell("$/cancelRequest", params).await;
    }
    it.raw.ask(1, "echo", json!({})).await;
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
}

#[tokio::test]
async fn giving_up_a_call_cancels_it_over_there() {
    let mut it = start();
    let remote = it.bench.remote.clone();
    let call = tokio::spawn(async move { remote.call::<_, Value>("long", &json!({})).await });
    let asked = it.raw.receive().await.unwrap();
    assert_eq!(
        asked,
        json!({"jsonrpc": "2.0", "id": 0, "method": "long", "params": {}})
    );
    call.abort();
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 0}})
    );
}

#[tokio::test]
async fn what_a_handler_tells_arrives_before_its_answer() {
    let mut it = setup(
        Limits {
            outgoing: 2,
            ..Limits::default()
        },
        1 << 20,
    );
    it.raw.ask(1, "tell", json!({})).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let message = it.raw.receive().await.unwrap();
        seen.push(message.get("params").or(message.get("result")).cloned());
    }
    assert_eq!(
        seen,
        [
            Some(json!([0])),
            Some(json!([1])),
            Some(json!([2])),
            Some(json!("all told"))
        ]
    );
}

#[tokio::test]
async fn a_handler_that_panics_fails_alone() {
    let mut it = start();
    it.raw.ask(1, "panic", json!({})).await;
    it.raw.ask(2, "echo", json!({})).await;
    assert_eq!(
        [
            it.raw.receive().await.unwrap(),
            it.raw.receive().await.unwrap()
        ],
        [
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603,
                "message": "Ward failed while working on this request. The log says where; please report it.",
                "data": {"kind": "internal"}}}),
            json!({"jsonrpc": "2.0", "id": 2, "result": {}}),
        ]
    );
}
