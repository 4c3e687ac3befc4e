//! Which voice wins, and what a decision says about itself.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use policy::decision::Kind;
use policy::{
    Authority, Confinement, Grant, Mode, RoleName, Scope, Source, Time, Verb, Verdict, builtin,
    decide,
};
use protocol::ActionName;
use protocol::Facts;
use protocol::facts::Access;
use support::{
    NOW, WORKSPACE, asked, decision, folder, grant, hosts, line, path, role, rules, rules_of,
    with_grants,
};

#[test]
fn deny_beats_ask_beats_allow_in_any_order() {
    let dev = role("dev", &["*"]);
    let facts = path(Access::Write, "/project/src/a.rs");
    let verdict = |lines: &[&str]| {
        decision(
            &dev,
            Mode::Sandbox,
            &rules(lines),
            ActionName::FsWrite,
            &facts,
        )
        .verdict
    };
    assert_eq!(verdict(&[]), Verdict::Allow);
    assert_eq!(
        verdict(&["allow fs.write", "ask fs.write(src/**)"]),
        Verdict::Ask
    );
    assert_eq!(
        verdict(&["ask fs.write(src/**)", "allow fs.write"]),
        Verdict::Ask
    );
    let three = ["deny fs.write(**/*.rs)", "ask fs.write", "allow *"];
    assert_eq!(verdict(&three), Verdict::Deny);
}

#[test]
fn a_missing_skill_is_a_deny_that_names_it() {
    let reader = role("reader", &["fs.read"]);
    let facts = path(Access::Write, "/project/a");
    let decision = decision(
        &reader,
        Mode::Full,
        &rules(&["allow *"]),
        ActionName::FsWrite,
        &facts,
    );
    insta::assert_snapshot!(decision.explain());
    assert_eq!(decision.because.kind, Kind::Skill);
    assert_eq!(decision.because.text, "fs.write");
    assert_eq!(decision.because.origin.file, "reader.md");
}

#[test]
fn a_decision_prints_its_whole_derivation() {
    let dev = role("dev", &["terminal.run", "fs.write(out/**)"]);
    let some = rules(&[
        "allow terminal.run(cargo test *)",
        "ask terminal.run(* --release)",
        "deny terminal.run(git push *)",
    ]);
    let text = "cargo test | tee out/x > out/log && git -C . push $(date)";
    let decision = decision(
        &dev,
        Mode::Sandbox,
        &some,
        ActionName::TerminalRun,
        &line(text),
    );
    insta::assert_snapshot!("derivation", decision.explain());
    insta::assert_json_snapshot!("derivation_json", decision);
}

#[test]
fn a_pattern_sees_what_happens_to_a_path_by_whichever_action() {
    let dev = role("dev", &["*"]);
    let no_secrets = rules(&["deny fs.read(secrets)", "deny fs.write(secrets/**)"]);
    let verdict =
        |action, facts| decision(&dev, Mode::Sandbox, &no_secrets, action, &facts).verdict;
    let key = "/project/secrets/deep/key";
    assert_eq!(
        verdict(ActionName::FsRead, path(Access::Read, key)),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::FsStat, path(Access::Read, key)),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::FsEdit, path(Access::Write, key)),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::FsMove, path(Access::Write, key)),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::TerminalRun, line("ls > secrets/x")),
        Verdict::Deny
    );
    // A search passes through what is denied; nobody can say yes to that unasked.
    assert_eq!(
        verdict(ActionName::FsSearch, folder(Access::Read, "/project")),
        Verdict::Ask
    );
    assert_eq!(
        verdict(ActionName::FsList, folder(Access::Read, "/project")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(ActionName::FsSearch, folder(Access::Read, "/project/src")),
        Verdict::Allow
    );
}

