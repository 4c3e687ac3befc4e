//! Full mode: a command sees the machine as its user does, and still ends when it has to.

use std::path::PathBuf;

use protocol::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Client, Permitted, gate, odd_seconds, until_processes};

crate::trials!(
    full_mode_is_the_machine_and_sandbox_mode_is_not,
    neither_mode_gets_the_environment_of_ward,
    a_trusted_command_runs_and_writes_anywhere,
    a_trusted_command_is_not_swept_after,
    cancelling_ends_all_that_a_trusted_command_started,
    a_timeout_ends_all_that_a_trusted_command_started,
    the_end_of_the_connection_ends_what_is_trusted,
    a_trusted_terminal_is_for_full_mode_alone,
);

fn run<'a>(id: &'a str, line: &str) -> Permitted<'a> {
    Permitted::new(id, "terminal.run", json!({"command": line}))
}

async fn said(gate: &Client, permitted: Permitted<'_>) -> String {
    let answer = gate.permitted(permitted).await.unwrap();
    answer["stdout"].as_str().unwrap().trim_end().to_owned()
}

async fn full_mode_is_the_machine_and_sandbox_mode_is_not() {
    let gate = gate().await;
    let here = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        link.display().to_string()
    };
    let network = "readlink /proc/self/ns/net";
    assert_eq!(said(&gate, run("1", network).in_full()).await, here("net"));
    assert_ne!(said(&gate, run("2", network)).await, here("net"));
    let home = std::env::var("HOME").unwrap();
    assert_eq!(said(&gate, run("3", "echo $HOME").in_full()).await, home);
    // Its own folder of temporary files shows which home folder it is.
    let beside = tempfile::NamedTempFile::new_in(&home).unwrap();
    let look = format!("test -e {} && echo there", beside.path().display());
    assert_eq!(said(&gate, run("4", &look).in_full()).await, "there");
    assert_eq!(said(&gate, run("5", &look)).await, "");
    let answer = gate.permitted(run("6", "true").in_full()).await.unwrap();
    assert_eq!(answer["sandbox"]["tier"], "none");
    assert_eq!(
        said(&gate, run("7", "echo $WARD_SANDBOX").in_full()).await,
        "none"
    );
}

async fn neither_mode_gets_the_environment_of_ward() {
    let gate = gate().await;
    // Cargo sets this for every test, and nobody else needs it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    for (id, permitted) in [("1", run("1", "env")), ("2", run("2", "env").in_full())] {
        let environment = said(&gate, permitted).await;
        assert!(environment.contains("PATH="), "{id}");
        assert!(
            !environment.contains("CARGO_MANIFEST_DIR"),
            "{id}: {environment}"
        );
    }
    let proxies = said(&gate, run("3", "env | grep -ci '^https*_proxy='").in_full()).await;
    assert_eq!(proxies, "0");
}

async fn a_trusted_command_runs_and_writes_anywhere() {
    let gate = gate().await;
    let folder = tempfile::tempdir().unwrap();
    let beside = folder.path().canonicalize().unwrap();
    let params = json!({"command": "pwd; echo x > made", "cwd": beside});
    let permitted = Permitted::new("1", "terminal.run", params).in_full();
    assert_eq!(said(&gate, permitted).await, beside.display().to_string());
    assert_eq!(std::fs::read_to_string(beside.join("made")).unwrap(), "x\n");
}

async fn a_trusted_command_is_not_swept_after() {
    let gate = gate().await;
    let line =
        "git init -q . && echo true > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit";
    let answer = gate.permitted(run("1", line).in_full()).await.unwrap();
    assert_eq!(answer["exit_code"], 0, "{answer}");
    assert!(gate.path().join(".git/hooks/pre-commit").exists());
}

/// A command with a child that has left it, its session and its streams.
fn tree(seconds: &str) -> String {
    format!("setsid -f sleep {seconds} >/dev/null 2>&1 </dev/null; sleep {seconds}")
}

async fn cancelling_ends_all_that_a_trusted_command_started() {
    let gate = gate().await;
    let seconds = odd_seconds();
    let request = gate
        .decide(run("1", &tree(&seconds)).in_full())
        .await
        .unwrap();
    let remote = gate.remote.clone();
    let running =
        tokio::spawn(async move { remote.call::<_, Value>("action/execute", &request).await });
    until_processes(&seconds, 2).await;
    running.abort();
    until_processes(&seconds, 0).await;
}

async fn a_timeout_ends_all_that_a_trusted_command_started() {
    let gate = gate().await;
    let seconds = odd_seconds();
    let params = json!({"command": tree(&seconds), "timeout_ms": 200});
    let permitted = Permitted::new("1", "terminal.run", params).in_full();
    let answer = gate.permitted(permitted).await.unwrap();
    assert_eq!(answer["timed_out"], true);
    until_processes(&seconds, 0).await;
}

async fn the_end_of_the_connection_ends_what_is_trusted() {
    let gate = gate().await;
    let seconds = odd_seconds();
    let params = json!({"command": tree(&seconds), "background": true});
    let permitted = Permitted::new("1", "terminal.run", params).in_full();
    gate.permitted(permitted).await.unwrap();
    until_processes(&seconds, 2).await;
    gate.remote.close();
    gate.serving.await.unwrap();
    assert_eq!(crate::support::processes_with(&seconds), 0);
}

async fn a_trusted_terminal_is_for_full_mode_alone() {
    let mut gate = gate().await;
    let open = Permitted::new("1", "terminal.open", json!({"argv": ["sh"]})).in_full();
    let opened = gate.permitted(open).await.unwrap();
    let id = opened["terminal_id"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let made: PathBuf = folder.path().join("made");
    let params =
        json!({"terminal_id": id, "data": format!("touch {0}; echo d''one\n", made.display())});
    let write = Permitted::new("2", "terminal.write", params);
    let failure = gate.permitted(write.clone()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Forbidden, "{failure}");
    let write = Permitted {
        id: "3",
        ..write.in_full()
    };
    gate.permitted(write).await.unwrap();
    gate.output_until("done").await;
    assert!(made.exists());
}
