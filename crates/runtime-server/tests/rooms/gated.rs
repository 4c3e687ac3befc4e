//! Behind a gate: nothing without a permit, and nothing but what was decided on.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use protocol::ErrorKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, Permitted, client, gate};

crate::trials!(
    nothing_is_done_without_a_permit,
    a_permit_is_for_facts,
    standalone_takes_no_permit_and_no_session_to_close,
    an_action_is_done_as_it_was_permitted,
    what_was_decided_on_is_part_of_what_an_id_stands_for,
    a_path_beyond_the_workspace_has_facts_and_needs_a_permit_for_it,
    a_path_that_leads_back_into_the_workspace_is_inside,
    a_file_beyond_can_be_read_written_edited_moved_and_deleted,
    a_link_that_leads_out_stands_for_what_it_leads_to,
    whether_something_is_at_the_end_of_a_link_that_leads_out_is_for_the_gate_to_tell,
    a_link_swapped_between_looking_and_doing_is_changed,
    a_link_swapped_inside_the_workspace_is_changed_too,
    what_is_protected_stays_so_beyond_the_workspace,
    the_folders_of_ward_are_closed_to_file_actions,
    what_holds_a_folder_of_ward_is_read_without_it_and_never_changed,
    the_folders_of_the_kernel_are_closed_to_file_actions,
    a_copy_in_a_patch_is_told_as_read,
    a_confined_command_runs_in_the_workspace_alone,
    a_widening_lets_one_command_change_the_settings_of_git,
    a_widening_outside_is_for_one_command,
    no_widening_shows_a_folder_of_ward,
    a_terminal_is_seen_by_its_session_alone,
);

fn beside() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("file"), "text\n").unwrap();
    (folder, path)
}

fn read(id: &'static str, path: impl serde::Serialize) -> Permitted<'static> {
    Permitted::new(id, "fs.read", json!({"path": path}))
}

async fn refused(gate: &Client, permitted: Permitted<'_>) -> ErrorKind {
    gate.permitted(permitted).await.unwrap_err().kind
}

/// Sends what was decided on, after something has happened meanwhile.
async fn send(gate: &Client, request: &Value) -> Result<Value, protocol::Failure> {
    gate.remote.call("action/execute", request).await
}

async fn nothing_is_done_without_a_permit() {
    let gate = gate().await;
    for (action, params) in [
        ("fs.write", json!({"path": "file", "content": "x"})),
        ("terminal.run", json!({"command": "true"})),
        ("terminal.list", json!({})),
    ] {
        let failure = gate.execute("1", action, params).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Forbidden, "{failure}");
    }
    assert!(!gate.path().join("file").exists());
}

async fn a_permit_is_for_facts() {
    let gate = gate().await;
    let write = Permitted::new("1", "fs.write", json!({"path": "file", "content": "x"}));
    let mut request = gate.decide(write).await.unwrap();
    request.as_object_mut().unwrap().remove("expect");
    let failure = send(&gate, &request).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::InvalidParams, "{failure}");
    assert!(!gate.path().join("file").exists());
}

async fn standalone_takes_no_permit_and_no_session_to_close() {
    let client = client().await;
    let write = Permitted::new("1", "fs.write", json!({"path": "file", "content": "x"}));
    for permitted in [write.clone(), write.in_full()] {
        let failure = client.permitted(permitted).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Standalone, "{failure}");
    }
    let close = client.remote.call::<_, Value>("session/close", &()).await;
    assert_eq!(close.unwrap_err().kind, ErrorKind::MethodNotFound);
    let outside = client.resolve("fs.read", json!({"path": "/etc/passwd"}));
    assert_eq!(outside.await.unwrap_err().kind, ErrorKind::OutsideWorkspace);
    assert!(!client.path().join("file").exists());
}

async fn an_action_is_done_as_it_was_permitted() {
    let gate = gate().await;
    let params = json!({"path": "file", "content": "x"});
    let written = gate
        .permitted(Permitted::new("1", "fs.write", params))
        .await;
    assert_eq!(written.unwrap()["created"], true);
    let run = Permitted::new("2", "terminal.run", json!({"command": "cat file"}));
    assert_eq!(gate.permitted(run).await.unwrap()["stdout"], "x");
    let list = Permitted::new("3", "terminal.list", json!({}));
    assert_eq!(
        gate.permitted(list).await.unwrap(),
        json!({"terminals": []})
    );
}

