//! Command lines, what they would run, and what is decided about them in three situations:
//!
//! - *rules*: full mode, every skill, and rules that allow `cargo test`, `git status`, `ls`,
//!   `find`, `grep` and writing below `out/`, and deny `git push` and `rm`;
//! - *skill*: sandbox mode and a role that has `terminal.run(cargo test *)` and `fs.write(out/**)`;
//! - *room*: sandbox mode, every skill, and only the rules that deny.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;
mod tricks;

use std::fmt::Write as _;

use policy::command::{Line, Part};
use policy::{Mode, Verdict};
use protocol::ActionName;
use support::{WORKSPACE, decision, line, role, rules};
use tricks::TRICKS;

const DENY: [&str; 2] = ["deny terminal.run(git push *)", "deny terminal.run(rm *)"];

fn verdicts(text: &str) -> [Verdict; 3] {
    let mut some = rules(&[
        "allow terminal.run(cargo test *)",
        "allow terminal.run(git status *)",
        "allow terminal.run(ls *)",
        "allow terminal.run(find *)",
        "allow terminal.run(grep *)",
        "allow fs.write(out/**)",
        "allow fs.read(**)",
    ]);
    some.extend(rules(&DENY));
    let all = role("all", &["*"]);
    let tester = role(
        "tester",
        &["terminal.run(cargo test *)", "fs.write(out/**)", "fs.read"],
    );
    let facts = line(text);
    let action = ActionName::TerminalRun;
    [
        decision(&all, Mode::Full, &some, action, &facts).verdict,
        decision(&tester, Mode::Sandbox, &rules(&[]), action, &facts).verdict,
        decision(&all, Mode::Sandbox, &rules(&DENY), action, &facts).verdict,
    ]
}

fn table(lines: &[&str]) -> String {
    let mut table = String::new();
    for text in lines {
        let facts = line(text);
        let seen = Line::of(facts.command.as_ref().unwrap(), WORKSPACE);
        let [by_rules, by_skill, room] = verdicts(text);
        writeln!(
            table,
            "{}",
            text.replace('\n', "⏎")
                .replace('\t', "⇥")
                .replace('\r', "␍")
        )
        .unwrap();
        writeln!(
            table,
            "    rules {by_rules:<5}  skill {by_skill:<5}  room {room}"
        )
        .unwrap();
        for command in &seen.commands {
            let part = match command.part {
                Part::Acts => "runs",
                Part::Surrounds => "through",
            };
            writeln!(
                table,
                "    {part} {}",
                command.to_string().replace('\n', "⏎")
            )
            .unwrap();
        }
        for redirection in &seen.redirections {
            let path = redirection.path.as_deref().unwrap_or("somewhere");
            writeln!(table, "    {:?} {path}", redirection.way).unwrap();
        }
        for doubt in &seen.doubts {
            writeln!(table, "    {:?} unknown: {}", doubt.about, doubt.reason).unwrap();
        }
    }
    table
}

#[test]
fn plain_lines_are_seen_command_by_command() {
    insta::assert_snapshot!(table(PLAIN));
}

#[test]
fn wrappers_are_seen_through() {
    insta::assert_snapshot!(table(WRAPPED));
}

#[test]
fn files_that_the_shell_opens_are_seen() {
    insta::assert_snapshot!(table(REDIRECTED));
}

#[test]
fn what_cannot_be_known_asks() {
    insta::assert_snapshot!(table(OPAQUE));
}

#[test]
fn tricks_to_hide_a_command_are_not_allowed() {
    insta::assert_snapshot!(table(TRICKS));
    for text in TRICKS {
        let [by_rules, by_skill, room] = verdicts(text);
        assert_ne!(by_rules, Verdict::Allow, "{text}");
        assert_ne!(by_skill, Verdict::Allow, "{text}");
        assert_ne!(room, Verdict::Allow, "{text}");
    }
}

#[test]
fn the_table_has_more_than_120_lines() {
    let all = [PLAIN, WRAPPED, REDIRECTED, OPAQUE, TRICKS];
    assert!(all.iter().map(|lines| lines.len()).sum::<usize>() > 120);
}

