//! What the command line says, as people see it: arguments in; exit code, standard output and
//! standard error out.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use support::Home;

#[track_caller]
fn snapshot(name: &str, arguments: &[&str]) {
    insta::assert_snapshot!(name, Home::new().transcript(arguments));
}

#[test]
fn help_says_what_ward_is_and_what_it_can_do() {
    snapshot("no_arguments", &[]);
    snapshot("help", &["--help"]);
    snapshot("short_help", &["-h"]);
}

#[test]
fn every_sub_command_has_a_help_worth_reading() {
    for name in [
        "serve",
        "chat",
        "exec",
        "runtime",
        "gate",
        "approvals",
        "grants",
        "ledger",
        "undo",
        "notebook",
        "roles",
        "policy",
        "trust",
        "tokens",
        "aside",
        "doctor",
        "completions",
    ] {
        snapshot(&format!("{name}_help"), &[name, "--help"]);
    }
    for name in ["run", "agent"] {
        let args = ["notebook", name, "--help"];
        snapshot(&format!("notebook_{name}_help"), &args);
    }
}

#[test]
fn who_has_read_enough_is_no_failure() {
    let home = Home::new();
    for arguments in [
        &["roles", "list"][..],
        &["roles", "list", "--json"],
        &["roles", "check"],
        &["approvals"],
        &["grants"],
        &["ledger", "tail"],
        &["ledger", "export"],
        &["ledger", "verify"],
        &["tokens", "list"],
        &["models"],
        &["openapi"],
        &["completions", "bash"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = home.ward().args(arguments).stdout(writer).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), told.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_folder_without_a_record_is_not_found_to_have_a_whole_one() {
    let home = Home::new();
    let folder = home.workspace().join("mistyped");
    for what in ["tail", "verify", "export"] {
        let mut ward = home.ward();
        let output = ward.args(["ledger", what, "--data"]).arg(&folder).output();
        let output = output.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("There is no record in"), "{told}");
        assert!(!folder.exists());
    }
}

#[test]
fn a_token_is_for_a_role_that_there_is() {
    let home = Home::new();
    let refused = home.transcript(&["tokens", "add", "--role", "bakend"]);
    insta::assert_snapshot!("tokens_unknown_role", refused);
    let listed = home.transcript(&["tokens", "list"]);
    assert!(!listed.contains("agent"), "{listed}");
    let roles = home.workspace().join(".ward/roles");
    std::fs::create_dir_all(&roles).unwrap();
    std::fs::write(roles.join("dev.md"), "---\nskills: [fs.read]\n---\n").unwrap();
    let output = home
        .ward()
        .args(["tokens", "add", "--role", "dev"])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && told.contains("is not trusted"),
        "{told}"
    );
}

#[test]
fn the_version_is_told() {
    snapshot("version", &["--version"]);
}

#[test]
fn what_is_not_understood_is_refused_with_a_hint() {
    snapshot("unknown_sub_command", &["exce", "ls"]);
    snapshot("unknown_flag", &["doctor", "--jsn"]);
    snapshot("bad_log_level", &["--log", "loud", "doctor"]);
    snapshot("unknown_shell", &["completions", "tcsh"]);
}

#[test]
fn exec_fails_with_125_and_a_sentence_before_anything_has_run() {
    snapshot("exec_without_a_command", &["exec"]);
    snapshot(
        "exec_bad_memory",
        &["exec", "--memory", "lots", "--", "true"],
    );
    snapshot("exec_no_memory", &["exec", "--memory", "0M", "--", "true"]);
    snapshot(
        "exec_bad_timeout",
        &["exec", "--timeout", "60", "--", "true"],
    );
    snapshot("exec_bad_pids", &["exec", "--pids", "0", "--", "true"]);
    snapshot(
        "exec_bad_net",
        &["exec", "--net", "a.org,,b.org", "--", "true"],
    );
    snapshot(
        "exec_unknown_flag",
        &["exec", "--memry", "1G", "--", "true"],
    );
    snapshot(
        "exec_no_workspace",
        &["exec", "--workspace", "/nowhere/at/all", "--", "true"],
    );
    snapshot(
        "exec_workspace_is_a_file",
        &["exec", "--workspace", "/etc/passwd", "--", "true"],
    );
}

#[test]
fn runtime_is_told_where_to_talk_and_does_not_open_itself_to_others() {
    snapshot("runtime_nowhere", &["runtime"]);
    snapshot(
        "runtime_both",
        &["runtime", "--stdio", "--listen", "127.0.0.1:0"],
    );
    snapshot("runtime_remote", &["runtime", "--listen", "0.0.0.0:0"]);
    snapshot(
        "runtime_short_token",
        &["runtime", "--listen", "127.0.0.1:0", "--token", "secret"],
    );
    snapshot("runtime_end_of_input", &["runtime", "--stdio"]);
    snapshot(
        "runtime_in_the_home_folder",
        &["runtime", "--stdio", "--workspace", ".."],
    );
    snapshot("aside_unknown", &["aside", "restore", "nothing"]);
}

#[test]
fn a_mistake_in_the_settings_stops_ward_and_is_named() {
    let home = Home::new();
    home.settings("[sandbox]\nminimum = \"room\"\nallow_all = true\n");
    insta::assert_snapshot!(
        "settings_unknown_key",
        home.transcript(&["exec", "--", "true"])
    );
    home.settings("[sandbox]\nminimum = \"strong\"\n");
    insta::assert_snapshot!("settings_unknown_tier", home.transcript(&["doctor"]));
}

#[test]
fn completions_are_there_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Home::new()
            .ward()
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("exec"), "{shell}");
        assert!(script.contains("doctor"), "{shell}");
    }
}

#[test]
fn doctor_tells_programs_what_it_tells_people() {
    let output = Home::new()
        .ward()
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["minimum"], "room");
    assert_eq!(report["ok"], output.status.success());
    assert!(["room", "walls", "none"].contains(&report["tier"].as_str().unwrap()));
    assert!(report["limits"]["memory"].as_u64().unwrap() > 0);
}
