//! `ward exec` as it is used: exit codes, streams, what it says afterwards, and its end.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use support::Home;

/// How `ward exec` ends, and what it says on standard error.
fn exec(home: &Home, arguments: &[&str]) -> (Option<i32>, String) {
    let output = home.ward().arg("exec").args(arguments).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn shell(home: &Home, line: &str) -> (Option<i32>, String) {
    exec(home, &["--", "sh", "-c", line])
}

#[test]
fn the_exit_code_is_the_commands() {
    let home = Home::new();
    assert_eq!(exec(&home, &["--", "true"]), (Some(0), String::new()));
    assert_eq!(shell(&home, "exit 7"), (Some(7), String::new()));
    assert_eq!(shell(&home, "exit 125"), (Some(125), String::new()));
    assert_eq!(shell(&home, "kill -9 $$").0, Some(137));
    assert_eq!(shell(&home, "kill -TERM $$").0, Some(143));
    assert_eq!(exec(&home, &["true"]), (Some(0), String::new()));
}

#[test]
fn a_command_that_cannot_be_started_is_told_as_a_shell_would() {
    let home = Home::new();
    std::fs::write(home.workspace().join("plain"), "no program").unwrap();
    let (code, said) = exec(&home, &["--", "no-such-program"]);
    assert_eq!(code, Some(127), "{said}");
    assert!(
        said.starts_with("ward: `no-such-program` could not be started"),
        "{said}"
    );
    let (code, said) = exec(&home, &["--", "./plain"]);
    assert_eq!(code, Some(126), "{said}");
    assert!(
        said.starts_with("ward: `./plain` could not be started"),
        "{said}"
    );
}

#[test]
fn standard_streams_pass_through_byte_for_byte() {
    let home = Home::new();
    let mut ward = home
        .ward()
        .args(["exec", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut stdin = ward.stdin.take().unwrap();
    let sent = bytes.clone();
    let sender = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let mut received = Vec::new();
    ward.stdout
        .take()
        .unwrap()
        .read_to_end(&mut received)
        .unwrap();
    sender.join().unwrap();
    assert!(received == bytes);
    assert!(ward.wait().unwrap().success());
}

#[test]
fn it_runs_where_it_was_started_or_in_the_workspace_that_was_named() {
    let home = Home::new();
    let below = home.workspace().join("below");
    std::fs::create_dir(&below).unwrap();
    let pwd = |command: &mut Command| {
        let output = command.output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    };
    let workspace = home.workspace();
    let named = [
        "exec",
        "--workspace",
        workspace.to_str().unwrap(),
        "--",
        "pwd",
    ];
    assert_eq!(
        pwd(home.ward().args(named).current_dir(&below)),
        below.to_str().unwrap()
    );
    assert_eq!(
        pwd(home.ward().args(named).current_dir("/")),
        workspace.to_str().unwrap()
    );
}

#[test]
fn what_was_stopped_and_what_ended_it_is_said_in_plain_lines() {
    let home = Home::new();
    let (code, said) = shell(&home, "echo x 2>/dev/null >/usr/ward-was-here");
    assert_ne!(code, Some(0));
    assert!(
        said.contains("ward: stopped: write to /usr/ward-was-here\n"),
        "{said}"
    );
    assert!(!std::path::Path::new("/usr/ward-was-here").exists());

    let (code, said) = exec(&home, &["--timeout", "200ms", "--", "sleep", "60"]);
    assert_eq!(code, Some(143));
    assert_eq!(said, "ward: ended after 200ms; --timeout allows more\n");
}

#[test]
fn a_signal_to_ward_ends_the_command_and_leaves_nothing() {
    for (signal, code) in [("-TERM", 143), ("-INT", 143), ("-HUP", 143)] {
        let home = Home::new();
        let mut ward = home
            .ward()
            .args([
                "exec",
                "--",
                "sh",
                "-c",
                "sleep 61.7 & echo ready; wait; echo over",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(ward.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let asked = Instant::now();
        let pid = ward.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(ward.wait().unwrap().code(), Some(code), "{signal}");
        assert!(asked.elapsed() < Duration::from_secs(2), "{signal}");
        // The pipe ends only when the last process that holds it has ended: the sleep too.
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn a_command_ends_with_the_process_that_started_it_where_that_was_asked_for() {
    let home = Home::new();
    // One that does not end when it is asked to.
    let line = r#""$0" exec --until-parent-ends -- sh -c 'trap : TERM; echo ready; while :; do sleep 61.8; done' & wait"#;
    let mut starter = Command::new("sh")
        .args(["-c", line, env!("CARGO_BIN_EXE_ward")])
        .env_clear()
        .envs(home.environment())
        .current_dir(home.workspace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(starter.stdout.take().unwrap());
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    starter.kill().unwrap();
    starter.wait().unwrap();
    // The pipe ends only when the last process that holds it has ended.
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(said, "ready\n");
}

/// What comes out of a terminal in which `ward exec` runs a shell line, after typing `typed` as
/// soon as the line has said `ready`; and how it ended.
fn in_a_terminal(line: &str, typed: &str) -> (String, Option<i32>) {
    let home = Home::new();
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let mut terminal = File::from(openpt(flags).unwrap());
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let ward = home.ward();
    let mut child = Command::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(ward.get_program())
        .args(["exec", "--", "sh", "-c", line])
        .env("HOME", home.workspace().parent().unwrap())
        .current_dir(home.workspace())
        .stdin(side.try_clone().unwrap())
        .stdout(side.try_clone().unwrap())
        .stderr(side)
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut bytes = [0; 1024];
    let mut waiting = true;
    // Reading fails when the last process on the other side has gone.
    while let Ok(count) = terminal.read(&mut bytes) {
        said.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        if waiting && said.contains("ready") {
            terminal.write_all(typed.as_bytes()).unwrap();
            waiting = false;
        }
    }
    (said, child.wait().unwrap().code())
}

#[test]
fn a_terminal_passes_through_and_ctrl_c_is_the_commands() {
    let (said, code) = in_a_terminal("test -t 0 && test -t 1 && echo ready; cat", "hello\n\u{4}");
    assert_eq!(
        (said.as_str(), code),
        ("ready\r\nhello\r\nhello\r\n", Some(0))
    );
    let (_, code) = in_a_terminal("echo ready; sleep 60", "\u{3}");
    assert_eq!(code, Some(130));
    let trap = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let (said, code) = in_a_terminal(trap, "\u{3}");
    assert!(said.contains("caught"), "{said}");
    assert_eq!(code, Some(3));
}

#[test]
fn settings_and_flags_hold_inside() {
    let home = Home::new();
    home.settings("[limits]\npids = 400\n");
    let limit = |arguments: &[&str]| {
        let output = home.ward().arg("exec").args(arguments).output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    };
    let ask = "cat /proc/sys/kernel/pid_max; ulimit -u";
    let by_settings = limit(&["--", "sh", "-c", ask]);
    let by_flag = limit(&["--pids", "350", "--", "sh", "-c", ask]);
    assert_ne!(by_settings, by_flag);
}