const PLAIN: &[&str] = &[
    "cargo test",
    "cargo test -p a",
    "RUST_LOG=x cargo test -p a",
    "RUST_LOG=\"a b\" LC_ALL=C cargo test",
    "cargo build",
    "cargo test && cargo build",
    "cargo test && ls -la | grep a",
    "cargo test; cargo test --doc",
    "cargo test & wait",
    "cargo test || git status",
    "cargo test\ncargo test",
    "cargo \\\n  test",
    "(cargo test)\\\n| ls\\\n; (ls)",
    "( cargo test )",
    "{ cargo test; }",
    "! cargo test",
    "if cargo test; then ls; else git status; fi",
    "while true; do cargo test; done",
    "for f in a b c; do ls $f; done",
    "cd crates/policy && cargo test",
    "set -euo pipefail; cargo test",
    "cargo test # && git push",
    "cargo test -- --nocapture '*'",
    "cargo test 'a b' \"c d\" e\\ f",
    "\"cargo\" 'test'",
    "car\"go\" te's't",
    "\\cargo test",
    "/usr/bin/cargo test",
    "cargo test {}",
    "cargo test \"$NAME\"",
    "cargo test $NAME",
    "cargo test *.rs",
    "cargo test {a,b}",
    "cargo test ~/x",
    "cargo $WHAT",
    "git status",
    "git push",
    "~/bin/git push",
    "~someone/bin/git push",
    "~/$X/git push",
    "git -C sub push",
    "git commit -m push",
    "rm -rf target",
    "true",
    "[ -f Cargo.toml ] && cargo test",
    "[ -n \"$X\" ] && [ \"$X\" = y ] && cargo test",
];

const WRAPPED: &[&str] = &[
    "env cargo test",
    "env RUST_LOG=debug cargo test",
    "env -i -u HOME cargo test",
    "nohup cargo test &",
    "timeout 60 cargo test",
    "timeout -k 5 -s KILL 60s cargo test",
    "timeout --signal=KILL 60 cargo test",
    "nice -n 10 cargo test",
    "nice -10 cargo test",
    "ionice -c 3 cargo test",
    "LC_ALL=C.UTF-8 LANG=en_US.utf8 LC_COLLATE= cargo test",
    "export LC_ALL=POSIX; cargo test",
    "LANG=C; export LANG; cargo test",
    "bash -o pipefail -c 'cargo test'",
    "printf '%s%%n' x",
    "exec -a x cargo test",
    "time cargo test",
    "time -p cargo test",
    "stdbuf -oL cargo test",
    "setsid cargo test",
    "command cargo test",
    "command -v cargo",
    "exec cargo test",
    "sh -c 'cargo test'",
    "bash -euo pipefail -c 'cargo test && ls'",
    "sh -c \"sh -c 'cargo test'\"",
    "env nohup timeout 5 nice sh -c 'RUST_LOG=x cargo test | grep a'",
    "ls | xargs cargo test",
    "ls | xargs -n 1 -P 4 grep x",
    "ls | xargs -I{} grep {} Cargo.toml",
    "find . -name '*.rs' -exec grep -l x {} +",
    "find . -name '*.rs' -exec cargo test {} \\;",
    "find . -exec rm {} \\;",
    "find . -delete",
    "sudo cargo test",
    "sudo -u root git push",
    "sudo sh -c 'git push'",
    "watch 'git push'",
    "su -c 'rm -rf /'",
    "flock lock rm x",
    "ssh host git push",
    "busybox rm x",
    "sg docker -c 'git push'",
    "tmux new -d 'git push'",
    "screen -dm git push",
    "parallel git push ::: a b",
    "socat - EXEC:'git push'",
    "docker exec -it web git status",
    "docker run --rm -e A=b image make CC=gcc",
    "kubectl set image deploy/a a=b",
    "fd '^(a|b).*[.]rs$'",
    "sudo -u root make CC=gcc",
    "ssh host ls -la",
    "//usr/bin/ls",
    "/opt/homebrew/bin/find . -name x",
    "find . -exec ls + \\;",
];