async fn what_was_decided_on_is_part_of_what_an_id_stands_for() {
    let gate = gate().await;
    let write = Permitted::new("1", "fs.write", json!({"path": "file", "content": "x"}));
    let request = gate.decide(write.clone()).await.unwrap();
    let first = send(&gate, &request).await.unwrap();
    assert_eq!(send(&gate, &request).await.unwrap(), first);
    let mut other = request.clone();
    other["permit"]["mode"] = "full".into();
    let failure = send(&gate, &other).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Conflict);
}

async fn a_path_beyond_the_workspace_has_facts_and_needs_a_permit_for_it() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    let file = beside.join("file");
    symlink(&beside, gate.path().join("link")).unwrap();
    let winding = format!(
        "{}{}",
        "../".repeat(gate.path().canonicalize().unwrap().components().count()),
        file.display()
    );
    let fact = json!({"paths": [{"path": file, "access": "read", "kind": "file"}]});
    for path in [file.to_str().unwrap(), "link/file", &winding] {
        let facts = gate.resolve("fs.read", json!({"path": path})).await;
        assert_eq!(facts.unwrap(), fact, "{path}");
        let failure = gate.permitted(read("1", path)).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::OutsideWorkspace, "{failure}");
        let permitted = Permitted {
            id: path,
            ..read("1", path).beyond()
        };
        assert_eq!(
            gate.permitted(permitted).await.unwrap()["content"],
            "text\n"
        );
    }
    let home = gate.resolve("fs.read", json!({"path": "~/.profile"})).await;
    assert_eq!(home.unwrap_err().kind, ErrorKind::NotFound);
}

async fn a_path_that_leads_back_into_the_workspace_is_inside() {
    let gate = gate().await;
    let workspace = gate.path().canonicalize().unwrap();
    std::fs::write(workspace.join("file"), "in").unwrap();
    let name = workspace.file_name().unwrap().to_str().unwrap();
    let path = format!("../{name}/file");
    let answer = gate.permitted(read("1", &path)).await.unwrap();
    assert_eq!(answer["content"], "in");
    let stat = Permitted::new("2", "fs.stat", json!({"path": path}));
    assert_eq!(
        gate.permitted(stat).await.unwrap()["entries"][0]["path"],
        "file"
    );
    let write = Permitted::new(
        "3",
        "fs.write",
        json!({"path": format!("../{name}/.envrc"), "content": ""}),
    );
    assert_eq!(refused(&gate, write).await, ErrorKind::Protected);
}

async fn a_file_beyond_can_be_read_written_edited_moved_and_deleted() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    let path = |name: &str| beside.join(name).to_str().unwrap().to_owned();
    let actions = [
        (
            "fs.write",
            json!({"path": path("deep/new"), "content": "one\n"}),
        ),
        (
            "fs.edit",
            json!({"path": path("deep/new"), "edits": [{"old": "one", "new": "two"}]}),
        ),
        ("fs.mkdir", json!({"path": path("made")})),
        (
            "fs.move",
            json!({"from": path("deep/new"), "to": path("made/moved")}),
        ),
        (
            "fs.move",
            json!({"from": path("made/moved"), "to": "inside"}),
        ),
        ("fs.delete", json!({"path": path("deep")})),
    ];
    for (number, (action, params)) in actions.into_iter().enumerate() {
        let id = number.to_string();
        let permitted = Permitted::new(&id, action, params);
        let kind = refused(&gate, permitted.clone()).await;
        assert_eq!(kind, ErrorKind::OutsideWorkspace, "{action}");
        let answer = gate.permitted(permitted.beyond()).await.unwrap();
        if action == "fs.edit" {
            let head = format!("--- {0}\n+++ {0}\n", path("deep/new"));
            assert!(
                answer["diff"].as_str().unwrap().starts_with(&head),
                "{answer}"
            );
        }
    }
    let moved = std::fs::read_to_string(gate.path().join("inside")).unwrap();
    assert_eq!(moved, "two\n");
    assert!(!beside.join("deep").exists());
    let params = json!({"path": beside, "pattern": "**"});
    let found = gate
        .permitted(Permitted::new("glob", "fs.glob", params).beyond())
        .await
        .unwrap();
    assert_eq!(found["entries"][0]["path"], path("file"));
}

