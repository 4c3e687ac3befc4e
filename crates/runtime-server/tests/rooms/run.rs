//! `terminal.run` to its end.

use std::time::{Duration, Instant};

use protocol::ErrorKind;
use serde_json::{Value, json};

use crate::support::{client, connect, odd_seconds, processes_with, tier, until_processes};

crate::trials![
    initialize_comes_first_and_says_what_there_is,
    a_command_answers_with_its_output_and_exit_code,
    words_run_without_a_shell,
    a_command_reads_what_it_is_given,
    a_signal_is_told_by_its_name,
    the_working_folder_is_inside_the_workspace,
    a_timeout_ends_the_command,
    a_cancelled_command_is_gone_with_all_it_started,
    a_command_that_ignores_being_asked_is_gone_too,
    what_cannot_run_is_refused_with_its_kind,
    the_facts_of_a_command_are_what_would_run,
];

async fn initialize_comes_first_and_says_what_there_is() {
    let client = connect();
    let early = client
        .remote
        .call::<_, Value>("runtime/status", &json!({}))
        .await;
    assert_eq!(early.unwrap_err().kind, ErrorKind::NotInitialized);

    let answer: Value = client.remote.call("initialize", &json!({})).await.unwrap();
    assert_eq!(answer["name"], "ward");
    assert_eq!(answer["authority"], "standalone");
    assert_eq!(
        answer["workspace"],
        json!(client.path().canonicalize().unwrap())
    );
    assert_eq!(answer["sandbox"]["tier"], json!(&*tier()));
    let names: Vec<&str> = answer["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| {
            assert_eq!(action["params"]["type"], "object", "{action}");
            action["name"].as_str().unwrap()
        })
        .collect();
    let all: Vec<&str> = protocol::ActionName::ALL
        .iter()
        .filter(|name| !name.is_editors() && !name.is_cells())
        .map(|name| name.as_str())
        .collect();
    assert_eq!(names, all);

    let again = client
        .remote
        .call::<_, Value>("initialize", &json!({}))
        .await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::InvalidRequest);
    let status: Value = client
        .remote
        .call("runtime/status", &json!({}))
        .await
        .unwrap();
    assert_eq!(
        status,
        json!({"state": "ready", "running": 0, "rooms": 0, "terminals": 0})
    );
}

async fn a_command_answers_with_its_output_and_exit_code() {
    let client = client().await;
    let params = json!({"command": "echo out; echo err >&2; exit 3"});
    let mut result = client.execute("1", "terminal.run", params).await.unwrap();
    assert!(result["duration_ms"].as_u64().unwrap() < 10_000);
    result["duration_ms"] = json!(0);
    assert_eq!(
        result,
        json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "duration_ms": 0,
            "timed_out": false, "truncated": false, "sandbox": {"tier": &*tier()}})
    );
}

async fn words_run_without_a_shell() {
    let client = client().await;
    let params = json!({"argv": ["printf", "%s|", "$HOME", "a b"], "env": {"X": "1"}});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(result["stdout"], "$HOME|a b|");
}

async fn a_command_reads_what_it_is_given() {
    let client = client().await;
    let text = "line\n".repeat(100_000);
    let params = json!({"argv": ["wc", "-c"], "stdin": text});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(result["stdout"], "500000\n");

    let params =
        json!({"argv": ["od", "-An", "-tx1"], "stdin": "/wA=", "stdin_encoding": "base64"});
    let result = client.execute("2", "terminal.run", params).await.unwrap();
    assert_eq!(result["stdout"], " ff 00\n");

    let params = json!({"argv": ["cat"]});
    let result = client.execute("3", "terminal.run", params).await.unwrap();
    assert_eq!(result["stdout"], "");

    // One that does not read is not waited for.
    let params = json!({"argv": ["true"], "stdin": text});
    let result = client.execute("4", "terminal.run", params).await.unwrap();
    assert_eq!(result["exit_code"], 0);
}

async fn a_signal_is_told_by_its_name() {
    let client = client().await;
    let params = json!({"argv": ["sh", "-c", "kill -SEGV $$"]});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(
        (&result["signal"], result.get("exit_code")),
        (&json!("SIGSEGV"), None)
    );
}