const REDIRECTED: &[&str] = &[
    "cargo test > out/log.txt",
    "cargo test > out/log.txt 2>&1",
    "cargo test &> out/log.txt",
    "cargo test >& out/log.txt",
    "cargo test >> log.txt",
    "cargo test 2> /dev/null",
    "cargo test >| src/lib.rs",
    "> src/lib.rs",
    "cargo test < Cargo.toml",
    "cargo test <> src/lib.rs",
    "cargo test > /etc/passwd",
    "cargo test > out/../src/lib.rs",
    "cargo test > .git/hooks/pre-commit",
    "cargo test > AGENTS.md",
    "cargo test > $FILE",
    "cargo test > \"out/$FILE\"",
    "cd out && cargo test > log.txt",
    "cargo test > /tmp/log",
    "cargo test 3>&1 1>&2 2>&3-",
    "{ cargo test; ls; } > out/log.txt",
    "cargo test <<EOF\ngit push\nEOF",
    "cargo test <<'EOF' > out/a\n$(git push)\nEOF\nls",
    "cargo test <<EOF\n$(git push)\nEOF",
    "cargo test <<< word",
    "cargo test > /dev/tcp/example.com/80",
    "cargo test > /proc/self/root/project/x",
    "cargo test > /proc/self/cwd/../x",
    "cargo test < /dev/fd/3",
    "cargo test 3< ward.toml > /dev/fd/3",
    "cargo test < ward.toml > /dev/stdin",
    "cargo test < ward.toml 1>&0 > /dev/stdout",
    "cargo test > /dev/stdout 2> /dev/stderr < /dev/stdin",
    "cargo test < /proc/self/status",
];

const OPAQUE: &[&str] = &[
    "&& ls",
    "| ls",
    "ls && | ls",
    "ls; fi",
    "cargo test $(ls)",
    "cargo test `ls`",
    "cargo test \"$(ls)\"",
    "cargo test ${NAME:-x}",
    "cargo test <(ls)",
    "cargo test $((1 + 1))",
    "cargo test $'a'",
    "eval cargo test",
    "eval \"$LINE\"",
    "$CARGO test",
    "\"$@\"",
    "{cargo,test}",
    "car* test",
    "PATH=/tmp/evil cargo test",
    "LD_PRELOAD=./evil.so cargo test",
    "env PATH=/tmp/evil cargo test",
    "export PATH=/tmp/evil; cargo test",
    "PATH=/tmp/evil; cargo test",
    "for PATH in /tmp/evil; do cargo test; done",
    "read PATH; cargo test",
    "IFS=/ cargo test",
    "BASH_ENV=./evil cargo test",
    "RUSTC_WRAPPER=./evil cargo test",
    "CARGO_HOME=evil cargo test",
    "cargo test 'unclosed",
    "cargo test \"unclosed",
    "cargo test (",
    "cargo test )",
    "cargo test \\",
    "cargo\u{a0}test",
    "cargo test\r",
    "cargo() { git status; }; cargo test",
    "alias cargo=evil\ncargo test",
    "hash -p ./evil cargo; cargo test",
    "trap 'cargo test' EXIT",
    "source ./evil; cargo test",
    ". ./evil; cargo test",
    "case x in x) cargo test;; esac",
    "[[ a == a ]] && cargo test",
    "(( 1 )) && cargo test",
    "cargo test | sh",
    "bash",
    "bash -i -c 'cargo test'",
    "bash --rcfile evil -c 'cargo test'",
    "zsh -c 'cargo test'",
    "sh -c \"$LINE\"",
    "ls | xargs sh -c",
    "ls | xargs -I{} sh -c 'cargo test {}'",
    "env -S 'cargo test'",
    "set -- git push; \"$@\"",
    "cargo test; coproc ls",
];

#[test]
fn a_quoted_assignment_is_a_program() {
    let seen = table(&["\"RUST_LOG=b/c\" cargo test", "RUST_LOG=\"b/c\" cargo test"]);
    insta::assert_snapshot!(seen);
}
