//! However a connection ends, no process is left.

use protocol::ErrorKind;
use rpc::End;
use serde_json::{Value, json};

use crate::support::{Client, client, odd_seconds, processes_with, until_processes};

crate::trials![
    after_shutdown_only_exit_is_taken,
    end_of_input_ends_every_command,
    being_stopped_ends_every_command,
    exit_ends_the_connection,
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