#[test]
fn a_skill_for_some_paths_does_not_cover_a_folder_that_holds_others() {
    let dev = role("dev", &["fs.read(src/*)", "fs.delete(out/**)"]);
    let verdict =
        |action, facts| decision(&dev, Mode::Sandbox, &rules(&[]), action, &facts).verdict;
    assert_eq!(
        verdict(ActionName::FsRead, path(Access::Read, "/project/src/a")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(ActionName::FsRead, path(Access::Read, "/project/src/a/b")),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::FsSearch, folder(Access::Read, "/project")),
        Verdict::Deny
    );
    assert_eq!(
        verdict(ActionName::FsDelete, folder(Access::Delete, "/project/out")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(ActionName::FsDelete, folder(Access::Delete, "/project")),
        Verdict::Deny
    );
}

#[test]
fn in_the_sandbox_only_what_crosses_the_wall_asks() {
    let dev = role("dev", &["*"]);
    let verdict =
        |verb, facts| with_grants(&dev, Mode::Sandbox, &rules(&[]), &[], verb, &facts).verdict;
    let (read, write) = (
        Verb::Action(ActionName::FsRead),
        Verb::Action(ActionName::FsWrite),
    );
    assert_eq!(
        verdict(read, path(Access::Read, "/project/a")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(write, path(Access::Write, "/project/a")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(read, path(Access::Read, "/home/ada/.ssh/id")),
        Verdict::Ask
    );
    assert_eq!(verdict(write, path(Access::Write, "/tmp/a")), Verdict::Ask);
    let run = Verb::Action(ActionName::TerminalRun);
    assert_eq!(verdict(run, line("eval \"$X\"; make $(y)")), Verdict::Allow);
    assert_eq!(
        verdict(Verb::Net, hosts(&["example.com:443"])),
        Verdict::Ask
    );
    assert_eq!(verdict(Verb::Net, hosts(&[])), Verdict::Ask);
    // Facts that say nothing are not a yes.
    assert_eq!(verdict(write, Facts::default()), Verdict::Ask);
}

#[test]
fn in_full_mode_what_the_rules_leave_open_asks() {
    let dev = role("dev", &["*"]);
    let built_in = builtin::rules().unwrap();
    let verdict = |action, facts| decision(&dev, Mode::Full, &built_in, action, &facts).verdict;
    assert_eq!(
        verdict(ActionName::FsRead, path(Access::Read, "/project/a")),
        Verdict::Allow
    );
    assert_eq!(
        verdict(ActionName::FsRead, path(Access::Read, "/etc/passwd")),
        Verdict::Ask
    );
    assert_eq!(
        verdict(ActionName::FsWrite, path(Access::Write, "/project/a")),
        Verdict::Ask
    );
    assert_eq!(verdict(ActionName::TerminalRun, line("ls")), Verdict::Ask);
    assert_eq!(
        verdict(ActionName::TerminalWrite, line("bash")),
        Verdict::Ask
    );
    assert_eq!(
        verdict(ActionName::TerminalList, line("ls")),
        Verdict::Allow
    );
}

#[test]
fn a_role_has_no_more_mode_than_its_ceiling_nor_than_its_parents() {
    let free = role("free", &["*"]);
    let mut held = role("held", &["*"]);
    held.mode = Mode::Sandbox;
    let facts = line("ls");
    let asked = asked(Verb::Action(ActionName::TerminalRun), &facts);
    let mode = |authority: &Authority<'_>| {
        decide(authority, Mode::Full, &rules(&[]), &[], &asked, NOW).mode
    };
    assert_eq!(mode(&Authority::of(&free)), Mode::Full);
    assert_eq!(mode(&Authority::of(&held)), Mode::Sandbox);
    assert_eq!(mode(&Authority::under(&free, &[&held])), Mode::Sandbox);
}

#[test]
fn where_nothing_confines_what_is_meant_for_the_sandbox_asks_whatever_a_rule_allows() {
    let mut held = role("held", &["*"]);
    held.mode = Mode::Sandbox;
    let free = role("free", &["*"]);
    let facts = line("ls");
    let mut asked = asked(Verb::Action(ActionName::TerminalRun), &facts);
    asked.confinement = Confinement::Absent;
    let allow = rules(&["allow *"]);
    let verdict = |role, mode| decide(&Authority::of(role), mode, &allow, &[], &asked, NOW).verdict;
    assert_eq!(verdict(&held, Mode::Full), Verdict::Ask);
    assert_eq!(verdict(&free, Mode::Sandbox), Verdict::Ask);
    assert_eq!(verdict(&free, Mode::Full), Verdict::Allow);
}

#[test]
fn an_editor_shows_and_finds_for_whoever_has_the_skill_and_its_commands_ask() {
    let dev = role("dev", &["editor.*"]);
    let none = Facts::default();
    let verdict = |action, mode| decision(&dev, mode, &rules(&[]), action, &none).verdict;
    for action in [
        ActionName::EditorOpen,
        ActionName::EditorSelection,
        ActionName::EditorDiagnostics,
        ActionName::EditorSymbols,
    ] {
        assert_eq!(verdict(action, Mode::Sandbox), Verdict::Allow, "{action}");
    }
    for action in [ActionName::EditorCommand, ActionName::EditorTask] {
        assert_eq!(verdict(action, Mode::Full), Verdict::Ask, "{action}");
    }
    let reader = role("reader", &["fs.read"]);
    let refused = decision(
        &reader,
        Mode::Full,
        &rules(&[]),
        ActionName::EditorCommand,
        &none,
    );
    assert_eq!(refused.verdict, Verdict::Deny);
}

#[test]
fn a_cell_runs_for_whoever_has_the_skill_and_asks_where_nothing_confines_its_kernel() {
    let none = Facts::default();
    let mut asked = asked(Verb::Action(ActionName::CellExecute), &none);
    let verdict = |role: &policy::Role, asked: &policy::Asked<'_>| {
        let authority = Authority::of(role);
        decide(&authority, Mode::Sandbox, &rules(&[]), &[], asked, NOW).verdict
    };
    let roles = [
        role("cells", &["cell.execute"]),
        role("terminals", &["terminal.*"]),
        role("reader", &["fs.read"]),
        role("editor", &["editor.*"]),
    ];
    let verdicts: Vec<Verdict> = roles.iter().map(|role| verdict(role, &asked)).collect();
    use Verdict::{Allow, Ask, Deny};
    assert_eq!(verdicts, [Allow, Deny, Deny, Deny]);
    asked.confinement = Confinement::Absent;
    assert_eq!(verdict(&role("family", &["cell.*"]), &asked), Ask);
}

#[test]
fn an_untrusted_workspace_can_only_restrict() {
    let dev = role("dev", &["*"]);
    let facts = line("make");
    let verdict = |lines: &[&str], source| {
        let rules = rules_of(lines, source);
        decision(&dev, Mode::Full, &rules, ActionName::TerminalRun, &facts)
    };
    let allow = ["allow terminal.run(make *)"];
    assert_eq!(verdict(&allow, Source::Trusted).verdict, Verdict::Allow);
    let untrusted = verdict(&allow, Source::Untrusted);
    assert_eq!(untrusted.verdict, Verdict::Ask);
    insta::assert_snapshot!("untrusted", untrusted.explain());
    assert_eq!(
        verdict(&["deny terminal.run(make)"], Source::Untrusted).verdict,
        Verdict::Deny
    );
    assert_eq!(verdict(&["ask *"], Source::Untrusted).verdict, Verdict::Ask);
}

#[test]
fn a_grant_answers_a_question_for_its_role_its_scope_and_its_time() {
    let dev = role("dev", &["*"]);
    let facts = hosts(&["example.com:443"]);
    let verdict = |grant: &Grant, lines: &[&str]| {
        let grants = std::slice::from_ref(grant);
        with_grants(
            &dev,
            Mode::Sandbox,
            &rules(lines),
            grants,
            Verb::Net,
            &facts,
        )
        .verdict
    };
    let session = || Scope::Session("s1".to_owned());
    let host = "net(example.com:443)";
    assert_eq!(verdict(&grant(host, session(), None), &[]), Verdict::Allow);
    assert_eq!(
        verdict(&grant(host, session(), None), &["ask net"]),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&grant(host, session(), None), &["deny net"]),
        Verdict::Deny
    );
    assert_eq!(
        verdict(&grant("net(example.com:80)", session(), None), &[]),
        Verdict::Ask
    );
    assert_eq!(
        verdict(&grant(host, Scope::Session("s2".into()), None), &[]),
        Verdict::Ask
    );
    assert_eq!(
        verdict(&grant(host, Scope::Workspace(WORKSPACE.into()), None), &[]),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&grant(host, Scope::Workspace("/other".into()), None), &[]),
        Verdict::Ask
    );
    assert_eq!(
        verdict(&grant(host, session(), Some(Time(1_001))), &[]),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&grant(host, session(), Some(NOW)), &[]),
        Verdict::Ask
    );
    let mut other = grant(host, session(), None);
    other.role = RoleName::parse("other").unwrap();
    assert_eq!(verdict(&other, &[]), Verdict::Ask);
}

