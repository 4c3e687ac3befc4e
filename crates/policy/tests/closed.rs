//! What no rule, no grant and no answer opens, what a wall hit asks for, and what cannot be known.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use policy::decision::Kind;
use policy::{Grant, Mode, Scope, Verb, Verdict};
use protocol::ActionName;
use protocol::Facts;
use protocol::facts::Access;
use support::{decision, folder, grant, line, path, role, rules, with_grants};

#[test]
fn what_carries_authority_is_not_for_agents_whatever_the_rules_say() {
    let dev = role("dev", &["*"]);
    let allow = rules(&["allow *"]);
    for (action, facts) in [
        (
            ActionName::FsWrite,
            path(Access::Write, "/project/ward.toml"),
        ),
        (
            ActionName::FsDelete,
            path(Access::Delete, "/project/sub/.ward/roles/a.md"),
        ),
        (ActionName::TerminalRun, line("echo x >> .git/config")),
    ] {
        for mode in [Mode::Sandbox, Mode::Full] {
            let decision = decision(&dev, mode, &allow, action, &facts);
            assert_eq!(decision.verdict, Verdict::Deny);
            assert_eq!(decision.because.kind, Kind::Protected);
        }
    }
    let reads = path(Access::Read, "/project/ward.toml");
    assert_eq!(
        decision(&dev, Mode::Full, &allow, ActionName::FsRead, &reads).verdict,
        Verdict::Allow
    );
}

/// What is decided about a write that a command of a role with `terminal.run` alone was stopped at.
fn stopped(facts: &Facts, lines: &[&str], grants: &[&str]) -> policy::Decision {
    let runs = role("dev", &["terminal.run"]);
    let session = || Scope::Session("s1".to_owned());
    let grants: Vec<Grant> = grants
        .iter()
        .map(|pattern| grant(pattern, session(), None))
        .collect();
    with_grants(
        &runs,
        Mode::Sandbox,
        &rules(lines),
        &grants,
        Verb::Wall,
        facts,
    )
}

#[test]
fn a_command_that_was_stopped_asks_by_rules_and_grants_about_the_path() {
    let facts = path(Access::Write, "/var/cache/x/y");
    let verdict = |lines: &[&str], grants: &[&str]| stopped(&facts, lines, grants).verdict;
    assert_eq!(verdict(&[], &[]), Verdict::Ask);
    assert_eq!(verdict(&[], &["fs.write(/var/cache/x/y)"]), Verdict::Allow);
    assert_eq!(verdict(&[], &["fs.write(/var/cache/x/z)"]), Verdict::Ask);
    assert_eq!(verdict(&[], &["terminal.run"]), Verdict::Ask);
    assert_eq!(
        verdict(&["allow fs.write(/var/cache/**)"], &[]),
        Verdict::Allow
    );
    let deny = ["deny fs.write(/var/**)"];
    assert_eq!(verdict(&deny, &["fs.write(/var/cache/x/y)"]), Verdict::Deny);
    let offer = |decision: policy::Decision| decision.steps[0].offer.clone();
    assert_eq!(
        offer(stopped(&facts, &[], &[])).as_deref(),
        Some("fs.write(/var/cache/x/y)")
    );
    let nothing = stopped(&Facts::default(), &[], &[]);
    assert_eq!(nothing.verdict, Verdict::Ask);
    assert_eq!(offer(nothing), None);
}

#[test]
fn a_stopped_command_may_ask_for_what_runs_by_itself_by_its_very_name() {
    let facts = path(Access::Write, "/project/.git/config");
    let verdict = |lines: &[&str], grants: &[&str]| stopped(&facts, lines, grants).verdict;
    assert_eq!(verdict(&[], &[]), Verdict::Ask);
    assert_eq!(verdict(&["allow *"], &[]), Verdict::Ask);
    assert_eq!(verdict(&[], &["fs.write(.git/config)"]), Verdict::Allow);
    for wide in [
        "*",
        "fs.write",
        "fs.write(**)",
        "fs.write(.git/*)",
        "fs.write(.git/**)",
    ] {
        assert_eq!(verdict(&[], &[wide]), Verdict::Ask, "{wide}");
    }
    let step = &stopped(&facts, &[], &[]).steps[0];
    assert_eq!(step.because.kind, Kind::Protected);
    assert_eq!(step.offer.as_deref(), Some("fs.write(.git/config)"));
    assert_eq!(step.offers_wider, None);
    let hooks = folder(Access::Write, "/project/.git/hooks");
    let offer = stopped(&hooks, &[], &[]).steps[0].offer.clone();
    assert_eq!(offer.as_deref(), Some("fs.write(.git/hooks/**)"));
    let granted = stopped(&hooks, &[], &["fs.write(.git/hooks/**)"]);
    assert_eq!(granted.verdict, Verdict::Allow);
}

