//! Commands in the background.

use protocol::ErrorKind;
use protocol::method::RuntimeState;
use serde_json::{Value, json};

use crate::support::{Client, Told, client, odd_seconds, processes_with, until_processes};

crate::trials![
    a_background_command_is_listed_read_and_told_when_it_ends,
    a_background_command_can_be_stopped_and_forgotten,
    a_terminal_that_is_not_there_is_unknown,
    commands_of_one_session_share_a_room_and_others_do_not,
    what_is_open_is_told_when_it_changes,
];

async fn start(client: &Client, id: &str, line: &str) -> String {
    let params = json!({"command": line, "background": true});
    let result = client.execute(id, "terminal.run", params).await.unwrap();
    result["terminal_id"].as_str().unwrap().to_owned()
}

async fn list(client: &Client, id: &str) -> Value {
    let list = client
        .execute(id, "terminal.list", json!({}))
        .await
        .unwrap();
    list["terminals"].clone()
}

async fn a_background_command_is_listed_read_and_told_when_it_ends() {
    let mut client = client().await;
    let line = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 4";
    let terminal = start(&client, "1", line).await;
    client.output_until("one\n").await;
    let cwd = client.path().canonicalize().unwrap();
    assert_eq!(
        list(&client, "2").await,
        json!([{"terminal_id": terminal, "kind": "background", "command": line, "cwd": cwd,
            "running": true}])
    );
    let read = json!({"terminal_id": terminal});
    assert_eq!(
        client.execute("3", "terminal.read", read).await.unwrap(),
        json!({"data": "one\n", "next": 4, "running": true})
    );
    std::fs::write(client.path().join("go"), "").unwrap();
    client.output_until("two\n").await;
    let exited = loop {
        match client.told.recv().await.unwrap() {
            Told::Exited(exited) => break exited,
            Told::Status(_) => {}
            Told::Output(output) => panic!("more was printed: {output:?}"),
        }
    };
    assert_eq!(
        (
            exited.id.as_str(),
            exited.terminal_id.as_str(),
            exited.exit_code
        ),
        ("1", terminal.as_str(), Some(4))
    );
    assert_eq!(
        list(&client, "4").await,
        json!([{"terminal_id": terminal, "kind": "background", "command": line, "cwd": cwd,
            "running": false, "exit_code": 4}])
    );
    let read = json!({"terminal_id": terminal, "from": 4});
    assert_eq!(
        client.execute("5", "terminal.read", read).await.unwrap(),
        json!({"data": "two\n", "next": 8, "running": false})
    );
}

async fn a_background_command_can_be_stopped_and_forgotten() {
    let client = client().await;
    let seconds = odd_seconds();
    let terminal = start(&client, "1", &format!("sleep {seconds} & sleep {seconds}")).await;
    until_processes(&seconds, 2).await;
    let named = json!({"terminal_id": terminal});
    assert_eq!(
        client.execute("2", "terminal.stop", named.clone()).await,
        Ok(json!({"changed": true}))
    );
    assert_eq!(processes_with(&seconds), 0);
    assert_eq!(list(&client, "3").await[0]["running"], false);
    assert_eq!(
        client.execute("4", "terminal.stop", named.clone()).await,
        Ok(json!({"changed": false}))
    );
    assert_eq!(
        client.execute("5", "terminal.close", named.clone()).await,
        Ok(json!({"changed": true}))
    );
    assert_eq!(list(&client, "6").await, json!([]));
    let gone = client.execute("7", "terminal.read", named).await;
    assert_eq!(gone.unwrap_err().kind, ErrorKind::UnknownTerminal);
}

async fn a_terminal_that_is_not_there_is_unknown() {
    let client = client().await;
    let named = json!({"terminal_id": "t9"});
    for (id, action, params) in [
        ("1", "terminal.read", named.clone()),
        ("2", "terminal.stop", named.clone()),
        ("3", "terminal.close", named.clone()),
        (
            "4",
            "terminal.write",
            json!({"terminal_id": "t9", "data": "x"}),
        ),
        (
            "5",
            "terminal.resize",
            json!({"terminal_id": "t9", "cols": 1, "rows": 1}),
        ),
    ] {
        let failure = client.execute(id, action, params).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::UnknownTerminal, "{action}");
    }
    let terminal = start(&client, "6", "cat").await;
    let write = json!({"terminal_id": terminal, "data": "x"});
    let failure = client.execute("7", "terminal.write", write).await;
    assert_eq!(failure.unwrap_err().kind, ErrorKind::UnknownTerminal);
}

async fn commands_of_one_session_share_a_room_and_others_do_not() {
    let client = client().await;
    let run = |id: &str, session: &str, line: &str| {
        let request = json!({"id": id, "action": "terminal.run", "params": {"command": line},
            "session": session});
        let remote = client.remote.clone();
        async move {
            let result: Value = remote.call("action/execute", &request).await.unwrap();
            result["stdout"].as_str().unwrap().to_owned()
        }
    };
    assert_eq!(run("1", "a", "echo mine > /tmp/note").await, "");
    assert_eq!(run("2", "a", "cat /tmp/note").await, "mine\n");
    assert_eq!(run("3", "b", "ls /tmp").await, "");
    let status: Value = client
        .remote
        .call("runtime/status", &json!({}))
        .await
        .unwrap();
    assert_eq!(status["rooms"], 2);
}

async fn what_is_open_is_told_when_it_changes() {
    let mut client = client().await;
    let mut told = Vec::new();
    let steps = [
        ("1", "terminal.run", json!({"argv": ["true"]})),
        ("2", "terminal.run", json!({"argv": ["true"]})),
        (
            "3",
            "terminal.run",
            json!({"argv": ["sleep", "1000"], "background": true}),
        ),
        ("4", "terminal.stop", json!({"terminal_id": "t1"})),
    ];
    for (id, action, params) in steps {
        client.execute(id, action, params).await.unwrap();
        for it in client.all_told() {
            if let Told::Status(status) = it {
                told.push((id, status.state, status.rooms, status.terminals));
            }
        }
    }
    let ready = RuntimeState::Ready;
    assert_eq!(
        told,
        [("1", ready, 1, 0), ("3", ready, 1, 1), ("4", ready, 1, 0)]
    );
}