async fn a_link_that_leads_out_stands_for_what_it_leads_to() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    symlink(beside.join("file"), gate.path().join("link")).unwrap();
    let write = Permitted::new("1", "fs.write", json!({"path": "link", "content": "new"}));
    let facts = gate
        .resolve("fs.write", write.params.clone())
        .await
        .unwrap();
    assert_eq!(facts["paths"][0]["path"], json!(beside.join("file")));
    assert_eq!(
        refused(&gate, write.clone()).await,
        ErrorKind::OutsideWorkspace
    );
    gate.permitted(write.beyond()).await.unwrap();
    assert_eq!(std::fs::read_to_string(beside.join("file")).unwrap(), "new");
    assert!(gate.path().join("link").is_symlink());
    let moved = json!({"from": "link", "to": "other"});
    gate.permitted(Permitted::new("2", "fs.move", moved))
        .await
        .unwrap();
    assert!(gate.path().join("other").is_symlink());
}

async fn whether_something_is_at_the_end_of_a_link_that_leads_out_is_for_the_gate_to_tell() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    let missing = beside.join("missing");
    symlink(&missing, gate.path().join("link")).unwrap();
    symlink("link", gate.path().join("again")).unwrap();
    let up = "../".repeat(gate.path().canonicalize().unwrap().components().count());
    let winding = format!("{up}{}/missing/../missing", beside.display());
    let below = missing.join("below");
    for (path, leads) in [
        (missing.to_str().unwrap(), &missing),
        ("link", &missing),
        ("again", &missing),
        ("link/below", &below),
        (&winding, &missing),
    ] {
        for (action, params) in [
            ("fs.read", json!({"path": path})),
            ("fs.list", json!({"path": path})),
            (
                "fs.edit",
                json!({"path": path, "edits": [{"old": "a", "new": "b"}]}),
            ),
            ("fs.write", json!({"path": path, "content": "x"})),
        ] {
            let failure = match gate.resolve(action, params).await {
                Err(failure) => failure,
                // What is not there yet can be written to by its own name.
                Ok(facts) => {
                    assert_eq!(facts["paths"][0]["path"], json!(leads), "{action} {path}");
                    continue;
                }
            };
            let told = failure.details.get("beyond");
            assert_eq!(told, Some(&json!([leads])), "{action} {path}: {failure}");
        }
    }
}

async fn a_link_swapped_between_looking_and_doing_is_changed() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    std::fs::write(beside.join("secret"), "secret").unwrap();
    let link = gate.path().join("link");
    for (action, params) in [
        ("fs.read", json!({"path": "link"})),
        ("fs.write", json!({"path": "link", "content": "x"})),
    ] {
        let _ = std::fs::remove_file(&link);
        symlink(beside.join("file"), &link).unwrap();
        let permitted = Permitted::new("1", action, params).beyond();
        let request = gate.decide(permitted).await.unwrap();
        std::fs::remove_file(&link).unwrap();
        symlink(beside.join("secret"), &link).unwrap();
        let failure = send(&gate, &request).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Changed, "{failure}");
    }
    assert_eq!(
        std::fs::read_to_string(beside.join("secret")).unwrap(),
        "secret"
    );
}

async fn a_link_swapped_inside_the_workspace_is_changed_too() {
    let gate = gate().await;
    let path = gate.path();
    std::fs::write(path.join("file"), "plain").unwrap();
    std::fs::write(path.join(".env"), "secret").unwrap();
    symlink("file", path.join("link")).unwrap();
    let request = gate.decide(read("1", "link")).await.unwrap();
    std::fs::remove_file(path.join("link")).unwrap();
    symlink(".env", path.join("link")).unwrap();
    let failure = send(&gate, &request).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Changed, "{failure}");
}

async fn what_is_protected_stays_so_beyond_the_workspace() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    for path in [json!("AGENTS.md"), json!(beside.join(".git/hooks/x"))] {
        let write = Permitted::new("1", "fs.write", json!({"path": path, "content": ""})).beyond();
        assert_eq!(refused(&gate, write).await, ErrorKind::Protected);
    }
}

