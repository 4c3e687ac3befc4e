//! Undo through `ward gate --stdio`: what a file action did can be taken back, once, and not over
//! what somebody did since.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use support::Home;

/// A gate that one client talks to.
struct Gate {
    ward: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Gate {
    fn start(home: &Home) -> Self {
        let mut ward = home
            .ward()
            .args(["gate", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut gate = Self {
            input: ward.stdin.take().unwrap(),
            output: BufReader::new(ward.stdout.take().unwrap()),
            ward,
            next: 0,
        };
        gate.call("initialize", json!({})).unwrap();
        gate
    }

    /// The result, or the error's `data` with its message.
    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, &params);
        self.answer(id)
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let body = body.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        id
    }

    fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let mut message = self.read();
            if message["id"] != json!(id) {
                continue;
            }
            if message["error"].is_null() {
                return Ok(message["result"].take());
            }
            let mut data = message["error"]["data"].take();
            data["message"] = message["error"]["message"].take();
            return Err(data);
        }
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the gate has ended"
            );
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[track_caller]
    fn act(&mut self, id: &str, action: &str, params: Value) -> Value {
        let asked =
            json!({"id": id, "action": action, "params": params, "session": "s", "ask": "deny"});
        self.call("action/execute", asked).unwrap()
    }

    #[track_caller]
    fn undo(&mut self, id: &str) -> Value {
        let undone = self.call("undo", json!({"action": id})).unwrap();
        undone["actions"][0].clone()
    }

    #[track_caller]
    fn refused(&mut self, params: Value) -> Value {
        self.call("undo", params).unwrap_err()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.ward.kill();
        let _ = self.ward.wait();
    }
}

/// Every path below a folder with its mode and what it is.
fn tree(folder: &Path) -> Vec<(String, u32, String)> {
    fn add(folder: &Path, top: &Path, found: &mut Vec<(String, u32, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let what = if about.is_dir() {
                add(&path, top, found);
                "folder".to_owned()
            } else if about.is_symlink() {
                format!("-> {}", path.read_link().unwrap().display())
            } else {
                String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
            };
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            let mode = if about.is_symlink() {
                0
            } else {
                about.permissions().mode() & 0o777
            };
            found.push((name, mode, what));
        }
    }
    let mut found = Vec::new();
    add(folder, folder, &mut found);
    found.sort();
    found
}