#[test]
fn no_command_is_let_at_what_carries_authority() {
    for facts in [
        path(Access::Write, "/project/ward.toml"),
        path(Access::Write, "/project/sub/.ward/roles/a.md"),
        path(Access::Delete, "/project/AGENTS.md"),
        path(Access::Write, "/project/.claude/settings.json"),
        path(Access::Write, "/home/ada/.claude/settings.json"),
        path(Access::Write, "/other/ward.toml"),
        path(Access::Write, "/home/ada/.config/ward/rules.toml"),
        path(Access::Write, "/var/lib/ward/ward.db"),
        // Folders that hold such files.
        folder(Access::Write, "/project"),
        folder(Access::Write, "/project/sub"),
        folder(Access::Write, "/home/ada"),
        folder(Access::Write, "/"),
    ] {
        let shown = &facts.paths[0].path;
        let decision = stopped(&facts, &["allow *"], &["*", &format!("fs.write({shown})")]);
        assert_eq!(decision.verdict, Verdict::Deny, "{shown}");
        assert_eq!(decision.because.kind, Kind::Protected, "{shown}");
        assert_eq!(decision.steps[0].offer, None, "{shown}");
    }
}

#[test]
fn nobody_is_asked_about_what_no_answer_would_open() {
    let dev = role("dev", &["*"]);
    let told = |action, facts: &Facts| {
        let decision = decision(&dev, Mode::Full, &rules(&["allow *"]), action, facts);
        (
            decision.verdict,
            decision.because.kind,
            decision.because.text,
        )
    };
    let denied = |text: &str| (Verdict::Deny, Kind::Protected, text.to_owned());
    for (action, facts, text) in [
        (
            ActionName::FsRead,
            path(Access::Read, "/home/ada/.config/ward/token"),
            "/home/ada/.config/ward",
        ),
        (
            ActionName::FsList,
            folder(Access::Read, "/var/lib/ward"),
            "/var/lib/ward",
        ),
        (
            ActionName::FsWrite,
            path(Access::Write, "/var/lib/ward/ward.db"),
            "/var/lib/ward",
        ),
        (
            ActionName::FsDelete,
            path(Access::Delete, "/home/ada/.config"),
            "/home/ada/.config/ward",
        ),
        (
            ActionName::FsRead,
            path(Access::Read, "/proc/1/environ"),
            "/proc",
        ),
        (
            ActionName::FsWrite,
            path(Access::Write, "/other/.git/hooks/pre-commit"),
            ".git/hooks",
        ),
    ] {
        assert_eq!(told(action, &facts), denied(text), "{facts:?}");
    }
    // What merely holds them, or is called alike, is as it was.
    for near in ["/home/ada/.config", "/home/ada/.config/wardrobe", "/procs"] {
        let read = told(ActionName::FsRead, &path(Access::Read, near));
        assert_eq!(read.0, Verdict::Allow, "{near}");
    }
}

/// Redirections to what is protected, or may be for all that the line says.
const UNKNOWN_TARGETS: &[&str] = &[
    "echo x > $PWD/ward.toml",
    "cd ~ && echo x > ../cfg/ward/rules.toml",
    "cd .ward && echo x > roles/x.md",
    "cd .git; echo x > config",
    "echo x > ward.tom?",
    "cd sub/.. && echo x >> ward.toml",
    "sh -c 'echo x > \"$X\"'",
    "find .ward -execdir sh -c 'echo x > roles' \\;",
];