async fn the_folders_of_ward_are_closed_to_file_actions() {
    let gate = gate().await;
    let token = gate.state().join("token");
    std::fs::write(&token, "secret").unwrap();
    symlink(gate.state(), gate.path().join("link")).unwrap();
    for path in [json!(token), json!("link/token")] {
        for (action, params) in [
            ("fs.read", json!({"path": path})),
            ("fs.stat", json!({"path": path})),
            ("fs.search", json!({"path": path, "pattern": "."})),
            ("fs.write", json!({"path": path, "content": ""})),
            (
                "fs.edit",
                json!({"path": path, "edits": [{"old": "secret", "new": ""}]}),
            ),
            ("fs.delete", json!({"path": path})),
            ("fs.move", json!({"from": path, "to": "mine"})),
        ] {
            for permitted in [
                Permitted::new("1", action, params.clone()).beyond(),
                Permitted::new("1", action, params.clone())
                    .beyond()
                    .in_full(),
            ] {
                assert_eq!(
                    refused(&gate, permitted).await,
                    ErrorKind::Protected,
                    "{action} {path}"
                );
            }
        }
    }
    assert_eq!(std::fs::read_to_string(&token).unwrap(), "secret");
}

async fn what_holds_a_folder_of_ward_is_read_without_it_and_never_changed() {
    let gate = gate().await;
    let own = gate.state().join("deep");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("token"), "ward-secret-of-this-test").unwrap();
    let above = gate.state().parent().unwrap().to_owned();
    let search = json!({"path": above, "pattern": "ward-secret-of-this-test"});
    let found = gate
        .permitted(Permitted::new("1", "fs.search", search).beyond())
        .await
        .unwrap();
    assert_eq!(found["matches"], json!([]), "{found}");
    let list = json!({"path": above, "depth": 3, "hidden": true});
    let listed = gate
        .permitted(Permitted::new("2", "fs.list", list).beyond())
        .await
        .unwrap();
    let state = gate.state();
    let below = |entry: &&Value| {
        let path = PathBuf::from(entry["path"].as_str().unwrap());
        path != state && path.starts_with(&state)
    };
    let seen: Vec<&Value> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(below)
        .collect();
    assert_eq!(seen, Vec::<&Value>::new());
    let shown = listed["entries"].as_array().unwrap();
    assert!(shown.iter().any(|entry| entry["path"] == json!(state)));
    for (action, params) in [
        ("fs.delete", json!({"path": above, "recursive": true})),
        ("fs.move", json!({"from": above, "to": "mine"})),
    ] {
        let permitted = Permitted::new("3", action, params).beyond();
        assert_eq!(
            refused(&gate, permitted).await,
            ErrorKind::Protected,
            "{action}"
        );
    }
}

async fn the_folders_of_the_kernel_are_closed_to_file_actions() {
    let gate = gate().await;
    for path in ["/proc/self/environ", "/proc/1/cmdline", "/sys/kernel/mm"] {
        let stat = Permitted::new("1", "fs.stat", json!({"path": path})).beyond();
        assert_eq!(refused(&gate, stat).await, ErrorKind::Protected, "{path}");
    }
    let token = gate.state().join("token");
    std::fs::write(&token, "secret").unwrap();
    let around = format!("/proc/self/root{}", token.display());
    assert_eq!(
        refused(&gate, read("2", around).beyond()).await,
        ErrorKind::Protected
    );
}

async fn a_copy_in_a_patch_is_told_as_read() {
    let gate = gate().await;
    std::fs::write(gate.path().join(".env"), "secret\n").unwrap();
    let patch = "diff --git a/.env b/copy\nsimilarity index 100%\ncopy from .env\ncopy to copy\n";
    let facts = gate
        .resolve("fs.patch", json!({"patch": patch}))
        .await
        .unwrap();
    let touched: Vec<(&str, bool)> = facts["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| {
            (
                fact["access"].as_str().unwrap(),
                fact["path"].as_str().unwrap().ends_with("/.env"),
            )
        })
        .collect();
    assert_eq!(touched, [("read", true), ("write", false)]);
    let permitted = Permitted::new("1", "fs.patch", json!({"patch": patch}));
    gate.permitted(permitted).await.unwrap();
}

