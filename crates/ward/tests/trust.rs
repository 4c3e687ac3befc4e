//! `ward trust`: what a workspace brings along counts once the person has said so, as long as it
//! stays as it was.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use support::Home;

const RULES: &str = "[[rules]]\nallow = \"net(example.com:443)\"\nreason = \"The tests fetch.\"\n\n\
    [[rules]]\ndeny = \"terminal.run(make install *)\"\n";
const ROLE: &str = "---\nname: dev\nmode: full\nskills: [fs.read, net]\n---\nDo.\n";

#[track_caller]
fn write(home: &Home, name: &str, text: &str) {
    let file = home.workspace().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The verdict, as `ward policy explain` prints it first; or what it says instead.
fn verdict(home: &Home, arguments: &[&str]) -> String {
    let output = home
        .ward()
        .args(["policy", "explain"])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match output.status.success() {
        true => text(&output.stdout)
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
        false => text(&output.stderr),
    }
}

fn trust(home: &Home, arguments: &[&str]) -> bool {
    let mut command = home.ward();
    command.arg("trust").args(arguments);
    command.output().unwrap().status.success()
}

#[test]
fn an_allow_counts_only_while_its_workspace_is_trusted_as_it_is() {
    let home = Home::new();
    write(&home, "ward.toml", RULES);
    let net = || verdict(&home, &["net", "example.com:443"]);
    let install = || verdict(&home, &["terminal.run", "command=make install"]);
    assert_eq!((net().as_str(), install().as_str()), ("ask", "deny"));
    assert!(trust(&home, &["--yes"]));
    assert_eq!((net().as_str(), install().as_str()), ("allow", "deny"));
    write(&home, "ward.toml", &format!("{RULES}\n"));
    assert_eq!((net().as_str(), install().as_str()), ("ask", "deny"));
    // As it was, it is what was trusted.
    write(&home, "ward.toml", RULES);
    assert_eq!(net(), "allow");
    assert!(trust(&home, &["--revoke"]));
    assert_eq!(net(), "ask");
}

#[test]
fn a_rule_of_the_person_stays_above_a_trusted_workspace() {
    let home = Home::new();
    write(&home, "ward.toml", RULES);
    write(
        &home,
        "../.config/ward/rules.toml",
        "[[rules]]\ndeny = \"net\"\n",
    );
    assert!(trust(&home, &["--yes"]));
    assert_eq!(verdict(&home, &["net", "example.com:443"]), "deny");
}

#[test]
fn a_role_of_a_workspace_is_refused_until_it_is_trusted() {
    let home = Home::new();
    write(&home, ".ward/roles/dev.md", ROLE);
    let read = || verdict(&home, &["--role", "dev", "fs.read", "path=."]);
    assert!(read().contains("not trusted"), "{}", read());
    assert!(trust(&home, &["--yes"]));
    assert_eq!(read(), "allow");
    // Another role may take rights from a skill that changed.
    write(&home, ".ward/skills/s/SKILL.md", "---\nname: s\n---\n");
    assert!(read().contains("not trusted"), "{}", read());
}

#[test]
fn a_link_in_place_of_the_rules_stops_ward_and_cannot_be_trusted() {
    let home = Home::new();
    write(&home, "../elsewhere.toml", RULES);
    symlink("../elsewhere.toml", home.workspace().join("ward.toml")).unwrap();
    let explained = verdict(&home, &["net", "example.com:443"]);
    assert!(explained.contains("symbolic link"), "{explained}");
    insta::assert_snapshot!("trust_link", home.transcript(&["trust", "--yes"]));
}

#[test]
fn what_would_be_allowed_is_shown_with_what_is_new() {
    let home = Home::new();
    let snapshot = |name: &str, arguments: &[&str]| {
        insta::assert_snapshot!(name, home.transcript(arguments));
    };
    snapshot("trust_nothing", &["trust"]);
    snapshot("trust_list_none", &["trust", "--list"]);
    write(&home, "ward.toml", RULES);
    write(&home, ".ward/roles/dev.md", ROLE);
    snapshot("trust_nobody_to_ask", &["trust"]);
    assert_eq!(verdict(&home, &["net", "example.com:443"]), "ask");
    snapshot("trust_yes", &["trust", "--yes"]);
    snapshot("trust_again", &["trust"]);
    snapshot("trust_list", &["trust", "--list"]);
    write(
        &home,
        "ward.toml",
        &RULES.replace("example.com", "evil\\u001b.example.org"),
    );
    snapshot("trust_mistake", &["trust", "--yes"]);
    write(
        &home,
        "ward.toml",
        &RULES
            .replace("example.com:443", "*")
            .replace("tests", "te\\u001b[2Jsts"),
    );
    write(
        &home,
        ".claude/agents/watcher.md",
        "---\nname: watcher\ntools: Bash\n---\n",
    );
    write(&home, ".ward/roles/odd.md", "---\nskils: []\n---\n");
    snapshot("trust_changed", &["trust", "--yes"]);
    write(&home, "ward.toml", "");
    snapshot("trust_list_changed", &["trust", "--list"]);
    snapshot("trust_revoke", &["trust", "--revoke"]);
    snapshot("trust_revoke_again", &["trust", "--revoke"]);
    snapshot("trust_no_folder", &["trust", "nowhere"]);
    let file = home.workspace().join("../.config/ward/trust.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::write(&file, "[").unwrap();
    snapshot("trust_broken", &["trust", "--list"]);
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let home = Home::new();
    write(&home, "ward.toml", RULES);
    let answer = |text: &str| {
        let (mut master, terminal) = terminal();
        let mut child = home
            .ward()
            .arg("trust")
            .stdin(terminal)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // It has asked once it writes the question.
        let mut asked = String::new();
        let mut stderr = child.stderr.take().unwrap();
        while !asked.ends_with("] ") {
            let mut byte = [0];
            stderr.read_exact(&mut byte).unwrap();
            asked.push(char::from(byte[0]));
        }
        assert_eq!(asked, "Trust it? [y/N] ");
        master.write_all(text.as_bytes()).unwrap();
        child.wait().unwrap().success()
    };
    assert!(!answer("\n"));
    assert!(!answer("yess\n"));
    assert_eq!(verdict(&home, &["net", "example.com:443"]), "ask");
    assert!(answer("y\n"));
    assert_eq!(verdict(&home, &["net", "example.com:443"]), "allow");
}

/// Both ends of a pseudo-terminal.
fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = std::fs::File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (master.into(), terminal)
}
