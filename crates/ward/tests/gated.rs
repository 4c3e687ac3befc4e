//! `ward runtime --gated` as a gate starts it: over a private pipe, with Ward's own environment.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::Home;

/// What a test waits for at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gate: the one who started the runtime.
struct Gate {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Gate {
    fn start(command: &mut Command) -> Self {
        Self::start_with(command, &[])
    }

    /// Starts it with folders that are Ward's own beside the usual ones.
    fn start_with(command: &mut Command, own: &[&Path]) -> Self {
        command.args(["runtime", "--stdio", "--gated"]);
        for folder in own {
            command.arg("--own").arg(folder);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut gate = Self {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            asked: 0,
        };
        let known = gate.ask("initialize", &json!({})).unwrap();
        assert_eq!(known["authority"], "gated");
        gate
    }

    /// Asks, and passes over what is told before the answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.asked += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
                .to_string();
        let to = self.to.as_mut().unwrap();
        write!(to, "Content-Length: {}\r\n\r\n{request}", request.len()).unwrap();
        to.flush().unwrap();
        loop {
            let message = self.next();
            if message["id"] == json!(self.asked) {
                return match message.get("error") {
                    Some(error) => Err(error["data"]["kind"].clone()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "it has ended");
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Looks, decides that it may, and has it done.
    fn permitted(&mut self, action: &str, params: Value, mode: &str) -> Result<Value, Value> {
        let looked = json!({"action": action, "params": params});
        let facts = self.ask("action/resolve", &looked)?["facts"].clone();
        let request = json!({
            "id": format!("{}", self.asked),
            "action": action,
            "params": params,
            "permit": {"digest": protocol::Digest::of(b"decided"), "mode": mode},
            "wall": {"beyond": true},
            "expect": facts,
        });
        self.ask("action/execute", &request)
    }

    fn said(&mut self, line: &str, mode: &str) -> String {
        let params = json!({"command": line});
        let answer = self.permitted("terminal.run", params, mode).unwrap();
        assert_eq!(answer["exit_code"], 0, "{answer}");
        answer["stdout"].as_str().unwrap().to_owned()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.child.wait();
    }
}

#[test]
fn it_is_for_gates_alone_and_over_standard_streams_alone() {
    let home = Home::new();
    for arguments in [
        &["runtime", "--gated", "--listen", "127.0.0.1:0"][..],
        &["runtime", "--gated"],
        &["runtime", "--stdio", "--own", "/x"],
    ] {
        let output = home.ward().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let help = home.ward().args(["runtime", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(
        !help.contains("--gated") && !help.contains("--own"),
        "{help}"
    );
}

#[test]
fn the_secrets_of_ward_reach_no_command_in_either_mode() {
    let home = Home::new();
    let mut ward = home.ward();
    ward.env("WARD_TOKEN", "secret-1")
        .env("MODEL_API_KEY", "secret-2")
        .env("AWS_SECRET_ACCESS_KEY", "secret-3")
        .env("https_proxy", "http://user:secret-4@proxy.test")
        .env("NO_PROXY", "intern.test");
    let mut gate = Gate::start(&mut ward);
    for mode in ["sandbox", "full"] {
        let environment = gate.said("env", mode);
        assert!(environment.contains("HOME="), "{mode}: {environment}");
        assert!(!environment.contains("secret"), "{mode}: {environment}");
    }
    assert!(gate.said("env", "full").contains("NO_PROXY=intern.test"));
}

#[test]
fn a_key_in_a_home_folder_that_is_the_workspace_is_read_in_full_mode_alone() {
    let home = Home::new();
    let folder = home.workspace().parent().unwrap().to_owned();
    std::fs::create_dir(folder.join(".ssh")).unwrap();
    std::fs::write(folder.join(".ssh/id_ed25519"), "key").unwrap();
    let mut gate = Gate::start(home.ward().current_dir(&folder));
    let confined = [
        ("fs.read", json!({"path": ".ssh/id_ed25519"})),
        ("fs.stat", json!({"path": ".ssh/id_ed25519"})),
        ("fs.list", json!({"path": ".ssh"})),
        ("fs.search", json!({"pattern": "key"})),
        ("fs.write", json!({"path": ".bashrc", "content": "x"})),
        ("terminal.run", json!({"command": "cat .ssh/id_ed25519"})),
    ];
    for (action, params) in confined {
        let refused = gate.permitted(action, params, "sandbox");
        assert_eq!(refused, Err(json!("sandbox_failed")), "{action}");
    }
    assert!(!folder.join(".bashrc").exists());
    let read = gate.permitted("fs.read", json!({"path": ".ssh/id_ed25519"}), "full");
    assert_eq!(read.unwrap()["content"], "key");
}

#[test]
fn full_mode_has_the_real_home_folder_and_sandbox_mode_a_scratch_one() {
    let home = Home::new();
    let folder = home.workspace().parent().unwrap().to_owned();
    std::fs::write(folder.join("note"), "mine").unwrap();
    let mut gate = Gate::start(&mut home.ward());
    assert_eq!(gate.said("cat ~/note", "full"), "mine");
    assert_eq!(
        gate.said("cat ~/note 2>/dev/null || echo none", "sandbox"),
        "none\n"
    );
    assert_eq!(
        gate.said("cd ~ && pwd", "full"),
        format!("{}\n", folder.display())
    );
}

#[test]
fn the_folders_of_ward_are_closed_also_those_it_was_told_of() {
    let home = Home::new();
    let folder = home.workspace().parent().unwrap().to_owned();
    let elsewhere = folder.join("elsewhere");
    for own in [&home.data(), &elsewhere, &folder.join(".config/ward")] {
        std::fs::create_dir_all(own).unwrap();
        std::fs::write(own.join("token"), "secret").unwrap();
    }
    let mut gate = Gate::start(&mut home.ward());
    let read =
        |gate: &mut Gate, path: &Path, mode| gate.permitted("fs.read", json!({"path": path}), mode);
    assert!(read(&mut gate, &elsewhere.join("token"), "sandbox").is_ok());
    drop(gate);

    let mut gate = Gate::start_with(&mut home.ward(), &[&elsewhere]);
    for own in [&home.data(), &elsewhere, &folder.join(".config/ward")] {
        for mode in ["sandbox", "full"] {
            let refused = read(&mut gate, &own.join("token"), mode).unwrap_err();
            assert_eq!(refused, "protected", "{} {mode}", own.display());
        }
    }
}

#[test]
fn all_that_is_trusted_ends_when_the_gate_is_gone_or_the_runtime_is_killed() {
    for kill in [false, true] {
        let home = Home::new();
        let mut gate = Gate::start(&mut home.ward());
        let word = format!("{}.{}", 200_000 + std::process::id(), u8::from(kill));
        let line = format!("setsid -f sleep {word} >/dev/null 2>&1 </dev/null; sleep {word}");
        let params = json!({"command": line, "background": true});
        gate.permitted("terminal.run", params, "full").unwrap();
        until_processes(&word, 2);
        if kill {
            gate.child.kill().unwrap();
        } else {
            drop(gate.to.take());
        }
        until_processes(&word, 0);
    }
}

fn until_processes(word: &str, count: usize) {
    let began = Instant::now();
    let has_word = |line: &Vec<u8>| {
        line.split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    };
    loop {
        let running = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
            .filter(has_word)
            .count();
        if running == count {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{running} run, not {count}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
