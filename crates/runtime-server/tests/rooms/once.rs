//! Each action is done once, on the facts that were decided on.

use protocol::ErrorKind;
use serde_json::{Value, json};

use crate::support::client;

crate::trials![
    an_action_sent_twice_is_done_once,
    the_same_id_with_other_content_is_a_conflict,
    facts_that_changed_are_refused,
    a_permit_is_refused_where_there_is_no_gate,
    an_action_that_is_not_there_is_unknown,
];

async fn an_action_sent_twice_is_done_once() {
    let client = client().await;
    let line = "echo x >> count; while [ ! -e go ]; do sleep 0.01; done; echo done";
    let params = json!({"command": line});
    let first = client.start("1", "terminal.run", params.clone());
    while !client.path().join("count").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let second = client.start("1", "terminal.run", params.clone());
    std::fs::write(client.path().join("go"), "").unwrap();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first, second);
    assert_eq!(client.execute("1", "terminal.run", params).await, first);
    let count = std::fs::read_to_string(client.path().join("count")).unwrap();
    assert_eq!(count, "x\n");
}

async fn the_same_id_with_other_content_is_a_conflict() {
    let client = client().await;
    let write = |content: &str| json!({"path": "a", "content": content});
    client.execute("1", "fs.write", write("one")).await.unwrap();
    let conflict = client.execute("1", "fs.write", write("two")).await;
    assert_eq!(conflict.unwrap_err().kind, ErrorKind::Conflict);
    let content = std::fs::read_to_string(client.path().join("a")).unwrap();
    assert_eq!(content, "one");
}

async fn facts_that_changed_are_refused() {
    let client = client().await;
    let params = json!({"command": "pwd", "cwd": "here"});
    std::fs::create_dir(client.path().join("one")).unwrap();
    std::fs::create_dir(client.path().join("two")).unwrap();
    std::os::unix::fs::symlink("one", client.path().join("here")).unwrap();
    let ask = json!({"action": "terminal.run", "params": params});
    let resolved: Value = client.remote.call("action/resolve", &ask).await.unwrap();
    let request = json!({"id": "1", "action": "terminal.run", "params": params,
        "expect": resolved["facts"]});

    std::fs::remove_file(client.path().join("here")).unwrap();
    std::os::unix::fs::symlink("two", client.path().join("here")).unwrap();
    let changed = client
        .remote
        .call::<_, Value>("action/execute", &request)
        .await;
    let changed = changed.unwrap_err();
    assert_eq!(changed.kind, ErrorKind::Changed);
    assert_eq!(changed.details["expected"], resolved["facts"]);
    let two = client.path().canonicalize().unwrap().join("two");
    assert_eq!(changed.details["found"]["command"]["cwd"], json!(two));

    // Nothing was done, so the same id may be decided on again.
    let resolved: Value = client.remote.call("action/resolve", &ask).await.unwrap();
    let request = json!({"id": "1", "action": "terminal.run", "params": params,
        "expect": resolved["facts"]});
    let result: Value = client
        .remote
        .call("action/execute", &request)
        .await
        .unwrap();
    assert_eq!(result["stdout"], format!("{}\n", two.display()));
}

async fn a_permit_is_refused_where_there_is_no_gate() {
    let client = client().await;
    let digest = protocol::Digest::of(b"decided");
    for (extra, value) in [
        ("permit", json!({"digest": digest, "mode": "sandbox"})),
        ("wall", json!({})),
    ] {
        let mut request = json!({"id": "1", "action": "fs.stat", "params": {"path": "."}});
        request[extra] = value;
        let refused = client
            .remote
            .call::<_, Value>("action/execute", &request)
            .await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Standalone);
    }
}

async fn an_action_that_is_not_there_is_unknown() {
    let client = client().await;
    let unknown = client.execute("1", "fs.raed", json!({})).await.unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::UnknownAction);
    let method = client
        .remote
        .call::<_, Value>("action/undo", &json!({}))
        .await;
    assert_eq!(method.unwrap_err().kind, ErrorKind::MethodNotFound);
}
