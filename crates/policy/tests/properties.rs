//! What holds whatever the input: nothing makes a decision more permissive that should not, and
//! nothing panics.

mod support;

use policy::command::Line;
use policy::{Authority, Mode, Role, Rules, Source, Verb, Verdict, decide};
use proptest::prelude::*;
use protocol::facts::CommandFact;
use protocol::{ActionName, Facts};
use support::{NOW, asked, line, role, rules};

/// Pieces of lines, plain and odd.
const PIECES: &[&str] = &[
    "cargo test",
    "cargo",
    "test",
    "git push",
    "git",
    "push",
    "rm -rf x",
    "ls",
    "$X",
    "\"$X\"",
    "$(ls)",
    "`ls`",
    "> out/a",
    "2>&1",
    "< in",
    "<<EOF",
    "\nEOF\n",
    "|",
    "&&",
    ";",
    "&",
    "\n",
    "(",
    ")",
    "{",
    "}",
    "'a b'",
    "\"c\"",
    "'",
    "\"",
    "\\",
    "if",
    "then",
    "fi",
    "for x in",
    "do",
    "done",
    "case",
    "[[",
    "]]",
    "env",
    "A=1",
    "PATH=x",
    "RUST_LOG=x",
    "sh -c 'cargo test'",
    "bash -c",
    "xargs",
    "find . -exec",
    "{} \\;",
    "sudo",
    "timeout 5",
    "nice",
    "time",
    "eval",
    "cd src",
    "cd ..",
    "#",
    "*",
    "~",
    "é",
    "\u{a0}",
    "\r",
    "\0",
    "$((1))",
    "${x}",
    "${x:-y}",
    "$'",
    "function f",
];

const SKILLS: &[&str] = &[
    "*",
    "terminal.run",
    "terminal.run(cargo *)",
    "terminal.run(cargo test *)",
    "terminal.run(git *)",
    "fs.write",
    "fs.write(out/**)",
    "fs.read",
    "terminal.*",
    "terminal.run(ls)",
    "net",
];

const RULES: &[&str] = &[
    "allow terminal.run",
    "allow terminal.run(cargo test *)",
    "allow terminal.run(git *)",
    "allow fs.write(out/**)",
    "allow fs.write",
    "allow fs.read",
    "ask terminal.run(git push *)",
    "ask terminal.run",
    "deny terminal.run(rm *)",
    "deny terminal.run(git push *)",
    "deny fs.write(out/**)",
    "deny terminal.run(cargo test)",
    "deny terminal.run(* push)",
    "deny *",
    "allow *",
    "allow terminal.run(*)",
    "deny terminal.run(git push)",
];

fn lines() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..8)
            .prop_map(|pieces| pieces.join(" ")),
        prop::collection::vec(prop::sample::select(PIECES), 0..8)
            .prop_map(|pieces| pieces.concat()),
    ]
}

/// Lines that are whole commands, so that something can be put before or behind them.
fn whole() -> impl Strategy<Value = String> {
    let command = prop::sample::select(vec![
        "cargo test",
        "cargo test -p a",
        "git push",
        "git status",
        "rm x",
        "ls",
        "cargo $X",
        "$X y",
        "RUST_LOG=x cargo test",
        "sh -c 'git push'",
        "env cargo test",
        "cargo test > out/a",
        "./cargo test",
        "{git,push}",
        "git${IFS}push",
        "(git push)",
        ">out/a",
    ]);
    let operator = prop::sample::select(vec![" && ", " | ", "; ", " || ", "\n"]);
    (
        command.clone(),
        prop::collection::vec((operator, command), 0..3),
    )
        .prop_map(|(first, more)| {
            more.into_iter()
                .fold(first.to_owned(), |line, (operator, command)| {
                    line + operator + command
                })
        })
}

fn roles() -> impl Strategy<Value = Role> {
    prop::collection::vec(prop::sample::select(SKILLS), 0..4)
        .prop_map(|skills| role("some", &skills))
}

fn rule_sets() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(RULES), 0..5)
}

/// A rule that allows nothing.
fn refusals() -> impl Strategy<Value = &'static str> {
    let refuses = |rule: &&str| !rule.starts_with("allow");
    let refusals: Vec<_> = RULES.iter().copied().filter(refuses).collect();
    prop::sample::select(refusals)
}

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Sandbox, Mode::Full])
}