#[test]
fn a_redirection_to_who_knows_where_asks_in_full_mode_whatever_allows_paths() {
    let dev = role("dev", &["*"]);
    let run = |mode, lines: &[&str], grants: &[Grant], text: &str| {
        let verb = Verb::Action(ActionName::TerminalRun);
        with_grants(&dev, mode, &rules(lines), grants, verb, &line(text))
    };
    let session = || Scope::Session("s1".to_owned());
    for text in UNKNOWN_TARGETS {
        for lines in [
            &["allow terminal.run(echo *)", "allow fs.write"][..],
            &["allow terminal.run", "allow fs.*"],
            &["allow *"],
        ] {
            let asked = run(Mode::Full, lines, &[], text);
            assert_eq!(asked.verdict, Verdict::Ask, "{text}");
            assert_eq!(asked.because.kind, Kind::ProtectedMaybe, "{text}");
            // The kernel's wall holds these paths.
            let confined = run(Mode::Sandbox, lines, &[], text);
            assert_eq!(confined.verdict, Verdict::Allow, "{text}");
        }
        for wide in ["*", "fs.write", "fs.*", "fs.write(**)", "fs.write(/**)"] {
            let grants = [grant(wide, session(), None)];
            let granted = run(Mode::Full, &["allow *"], &grants, text);
            assert_eq!(granted.verdict, Verdict::Ask, "{wide}: {text}");
        }
        let asked = run(Mode::Full, &["allow *"], &[], text);
        let offers = asked.steps.iter().filter_map(|step| step.offer.as_deref());
        let exact: Vec<Grant> = offers
            .map(|pattern| grant(pattern, session(), None))
            .collect();
        let granted = run(Mode::Full, &["allow *"], &exact, text);
        assert_eq!(granted.verdict, Verdict::Allow, "{text}");
    }
    let reads = run(Mode::Full, &["allow *"], &[], "cat < $X");
    assert_eq!(reads.verdict, Verdict::Ask);
    for known in ["echo x > out.txt", "echo x > sub/out.txt", "cat < in.txt"] {
        let allowed = run(Mode::Full, &["allow *"], &[], known);
        assert_eq!(allowed.verdict, Verdict::Allow, "{known}");
    }
}

#[test]
fn a_file_action_whose_path_nobody_told_is_not_allowed_by_a_rule_about_all_paths() {
    let dev = role("dev", &["*"]);
    let nowhere = Facts::default();
    for mode in [Mode::Sandbox, Mode::Full] {
        let write = decision(
            &dev,
            mode,
            &rules(&["allow *"]),
            ActionName::FsWrite,
            &nowhere,
        );
        assert_eq!(write.verdict, Verdict::Ask);
    }
    let stopped = stopped(&nowhere, &["allow *"], &["*", "fs.write"]);
    assert_eq!(stopped.verdict, Verdict::Ask);
}

#[test]
fn a_request_that_sets_variables_is_looked_at_like_a_line_that_does() {
    let dev = role("dev", &["*"]);
    let allow = rules(&["allow terminal.run(cargo test *)"]);
    let verdict = |name: &str| {
        let mut facts = line("cargo test");
        if let Some(command) = &mut facts.command {
            command.env.insert(name.to_owned(), "x".to_owned());
        }
        decision(&dev, Mode::Full, &allow, ActionName::TerminalRun, &facts).verdict
    };
    assert_eq!(verdict("RUST_LOG"), Verdict::Allow);
    assert_eq!(verdict("PATH"), Verdict::Ask);
    assert_eq!(verdict("CARGO_HOME"), Verdict::Ask);
}

#[test]
fn a_path_that_nobody_could_follow_may_be_what_is_protected() {
    let dev = role("dev", &["*"]);
    let some = rules(&[
        "allow terminal.run(*)",
        "allow fs.write(/**)",
        "allow fs.read(/**)",
    ]);
    let verdict = |mode, facts: &Facts| {
        let decision = decision(&dev, mode, &some, ActionName::TerminalRun, facts);
        (decision.verdict, decision.because.kind)
    };
    let asks = (Verdict::Ask, Kind::ProtectedMaybe);
    for text in [
        "cat > /proc/self/root/home/ada/.config/ward/rules.toml",
        "cat > /proc/self/cwd/.git/hooks/pre-commit",
        "cat > /proc/thread-self/root/../x",
        "cat < /proc/1/root/home/ada/.config/ward/rules.toml",
        "cat > /dev/fd/../cwd/.git/config",
        "cat 3< .git/config > /dev/fd/3",
        "cat < .git/config > /dev/stdin",
        "cat < .git/config >&0 > /dev/stdout",
    ] {
        assert_eq!(verdict(Mode::Full, &line(text)), asks, "{text}");
        // There the wall holds what is protected, wherever it leads.
        assert_eq!(
            verdict(Mode::Sandbox, &line(text)).0,
            Verdict::Allow,
            "{text}"
        );
    }
    for led in [
        "/project/new/../x",
        "/proc/self/cwd/x",
        "/dev/fd/3",
        "/dev/stdout",
    ] {
        let mut facts = line("cat > link");
        facts.paths = path(Access::Write, led).paths;
        assert_eq!(verdict(Mode::Full, &facts), asks, "{led}");
    }
    let mut facts = line("cat > link");
    facts.paths = path(Access::Write, "/elsewhere/x").paths;
    assert_eq!(verdict(Mode::Full, &facts).0, Verdict::Allow);
}