async fn a_confined_command_runs_in_the_workspace_alone() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    std::fs::write(beside.join("file"), "").unwrap();
    symlink(beside.join("nothing"), gate.path().join("link")).unwrap();
    // Whether something is outside is not told either.
    for (id, cwd, leads_to) in [
        ("1", beside.clone(), beside.clone()),
        ("2", beside.join("nothing"), beside.join("nothing")),
        ("3", beside.join("file"), beside.join("file")),
        ("4", "link".into(), beside.join("nothing")),
    ] {
        let run = Permitted::new(id, "terminal.run", json!({"command": "pwd", "cwd": cwd}));
        let facts = gate
            .resolve("terminal.run", run.params.clone())
            .await
            .unwrap();
        assert_eq!(facts["command"]["cwd"], json!(leads_to));
        let failure = gate.permitted(run.beyond()).await.unwrap_err();
        let said = failure.message.replace(cwd.to_str().unwrap(), "CWD");
        let here = gate.path().canonicalize().unwrap();
        assert_eq!(
            (failure.kind, said),
            (
                ErrorKind::OutsideWorkspace,
                format!(
                    "`CWD` is outside the workspace {}. Name a path inside it, or start Ward with another --workspace.",
                    here.display()
                )
            )
        );
    }
}

async fn a_widening_lets_one_command_change_the_settings_of_git() {
    let gate = gate().await;
    let run = |id, line: &str| Permitted::new(id, "terminal.run", json!({"command": line}));
    let made = gate.permitted(run("1", "git init -q .")).await.unwrap();
    assert_eq!(made["exit_code"], 0);
    let config = gate.path().canonicalize().unwrap().join(".git/config");
    let add = "git remote add origin https://example.com/x";
    let stopped = gate.permitted(run("2", add)).await.unwrap();
    assert_ne!(stopped["exit_code"], 0);
    let granted = gate
        .permitted(run("3", add).widened(&config, "write"))
        .await
        .unwrap();
    assert_eq!(
        (&granted["exit_code"], &granted["sandbox"]["set_aside"]),
        (&json!(0), &Value::Null)
    );
    let later = gate
        .permitted(run("4", "git remote add other https://x"))
        .await
        .unwrap();
    assert_ne!(later["exit_code"], 0);
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("origin") && !text.contains("other"), "{text}");
}

async fn a_widening_outside_is_for_one_command() {
    let gate = gate().await;
    let (_folder, beside) = beside();
    let file = beside.join("file");
    let line = format!("cat {0} && echo more >> {0}", file.display());
    let run = |id| Permitted::new(id, "terminal.run", json!({"command": line}));
    let read = gate
        .permitted(run("1").widened(&beside, "read"))
        .await
        .unwrap();
    assert_eq!(
        (&read["stdout"], read["exit_code"] == 0),
        (&json!("text\n"), false)
    );
    let written = gate
        .permitted(run("2").widened(&beside, "write"))
        .await
        .unwrap();
    assert_eq!(written["exit_code"], 0);
    let after = gate.permitted(run("3")).await.unwrap();
    assert_eq!(
        (&after["stdout"], after["exit_code"] == 0),
        (&json!(""), false)
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text\nmore\n");
}

async fn no_widening_shows_a_folder_of_ward() {
    let gate = gate().await;
    let state = gate.state();
    for path in [
        state.join("rooms"),
        state.clone(),
        state.parent().unwrap().to_owned(),
    ] {
        let run = Permitted::new("1", "terminal.run", json!({"command": "true"}));
        let failure = gate
            .permitted(run.widened(&path, "read"))
            .await
            .unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Protected, "{failure}");
    }
}

async fn a_terminal_is_seen_by_its_session_alone() {
    let gate = gate().await;
    let open = Permitted::new("1", "terminal.open", json!({"argv": ["cat"]})).of("one");
    let opened = gate.permitted(open).await.unwrap();
    let id = opened["terminal_id"].as_str().unwrap();
    let write = json!({"terminal_id": id, "data": "x\n"});
    let other = Permitted::new("x", "terminal.write", write.clone()).of("two");
    assert_eq!(refused(&gate, other).await, ErrorKind::UnknownTerminal);
    let list = |session| Permitted::new(session, "terminal.list", json!({})).of(session);
    let count = |answer: Value| answer["terminals"].as_array().unwrap().len();
    assert_eq!(count(gate.permitted(list("one")).await.unwrap()), 1);
    assert_eq!(count(gate.permitted(list("two")).await.unwrap()), 0);
    let own = Permitted::new("2", "terminal.write", write).of("one");
    assert_eq!(gate.permitted(own).await.unwrap()["changed"], true);
}