fn verdict(authority: &Authority<'_>, mode: Mode, rules: &Rules, facts: &Facts) -> Verdict {
    let asked = asked(Verb::Action(ActionName::TerminalRun), facts);
    decide(authority, mode, rules, &[], &asked, NOW).verdict
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_line_panics(text in prop_oneof![lines(), ".*"]) {
        let facts = line(&text);
        let _ = verdict(&Authority::of(&role("a", &["*"])), Mode::Full, &rules(RULES), &facts);
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec(prop_oneof![lines(), ".*"], 0..6)) {
        let fact = CommandFact {
            line: None, argv: words, program: None, cwd: "/project".into(), env: [].into(),
        };
        let _ = Line::of(&fact, "/project");
    }

    #[test]
    fn no_text_panics(text in prop_oneof![".*", "(fs|terminal|net|\\*)[.a-z]{0,8}[(]?.{0,12}[)]?"]) {
        let _ = policy::Pattern::parse(&text);
        let _ = policy::host::Host::parse(&text);
        let _ = Rules::read(&text, "f", Source::Person);
        let front = format!("---\n{text}\n---\nbody");
        let _ = policy::role::read(&front, "f", "f", Source::Person, &[]);
        let _ = policy::role::read(&text, "f", "f", Source::Person, &[]);
        let _ = policy::SkillFile::read(&front, "f", "f", Source::Person);
    }

    #[test]
    fn no_yaml_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "a", ":", " ", "\n", "- ", "[", "]", "{", "}", "\"", "'", "&x", "*x", "!t", "|", ">", "#", "?",
        "skills", "limits", "mode", "---", "...", "%", "\t", ",", "  ", "é",
    ]), 0..24)) {
        let text = format!("---\n{}\n---\n", pieces.concat());
        let _ = policy::role::read(&text, "f", "f", Source::Person, &[]);
    }

    #[test]
    fn a_deny_never_permits_more(
        text in lines(), role in roles(), some in rule_sets(), more in refusals(), mode in modes(),
    ) {
        let facts = line(&text);
        let authority = Authority::of(&role);
        let mut stricter = rules(&some);
        stricter.extend(rules(&[more]));
        prop_assert!(
            verdict(&authority, mode, &stricter, &facts) >= verdict(&authority, mode, &rules(&some), &facts)
        );
    }

    #[test]
    fn a_parent_never_permits_more(
        text in lines(), role in roles(), parent in roles(), some in rule_sets(), mode in modes(),
    ) {
        let facts = line(&text);
        let parents = [&parent];
        let under = verdict(&Authority::under(&role, &parents), mode, &rules(&some), &facts);
        prop_assert!(under >= verdict(&Authority::of(&role), mode, &rules(&some), &facts));
        prop_assert!(under >= verdict(&Authority::of(&parent), mode, &rules(&some), &facts));
    }

    #[test]
    fn a_wrapper_never_permits_more(
        text in whole(), role in roles(), some in rule_sets(), mode in modes(),
        wrapper in prop::sample::select(vec![
            "sh -c", "bash -euc", "env sh -c", "nohup sh -c", "timeout 5 sh -c", "nice -n 5 bash -c",
            "sudo sh -c", "watch", "su -c", "eval", "xargs sh -c", "find . -exec sh -c", "./sh -c",
            "env -S", "time sh -c", "exec sh -c", "command sh -c", "zsh -c", "setsid -x sh -c",
            "flock lk sh -c", "//bin/sh -c", "/opt/bin/bash -c", "linux64 sh -c", "flock lk -c",
            "/usr//bin/env sh -c", "sudo -u root bash -c", "find . -exec flock + sh -c",
        ]),
    ) {
        let authority = Authority::of(&role);
        let plain = verdict(&authority, mode, &rules(&some), &line(&text));
        let wrapped = verdict(&authority, mode, &rules(&some), &line(&format!("{wrapper} {}", quoted(&text))));
        // A rule that allows the wrapper by its own name is the person's word, as is a skill.
        prop_assert!(wrapped >= plain, "{wrapped} < {plain}");
    }

    #[test]
    fn a_launcher_never_permits_more(
        role in roles(), some in rule_sets(), mode in modes(),
        text in prop::sample::select(vec![
            "git push", "rm x", "$X y", "\"$X\" y", "{git,push}", "git \"$X\" push", "sh", "sh -c \"$X\"",
            "env PATH=x ls", "git -c a.b=c status", "find . -exec rm x \\;", "find \"$X\"", "bash -x",
            "xargs -I \"$X\" ls", "timeout $X ls",
        ]),
        launcher in prop::sample::select(vec![
            "sudo", "flock lk", "nohup", "env", "//usr/bin/env", "/opt/bin/nohup", "/opt/bin/sudo", "watch -n 1",
            "linux64", "sudo -u root", "docker run image", "env -- -x=1", "find . -exec flock +", "env sudo",
            "npx", "uv run", "rustup run stable", "npm exec --", "direnv exec .", "logsave log", "poetry run",
            "/opt/bin/npx", "not", "uvx --from x",
        ]),
    ) {
        let authority = Authority::of(&role);
        let plain = verdict(&authority, mode, &rules(&some), &line(text));
        let launched = verdict(&authority, mode, &rules(&some), &line(&format!("{launcher} {text}")));
        prop_assert!(launched >= plain, "{launched} < {plain}");
    }

    #[test]
    fn a_redirection_or_a_pipeline_never_permits_more(
        text in whole(), role in roles(), some in rule_sets(), mode in modes(),
        more in prop::sample::select(vec![
            " > out/b", " > /etc/passwd", " 2> $X", " < in", " | ls", " && cargo test", "; git push",
            " & ls", "\nrm x", " || true", " | tee a", " <<< x", " >> .git/config",
        ]),
    ) {
        let authority = Authority::of(&role);
        let plain = verdict(&authority, mode, &rules(&some), &line(&text));
        let longer = verdict(&authority, mode, &rules(&some), &line(&format!("{text}{more}")));
        prop_assert!(longer >= plain, "{longer} < {plain}");
    }

    #[test]
    fn a_word_that_nobody_knows_opens_no_more_than_the_protected_path_that_it_may_be(
        text in whole(), role in roles(), some in rule_sets(),
        arrow in prop::sample::select(vec![">", ">>", ">|", "2>", "&>", "<>"]),
        path in prop::sample::select(vec![
            "ward.toml", ".ward/roles/x.md", ".git/config", "/home/ada/.config/ward/rules.toml",
        ]),
        word in prop::sample::select(vec![
            "$X", "\"$X\"", "${X}", "$PWD/{}", "\"$PWD/{}\"", "~/{}", "~+/{}", "$(echo {})", "`echo {}`",
            "{}*", "{}?", "[w]{}", "{{},x}", "${X:-{}}", "$HOME/../{}",
            "/proc/self/cwd/{}", "/proc/self/root/project/{}", "/dev/fd/../cwd/{}",
        ]),
        moved in prop::sample::select(vec!["", "cd ~ && ", "cd $X; ", "cd sub/..; ", "pushd . && "]),
    ) {
        let authority = Authority::of(&role);
        let known = verdict(&authority, Mode::Full, &rules(&some), &line(&format!("{text} {arrow} {path}")));
        prop_assert_eq!(known, Verdict::Deny);
        let name = path.trim_start_matches('/');
        let mut words = vec![word.replace("{}", name)];
        if !moved.is_empty() && !path.starts_with('/') {
            words.push(path.to_owned());
        }
        for word in words {
            let unknown = format!("{moved}{text} {arrow} {word}");
            let unknown_verdict = verdict(&authority, Mode::Full, &rules(&some), &line(&unknown));
            prop_assert_ne!(unknown_verdict, Verdict::Allow, "{}", unknown);
        }
    }

    #[test]
    fn a_group_around_a_line_changes_nothing(text in whole(), role in roles(), some in rule_sets(), mode in modes()) {
        let authority = Authority::of(&role);
        let plain = verdict(&authority, mode, &rules(&some), &line(&text));
        for grouped in [format!("( {text} )"), format!("{{ {text}; }}"), format!("if true; then {text}; fi")] {
            prop_assert_eq!(verdict(&authority, mode, &rules(&some), &line(&grouped)), plain);
        }
    }
}