fn put(path: &Path, content: impl AsRef<[u8]>, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn workspace(home: &Home) -> PathBuf {
    home.workspace().canonicalize().unwrap()
}

#[test]
fn each_file_action_can_be_undone_and_the_undo_as_well() {
    let home = Home::new();
    let work = workspace(&home);
    put(&work.join("kept.txt"), "old\n", 0o640);
    put(&work.join("run.sh"), "#!/bin/sh\n", 0o755);
    put(&work.join("d/deep/x.bin"), [0, 159, 146, 150], 0o600);
    put(&work.join("d/y"), "y", 0o644);
    std::fs::set_permissions(work.join("d/deep"), std::fs::Permissions::from_mode(0o700)).unwrap();
    symlink("y", work.join("d/link")).unwrap();
    symlink("nowhere", work.join("dangling")).unwrap();
    let mut gate = Gate::start(&home);

    let patch = "--- a/kept.txt\n+++ b/kept.txt\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/p/q.txt\n@@ -0,0 +1 @@\n+q\n--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n";
    let cases = [
        (
            "write-new",
            "fs.write",
            json!({"path": "a/b/c.txt", "content": "c"}),
        ),
        (
            "write-over",
            "fs.write",
            json!({"path": "kept.txt", "content": "other\n"}),
        ),
        (
            "write-mode",
            "fs.write",
            json!({"path": "run.sh", "content": "x", "mode": "600"}),
        ),
        (
            "write-link",
            "fs.write",
            json!({"path": "dangling", "content": "x"}),
        ),
        (
            "edit",
            "fs.edit",
            json!({"path": "kept.txt", "edits": [{"old": "old", "new": "new"}]}),
        ),
        ("patch", "fs.patch", json!({"patch": patch})),
        ("mkdir", "fs.mkdir", json!({"path": "m/n"})),
        (
            "move-file",
            "fs.move",
            json!({"from": "kept.txt", "to": "z/moved.txt"}),
        ),
        (
            "move-over",
            "fs.move",
            json!({"from": "kept.txt", "to": "run.sh", "replace": true}),
        ),
        ("move-folder", "fs.move", json!({"from": "d", "to": "e"})),
        ("delete-file", "fs.delete", json!({"path": "run.sh"})),
        ("delete-link", "fs.delete", json!({"path": "d/link"})),
        (
            "delete-folder",
            "fs.delete",
            json!({"path": "d", "recursive": true}),
        ),
    ];
    for (id, action, params) in cases {
        let before = tree(&work);
        gate.act(id, action, params);
        let after = tree(&work);
        assert_ne!(before, after, "{id}");

        let undone = gate.undo(id);
        assert_eq!(tree(&work), before, "{id} was undone");
        assert_eq!(undone["action_id"], json!(id));
        let undo_id = undone["undo_id"].as_str().unwrap();
        assert_eq!(
            gate.refused(json!({"action": id}))["kind"],
            "closed",
            "{id}"
        );

        let redone = gate.undo(undo_id);
        let without_modes = |tree: Vec<(String, u32, String)>| -> Vec<(String, String)> {
            tree.into_iter()
                .map(|(path, _, what)| (path, what))
                .collect()
        };
        assert_eq!(
            without_modes(tree(&work)),
            without_modes(after),
            "{id} was done again"
        );
        assert_eq!(
            gate.refused(json!({"action": undo_id}))["kind"],
            "closed",
            "{id}"
        );
        // Then it holds again, and can be undone again, by its own name or by that of the redo.
        gate.undo(redone["undo_id"].as_str().unwrap());
        assert_eq!(tree(&work), before, "{id} was undone again");
    }
}

#[test]
fn what_changed_since_is_shown_and_nothing_is_undone() {
    let home = Home::new();
    let work = workspace(&home);
    put(&work.join("a"), "one\ntwo\n", 0o644);
    put(&work.join("b"), "b\n", 0o644);
    let mut gate = Gate::start(&home);
    let patch = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n";
    gate.act("p", "fs.patch", json!({"patch": patch}));
    put(&work.join("a"), "one\n2\nby hand \u{1b}[2J\n", 0o644);
    let before = tree(&work);
    let path = work.join("a");
    let path = path.to_str().unwrap();
    let shown = path.trim_start_matches('/');
    assert_eq!(
        gate.refused(json!({"action": "p"})),
        json!({
            "kind": "changed",
            "message": format!("{path} changed since, so nothing was undone. The diff shows what undoing would do to it; put it back by hand, or undo what came later first."),
            "paths": [path],
            "diff": format!("--- a/{shown}\n+++ b/{shown}\n@@ -1,3 +1,2 @@\n one\n-2\n-by hand \\u{{1b}}[2J\n+two\n"),
        })
    );
    assert_eq!(tree(&work), before);
    // As the action left it, or as it was before, it can be.
    put(&work.join("a"), "one\ntwo\n", 0o644);
    gate.undo("p");
    assert_eq!(
        tree(&work),
        [
            ("a".to_owned(), 0o644, "one\ntwo\n".to_owned()),
            ("b".to_owned(), 0o644, "b\n".to_owned()),
        ]
    );

    gate.act("m", "fs.mkdir", json!({"path": "new"}));
    put(&work.join("new/mine"), "mine", 0o644);
    let before = tree(&work);
    assert_eq!(gate.refused(json!({"action": "m"}))["kind"], "changed");
    assert_eq!(tree(&work), before);

    // A folder that was made on the way stays where somebody uses it.
    gate.act("w", "fs.write", json!({"path": "way/file", "content": "x"}));
    put(&work.join("way/mine"), "mine", 0o644);
    gate.undo("w");
    assert!(!work.join("way/file").exists() && work.join("way/mine").exists());
}

#[test]
fn a_session_is_undone_as_a_whole_the_newest_first() {
    let home = Home::new();
    let work = workspace(&home);
    put(&work.join("src/a.rs"), "a0", 0o644);
    put(&work.join("src/b.rs"), "b0", 0o644);
    let before = tree(&work);
    let mut gate = Gate::start(&home);
    gate.act(
        "1",
        "fs.write",
        json!({"path": "src/a.rs", "content": "a1"}),
    );
    gate.act("2", "fs.mkdir", json!({"path": "lib"}));
    gate.act("3", "fs.move", json!({"from": "src", "to": "lib/src"}));
    gate.act(
        "4",
        "fs.write",
        json!({"path": "lib/src/a.rs", "content": "a2"}),
    );
    gate.act(
        "5",
        "fs.write",
        json!({"path": "lib/src/new/c.rs", "content": "c"}),
    );
    gate.act("6", "fs.delete", json!({"path": "lib/src/b.rs"}));
    gate.act("7", "terminal.run", json!({"argv": ["true"]}));
    gate.act("8", "fs.read", json!({"path": "lib/src/a.rs"}));
    gate.act("9", "fs.delete", json!({"path": "lib", "recursive": true}));
    let after = tree(&work);

    // An older one on its own does not fit what is there now.
    assert_eq!(gate.refused(json!({"action": "4"}))["kind"], "changed");
    // The last one is the last that changed a file.
    let last = gate.call("undo", json!({})).unwrap();
    assert_eq!(last["actions"][0]["action_id"], "9");
    gate.undo(last["actions"][0]["undo_id"].as_str().unwrap());
    assert_eq!(tree(&work), after);

    let undone = gate.call("undo", json!({"session": "s"})).unwrap();
    let ids: Vec<&str> = undone["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["action_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["9", "6", "5", "4", "3", "2", "1"]);
    assert_eq!(tree(&work), before);
    assert_eq!(gate.refused(json!({"session": "s"}))["kind"], "closed");
    assert_eq!(gate.refused(json!({}))["kind"], "closed");
    assert_eq!(gate.refused(json!({"session": "other"}))["kind"], "unknown");
}

#[test]
fn what_cannot_be_undone_says_why() {
    let home = Home::new();
    let work = workspace(&home);
    put(&work.join("large"), vec![b'x'; 17 * 1024 * 1024], 0o644);
    let mut gate = Gate::start(&home);
    gate.act("read", "fs.stat", json!({"path": "large"}));
    gate.act("run", "terminal.run", json!({"command": "echo x > made"}));
    for id in ["read", "run"] {
        let refused = gate.refused(json!({"action": id}));
        assert_eq!(refused["kind"], "invalid_params", "{refused}");
    }
    gate.act("large", "fs.delete", json!({"path": "large"}));
    let refused = gate.refused(json!({"action": "large"}));
    assert_eq!(
        (&refused["kind"], &refused["unkept"]),
        (&json!("too_large"), &json!("too_large"))
    );
    // What is moved need not be kept.
    put(&work.join("large"), vec![b'x'; 17 * 1024 * 1024], 0o644);
    gate.act(
        "move",
        "fs.move",
        json!({"from": "large", "to": "elsewhere"}),
    );
    gate.undo("move");
    assert!(work.join("large").exists());

    assert_eq!(gate.refused(json!({"action": "none"}))["kind"], "unknown");
    assert_eq!(gate.refused(json!({"action": "../x"}))["kind"], "unknown");
    assert_eq!(
        gate.refused(json!({"action": "a", "session": "b"}))["kind"],
        "invalid_params"
    );
    // What was kept is for its owner alone, and without it nothing is undone.
    gate.act("w", "fs.write", json!({"path": "made", "content": "y"}));
    let kept = home.data().join("kept");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::remove_dir_all(kept).unwrap();
    assert_eq!(gate.refused(json!({"action": "w"}))["kind"], "unknown");
    assert_eq!(std::fs::read_to_string(work.join("made")).unwrap(), "y");
}

#[test]
fn what_lies_behind_a_link_that_took_a_folders_place_is_not_taken_for_gone() {
    let home = Home::new();
    let work = workspace(&home);
    let mut gate = Gate::start(&home);
    gate.act("new", "fs.write", json!({"path": "d/new", "content": "x"}));
    std::fs::rename(work.join("d"), work.join("e")).unwrap();
    symlink("e", work.join("d")).unwrap();
    let refused = gate.refused(json!({"action": "new"}));
    assert_eq!(refused["kind"], "changed");
    let told = format!("{} is a symbolic link now", work.join("d").display());
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with(&told), "{message}");
    assert_eq!(std::fs::read(work.join("e/new")).unwrap(), b"x");
    // It is not used up by that.
    std::fs::remove_file(work.join("d")).unwrap();
    std::fs::rename(work.join("e"), work.join("d")).unwrap();
    gate.undo("new");
    assert_eq!(tree(&work), []);
}

