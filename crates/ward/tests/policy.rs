//! `ward policy` and `ward roles`: what would be decided, and who agents can be.

mod support;

use std::path::PathBuf;

use support::Home;

/// Writes a file below the person's config folder.
fn config(home: &Home, name: &str, text: &str) {
    let folder: PathBuf = home.workspace().join("../.config/ward");
    write(folder.join(name), text);
}

/// Writes a file in the workspace.
fn workspace(home: &Home, name: &str, text: &str) {
    write(home.workspace().join(name), text);
}

#[track_caller]
fn write(file: PathBuf, text: &str) {
    let made = file.parent().map(std::fs::create_dir_all);
    assert!(matches!(made, Some(Ok(()))));
    assert!(std::fs::write(file, text).is_ok());
}

#[track_caller]
fn snapshot(home: &Home, name: &str, arguments: &[&str]) {
    insta::assert_snapshot!(name, home.transcript(arguments));
}

#[test]
fn a_decision_is_explained_with_everything_that_had_a_say() {
    let home = Home::new();
    let explain = |name: &str, arguments: &[&str]| {
        let arguments = [&["policy", "explain"], arguments].concat();
        snapshot(&home, name, &arguments);
    };
    explain(
        "explain_missing_skill",
        &["--role", "watcher", "fs.write", "path=a", "content=x"],
    );
    explain(
        "explain_run",
        &["terminal.run", "command=cargo test | tee log > out.txt"],
    );
    explain(
        "explain_full",
        &[
            "--role",
            "backend",
            "--mode",
            "full",
            "terminal.run",
            "argv:=[\"git\",\"push\"]",
        ],
    );
    explain(
        "explain_ceiling",
        &["--role", "architect", "--mode", "full", "fs.read", "path=."],
    );
    explain("explain_outside", &["fs.write", "path=../out", "content=x"]);
    assert!(std::os::unix::fs::symlink("..", home.workspace().join("up")).is_ok());
    explain("explain_link", &["fs.write", "path=up/out", "content=x"]);
    let full = ["--role", "backend", "--mode", "full", "terminal.run"];
    explain(
        "explain_redirected",
        &[&full[..], &["command=ls > up/out"]].concat(),
    );
    explain("explain_net", &["net", "example.com:443"]);
    explain(
        "explain_protected",
        &["fs.write", r#"{"path": "AGENTS.md", "content": "x"}"#],
    );
    explain(
        "explain_json",
        &["--json", "--role", "watcher", "net", "example.com:443"],
    );
}

#[test]
fn what_cannot_be_explained_is_told() {
    let home = Home::new();
    for (name, arguments) in [
        (
            "explain_no_role",
            &["policy", "explain", "--role", "bakend", "fs.read", "path=a"][..],
        ),
        (
            "explain_no_action",
            &["policy", "explain", "fs.raed", "path=a"],
        ),
        ("explain_no_params", &["policy", "explain", "fs.read", "a"]),
        (
            "explain_bad_mode",
            &["policy", "explain", "--mode", "off", "fs.read", "path=a"],
        ),
    ] {
        snapshot(&home, name, arguments);
    }
}

#[test]
fn rules_of_the_person_count_and_those_of_the_workspace_only_restrict() {
    let home = Home::new();
    config(
        &home,
        "rules.toml",
        "[[rules]]\nallow = \"terminal.run(make *)\"\n",
    );
    workspace(
        &home,
        "ward.toml",
        "[[rules]]\nallow = \"net\"\n\n[[rules]]\ndeny = \"terminal.run(make install *)\"\nreason = \"Packages install.\"\n",
    );
    let full = ["policy", "explain", "--role", "backend", "--mode", "full"];
    snapshot(
        &home,
        "rules_person",
        &[&full[..], &["terminal.run", "command=make test"]].concat(),
    );
    snapshot(
        &home,
        "rules_workspace",
        &[&full[..], &["terminal.run", "command=env make install"]].concat(),
    );
    snapshot(
        &home,
        "rules_untrusted",
        &[&full[..], &["net", "example.com:443"]].concat(),
    );
}

#[test]
fn it_is_said_that_rules_about_files_do_not_hold_for_what_a_command_reads() {
    let home = Home::new();
    config(
        &home,
        "rules.toml",
        "[[rules]]\ndeny = \"fs.read(**/*.pem)\"\n",
    );
    snapshot(
        &home,
        "explain_files_of_a_command",
        &["policy", "explain", "terminal.run", "command=cat a.pem"],
    );
}

#[test]
fn a_redirection_to_who_knows_where_asks_in_full_mode() {
    let home = Home::new();
    config(
        &home,
        "rules.toml",
        "[[rules]]\nallow = \"terminal.run(echo *)\"\n[[rules]]\nallow = \"fs.write\"\n",
    );
    let explain = home
        .ward()
        .args(["policy", "explain", "--role", "backend", "--mode", "full"])
        .args(["terminal.run", "command=echo x > $PWD/ward.toml"])
        .output()
        .unwrap();
    let told = String::from_utf8(explain.stdout).unwrap();
    // Not a snapshot: the grant that it offers has a digest in it, which is of the folder too.
    let because = "ask  role backend, mode full\n  because of perhaps protected `$PWD/ward.toml` (built-in:1): where it leads is not known, and it may be what agents may not change\n";
    assert!(told.starts_with(because), "{told}");
    assert!(told.contains("a grant of `terminal.run(=sha256:"), "{told}");
}

#[test]
fn a_mistake_in_the_rules_stops_ward_and_is_named() {
    let home = Home::new();
    config(&home, "rules.toml", "[[rules]]\ndeny = \"fs.wirte\"\n");
    snapshot(
        &home,
        "rules_mistake",
        &["policy", "explain", "fs.read", "path=a"],
    );
    snapshot(&home, "roles_check_rules", &["roles", "check"]);
}

#[test]
fn a_table_of_expectations_is_checked() {
    let home = Home::new();
    config(
        &home,
        "rules.toml",
        "[[rules]]\ndeny = \"terminal.run(git push *)\"\n",
    );
    workspace(
        &home,
        "good.toml",
        "[[tests]]\naction = \"terminal.run\"\nparams = { command = \"sh -c 'git push'\" }\nexpect = \"deny\"\n\
         rule = \"terminal.run(git push *)\"\n\n[[tests]]\nrole = \"watcher\"\naction = \"fs.read\"\n\
         params = { path = \".\" }\nexpect = \"allow\"\n\n[[tests]]\naction = \"net\"\nhosts = [\"a.org:443\"]\nexpect = \"ask\"\n",
    );
    workspace(
        &home,
        "bad.toml",
        "[[tests]]\naction = \"terminal.run\"\nparams = { command = \"git status\" }\nexpect = \"deny\"\n",
    );
    workspace(
        &home,
        "odd.toml",
        "[[tests]]\naction = \"fs.read\"\nexpects = \"deny\"\n",
    );
    for (name, row) in [
        (
            "test_net_params",
            "action = \"net\"\nparams = { host = \"example.com:443\" }\n",
        ),
        ("test_net_nothing", "action = \"net\"\n"),
        (
            "test_wall_hosts",
            "action = \"wall\"\npaths = [\"a\"]\nhosts = [\"a:1\"]\n",
        ),
        (
            "test_action_hosts",
            "action = \"fs.read\"\nparams = { path = \".\" }\nhosts = [\"a:1\"]\n",
        ),
    ] {
        let file = format!("{name}.toml");
        workspace(&home, &file, &format!("[[tests]]\n{row}expect = \"ask\"\n"));
        snapshot(&home, name, &["policy", "test", &file]);
    }
    snapshot(&home, "test_good", &["policy", "test", "good.toml"]);
    snapshot(&home, "test_bad", &["policy", "test", "bad.toml"]);
    snapshot(&home, "test_odd", &["policy", "test", "odd.toml"]);
    snapshot(&home, "test_missing", &["policy", "test", "none.toml"]);
}

#[test]
fn roles_are_listed_with_what_they_may_do_and_checked() {
    let home = Home::new();
    snapshot(&home, "roles_list", &["roles", "list"]);
    snapshot(&home, "roles_check", &["roles", "check"]);
    config(
        &home,
        "skills/release/SKILL.md",
        "---\nname: release\nallowed-tools: Bash(git tag:*)\n---\n",
    );
    config(
        &home,
        "roles/dev.md",
        "---\nskills: [fs.read, release]\nlimits:\n  turns: 20\n---\nDo.\n",
    );
    workspace(
        &home,
        ".ward/roles/dev.md",
        "---\nskills: ['*']\nmode: full\n---\n",
    );
    workspace(
        &home,
        ".claude/agents/review.md",
        "---\nname: review\ntools: Read, Grep\n---\n",
    );
    workspace(
        &home,
        ".ward/roles/odd.md",
        "---\nname: odd\nskils: [fs.read]\n---\n",
    );
    snapshot(&home, "roles_list_more", &["roles", "list"]);
    snapshot(&home, "roles_list_json", &["roles", "list", "--json"]);
    snapshot(&home, "roles_check_mistakes", &["roles", "check"]);
    snapshot(
        &home,
        "roles_untrusted",
        &["policy", "explain", "--role", "review", "fs.read", "path=."],
    );
}