async fn the_working_folder_is_inside_the_workspace() {
    let client = client().await;
    std::fs::create_dir(client.path().join("sub")).unwrap();
    let params = json!({"command": "pwd", "cwd": "sub"});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    let expected = client.path().canonicalize().unwrap().join("sub");
    assert_eq!(result["stdout"], format!("{}\n", expected.display()));

    for (id, cwd, kind) in [
        ("2", "..", ErrorKind::OutsideWorkspace),
        ("3", "/etc", ErrorKind::OutsideWorkspace),
        ("4", "nowhere", ErrorKind::NotFound),
    ] {
        let params = json!({"command": "pwd", "cwd": cwd});
        let failure = client
            .execute(id, "terminal.run", params)
            .await
            .unwrap_err();
        assert_eq!(failure.kind, kind, "{cwd}");
    }
}

async fn a_timeout_ends_the_command() {
    let client = client().await;
    let seconds = odd_seconds();
    let params = json!({"command": format!("echo before; sleep {seconds}"), "timeout_ms": 200});
    let result = client.execute("1", "terminal.run", params).await.unwrap();
    assert_eq!(result["timed_out"], true);
    assert_eq!(result["stdout"], "before\n");
    assert_eq!(result["sandbox"]["limit"], "time");
    assert_eq!(processes_with(&seconds), 0);
}

async fn a_cancelled_command_is_gone_with_all_it_started() {
    let line = "sleep S & (setsid sleep S &); sleep S; true";
    gone_in_time(line, 3).await;
}

async fn a_command_that_ignores_being_asked_is_gone_too() {
    let line = "trap '' TERM; sleep S; sleep S; true";
    gone_in_time(line, 1).await;
}

/// Cancels a command with so many processes, and looks from outside when they are gone. The
/// machine may be busy with other tests: the best of three counts.
async fn gone_in_time(line: &str, count: usize) {
    let client = client().await;
    let mut times = Vec::new();
    for attempt in ["1", "2", "3"] {
        let seconds = odd_seconds();
        let params = json!({"command": line.replace('S', &seconds)});
        let running = client.start(attempt, "terminal.run", params.clone());
        until_processes(&seconds, count).await;
        let asked = Instant::now();
        running.abort();
        until_processes(&seconds, 0).await;
        times.push(asked.elapsed());
        // It stays cancelled, however often it is asked for.
        let known = client.execute(attempt, "terminal.run", params).await;
        assert_eq!(known.unwrap_err().kind, ErrorKind::Cancelled);
        if times.last() < Some(&Duration::from_millis(200)) {
            return;
        }
    }
    panic!("gone after {times:?}");
}

async fn what_cannot_run_is_refused_with_its_kind() {
    let client = client().await;
    for (id, params, kind) in [
        ("1", json!({}), ErrorKind::InvalidParams),
        (
            "2",
            json!({"command": "a", "argv": ["a"]}),
            ErrorKind::InvalidParams,
        ),
        ("3", json!({"command": " "}), ErrorKind::InvalidParams),
        ("4", json!({"argv": []}), ErrorKind::InvalidParams),
        (
            "5",
            json!({"argv": ["no-such-program"]}),
            ErrorKind::CommandNotFound,
        ),
        (
            "6",
            json!({"argv": ["true\u{0}"]}),
            ErrorKind::InvalidParams,
        ),
        (
            "7",
            json!({"argv": ["true"], "env": {"A=B": "1"}}),
            ErrorKind::InvalidParams,
        ),
        (
            "8",
            json!({"argv": ["true"], "surprise": 1}),
            ErrorKind::InvalidParams,
        ),
        (
            "9",
            json!({"argv": ["cat"], "stdin": "?", "stdin_encoding": "base64"}),
            ErrorKind::BadEncoding,
        ),
    ] {
        let failure = client
            .execute(id, "terminal.run", params.clone())
            .await
            .unwrap_err();
        assert_eq!(failure.kind, kind, "{params}");
    }
}

async fn the_facts_of_a_command_are_what_would_run() {
    let client = client().await;
    let ask =
        json!({"action": "terminal.run", "params": {"argv": ["true", "a"], "env": {"X": "1"}}});
    let facts: Value = client.remote.call("action/resolve", &ask).await.unwrap();
    let real = std::fs::canonicalize("/usr/bin/true").unwrap();
    assert_eq!(
        facts,
        json!({"facts": {"command": {"argv": ["true", "a"], "program": real,
            "cwd": client.path().canonicalize().unwrap(), "env": {"X": "1"}}}})
    );
    let ask = json!({"action": "terminal.run", "params": {"command": "ls | wc"}});
    let facts: Value = client.remote.call("action/resolve", &ask).await.unwrap();
    let command = &facts["facts"]["command"];
    assert_eq!(command["line"], "ls | wc");
    assert_eq!(command["argv"][1], "-c");
    assert_eq!(command["argv"][2], "ls | wc");
}