#[test]
fn the_command_prints_by_which_id_an_undo_is_taken_back() {
    let home = Home::new();
    let file = workspace(&home).join("new");
    let mut gate = Gate::start(&home);
    gate.act("new", "fs.write", json!({"path": "new", "content": "x"}));
    drop(gate);
    let undo = |arguments: &[&str]| {
        let output = home.ward().arg("undo").args(arguments).output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success() == err.is_empty(), "{err}");
        format!("{out}{err}")
    };
    let id_in = |told: &str| {
        let line = told.lines().last().unwrap().trim();
        let id = line.strip_prefix("ward undo ").unwrap();
        id.strip_suffix(" takes this back").unwrap().to_owned()
    };
    let told = undo(&[]);
    let first = id_in(&told);
    assert_eq!(
        told,
        format!(
            "Undone: new\n  removed   {}\n  ward undo {first} takes this back\n",
            file.display()
        )
    );
    let told = undo(&["new"]);
    assert_eq!(
        told,
        format!(
            "ward: This action was undone already. Undo `{first}`, which did, to have it again.\n"
        )
    );
    let told = undo(&[&first]);
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
    let told = undo(&[&id_in(&told)]);
    assert!(!file.exists(), "{told}");
}

#[test]
fn what_was_done_before_a_restart_can_be_undone_after_it() {
    let home = Home::new();
    let work = workspace(&home);
    put(&work.join("a"), "old", 0o644);
    let mut gate = Gate::start(&home);
    gate.act("w", "fs.write", json!({"path": "a", "content": "new"}));
    drop(gate);
    let mut gate = Gate::start(&home);
    let undone = gate.undo("w");
    assert_eq!(std::fs::read_to_string(work.join("a")).unwrap(), "old");
    let change = &undone["files"][0];
    assert_eq!(change["path"], json!(work.join("a")));
    assert_eq!(
        change["before"]["digest"],
        json!(protocol::Digest::of(b"new"))
    );
    assert_eq!(
        change["after"]["digest"],
        json!(protocol::Digest::of(b"old"))
    );
    assert_eq!(change["kept"], json!(true));
}

#[test]
fn who_is_asked_sees_what_would_change_and_can_undo_it_outside_the_workspace_too() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().canonicalize().unwrap().join("notes");
    put(&file, "one\ntwo\n", 0o600);
    let mut gate = Gate::start(&home);
    let edit = json!({"path": file, "edits": [{"old": "two", "new": "\u{202e}2"}]});
    let asked = json!({"id": "e", "action": "fs.edit", "params": edit});
    let id = gate.send("action/execute", &asked);
    let approval = loop {
        let mut message = gate.read();
        assert_ne!(message["id"], json!(id), "nobody was asked: {message}");
        if message["method"] == "permission/requested" {
            break message["params"].take();
        }
    };
    let shown = file.to_str().unwrap().trim_start_matches('/');
    assert_eq!(
        approval["preview"],
        json!(format!(
            "--- a/{shown}\n+++ b/{shown}\n@@ -1,2 +1,2 @@\n one\n-two\n+\\u{{202e}}2\n"
        ))
    );
    let answer = json!({"id": approval["id"], "decision": "allow", "digest": approval["digest"]});
    let respond = gate.send("permission/respond", &answer);
    gate.answer(respond).unwrap();
    gate.answer(id).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n\u{202e}2\n");
    gate.undo("e");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