#[test]
fn a_grant_beats_neither_a_deny_that_may_fit_nor_a_missing_skill() {
    let all = grant("*", Scope::Session("s1".to_owned()), None);
    let run = Verb::Action(ActionName::TerminalRun);
    let verdict = |skills: &[&str], lines: &[&str]| {
        let dev = role("dev", skills);
        let grants = std::slice::from_ref(&all);
        with_grants(
            &dev,
            Mode::Full,
            &rules(lines),
            grants,
            run,
            &line("git $X"),
        )
        .verdict
    };
    assert_eq!(verdict(&["*"], &[]), Verdict::Allow);
    assert_eq!(
        verdict(&["*"], &["deny terminal.run(git push *)"]),
        Verdict::Ask
    );
    assert_eq!(verdict(&["fs.read"], &[]), Verdict::Deny);
}

#[test]
fn a_deep_list_passes_through_what_is_denied_as_a_search_does() {
    let dev = role("dev", &["*"]);
    let deny = rules(&["deny fs.read(secret/**)"]);
    let facts = folder(Access::Read, "/project");
    let verdict = |verb| with_grants(&dev, Mode::Sandbox, &deny, &[], verb, &facts).verdict;
    let list = |depth: Option<serde_json::Value>| Verb::of(ActionName::FsList, depth.as_ref());
    for shallow in [
        None,
        Some(serde_json::Value::Null),
        Some(1.into()),
        Some(0.into()),
    ] {
        assert_eq!(list(shallow.clone()), Verb::Action(ActionName::FsList));
        assert_eq!(verdict(list(shallow)), Verdict::Allow);
    }
    let search = verdict(Verb::Action(ActionName::FsSearch));
    for deep in [
        2.into(),
        3.into(),
        u64::MAX.into(),
        1.5.into(),
        "3".into(),
        (-1).into(),
    ] {
        assert_eq!(verdict(list(Some(deep))), search);
    }
    // What has no depth is what it was.
    let two = serde_json::Value::from(2);
    let stat = Verb::of(ActionName::FsStat, Some(&two));
    assert_eq!(stat, Verb::Action(ActionName::FsStat));
    // Denied is what lies in it, and where a skill ends.
    let inside = folder(Access::Read, "/project/secret");
    let inside = with_grants(
        &dev,
        Mode::Sandbox,
        &deny,
        &[],
        list(Some(two.clone())),
        &inside,
    );
    assert_eq!(inside.verdict, Verdict::Deny);
    let some = role("some", &["fs.list(*)", "fs.list(.)"]);
    let below = with_grants(
        &some,
        Mode::Sandbox,
        &rules(&[]),
        &[],
        list(Some(two)),
        &facts,
    );
    assert_eq!(below.verdict, Verdict::Deny);
}
