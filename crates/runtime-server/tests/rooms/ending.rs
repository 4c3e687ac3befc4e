//! However a connection ends, no process is left.

use protocol::ErrorKind;
use rpc::End;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};

use crate::support::{Client, Served, client, odd_seconds, processes_with, serve, until_processes};

crate::trials![
    after_shutdown_only_exit_is_taken,
    end_of_input_ends_every_command,
    being_stopped_ends_every_command,
    exit_ends_the_connection,
    a_client_that_does_not_read_can_still_cancel,
    a_client_that_does_not_read_keeps_nobody_from_ending,
];

/// A client with a command, a background command and a terminal under way; what they sleep.
async fn busy() -> (Client, String) {
    let client = client().await;
    let seconds = odd_seconds();
    let line = format!("(setsid sleep {seconds} &); trap '' TERM; sleep {seconds}; true");
    drop(client.start("1", "terminal.run", json!({"command": line})));
    let params = json!({"command": line, "background": true});
    client.execute("2", "terminal.run", params).await.unwrap();
    let params = json!({"command": line});
    client.execute("3", "terminal.open", params).await.unwrap();
    until_processes(&seconds, 6).await;
    (client, seconds)
}

async fn after_shutdown_only_exit_is_taken() {
    let (client, seconds) = busy().await;
    let answer: Value = client.remote.call("shutdown", &json!({})).await.unwrap();
    assert_eq!(answer, Value::Null);
    assert_eq!(processes_with(&seconds), 0);
    for method in ["action/execute", "runtime/status", "initialize", "shutdown"] {
        let refused = client.remote.call::<_, Value>(method, &json!({})).await;
        assert_eq!(
            refused.unwrap_err().kind,
            ErrorKind::ShuttingDown,
            "{method}"
        );
    }
    client.remote.notify("exit", &json!({})).await.unwrap();
    assert!(matches!(client.serving.await.unwrap(), End::Closed));
}

async fn end_of_input_ends_every_command() {
    let (client, seconds) = busy().await;
    client.talking.abort();
    assert!(client.talking.await.unwrap_err().is_cancelled());
    assert!(matches!(
        client.serving.await.unwrap(),
        End::EndOfInput | End::Failed(_)
    ));
    assert_eq!(processes_with(&seconds), 0);
}

async fn being_stopped_ends_every_command() {
    let (client, seconds) = busy().await;
    client.stop.cancel();
    assert!(matches!(client.serving.await.unwrap(), End::Closed));
    assert_eq!(processes_with(&seconds), 0);
}

async fn exit_ends_the_connection() {
    let (client, seconds) = busy().await;
    client.remote.notify("exit", &json!({})).await.unwrap();
    assert!(matches!(client.serving.await.unwrap(), End::Closed));
    assert_eq!(processes_with(&seconds), 0);
}

/// A client that has said `initialize` and started an endless printer, and has not read a byte
/// since; what the printer prints.
async fn deaf() -> (Served, String) {
    let mut served = serve();
    let word = format!("y{}", odd_seconds());
    for (id, method, params) in [
        (1, "initialize", json!({})),
        (
            2,
            "action/execute",
            json!({"id": "1", "action": "terminal.run", "params": {"argv": ["yes", word]}}),
        ),
    ] {
        say(
            &mut served.stream,
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        )
        .await;
    }
    until_processes(&word, 1).await;
    (served, word)
}

async fn a_client_that_does_not_read_can_still_cancel() {
    let (mut served, word) = deaf().await;
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}});
    say(&mut served.stream, cancel).await;
    until_processes(&word, 0).await;
}

async fn a_client_that_does_not_read_keeps_nobody_from_ending() {
    let (served, word) = deaf().await;
    served.stop.cancel();
    assert!(matches!(served.serving.await.unwrap(), End::Closed));
    assert_eq!(processes_with(&word), 0);
}

async fn say(stream: &mut DuplexStream, message: Value) {
    let mut bytes = Vec::new();
    rpc::write_frame(&mut bytes, message.to_string().as_bytes());
    stream.write_all(&bytes).await.unwrap();
}