#[test]
fn words_longer_than_a_line_may_be_are_not_looked_into() {
    let role = role("a", &["terminal.run"]);
    let words = ["sh", "-c", &"ls;".repeat(40_000)];
    let facts = support::argv(&words);
    let verdict = verdict(&Authority::of(&role), Mode::Full, &rules(RULES), &facts);
    assert_ne!(verdict, Verdict::Allow);
    let long = vec!["ls"; 40_000];
    let seen = Line::of(support::argv(&long).command.as_ref().unwrap(), "/project");
    assert_eq!((seen.commands.len(), seen.doubts.len()), (1, 1));
}

#[test]
fn deep_nesting_and_long_lines_are_opaque_not_fatal() {
    let role = role("a", &["terminal.run(cargo *)"]);
    for text in [
        "$(".repeat(50_000),
        "(".repeat(50_000),
        "`".repeat(50_001),
        format!("{}cargo test{}", "$(".repeat(5_000), ")".repeat(5_000)),
        "sh -c ".repeat(10_000),
        "env ".repeat(10_000) + "cargo test",
        "cargo test;".repeat(20_000),
        "sudo 'a b' ".repeat(5_000),
        "sudo env ".repeat(120) + "$X",
        "sudo find . -exec ".repeat(60) + "$X",
        "sudo $(".repeat(5_000),
        "git for-each-repo ".to_owned() + &"-a ".repeat(20_000) + "$X",
        "git for-each-repo -a ".repeat(60) + "$X",
        "npm ".to_owned() + &"exec ".repeat(10_000) + "$X",
        "npm exec -x ".repeat(80) + "$X",
        "uv run ".repeat(8_000) + "$X",
        "git submodule foreach ".repeat(2_500) + "$X",
        "git rebase -x 'git rebase -x a' ".repeat(1_500) + "$X",
        "time -x ".repeat(7_000) + "$X",
        "sh a ".repeat(10_000) + "$X",
        format!(
            "sudo a b c d e f g sh -c \"{}$X\"",
            "sudo nice nice sh -c 'a b' ".repeat(1_000)
        ),
        "xargs ".to_owned() + &"-I a ".repeat(8_000) + &"a ".repeat(4_000),
    ] {
        let verdict = verdict(&Authority::of(&role), Mode::Full, &rules(&[]), &line(&text));
        assert_ne!(verdict, Verdict::Allow);
    }
}
