//! What a person is offered with a question: it answers that question, and nothing else.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::fmt::Write as _;

use policy::decision::{Kind, Step};
use policy::{Decision, Grant, Mode, Pattern, Role, RoleName, Rules, Scope, Verb, Verdict};
use proptest::prelude::*;
use protocol::facts::Access;
use protocol::{ActionName, Facts};
use support::{argv, folder, hosts, line, path, role, rules, with_grants};

const RUN: Verb = Verb::Action(ActionName::TerminalRun);
const READ: Verb = Verb::Action(ActionName::FsRead);
const WRITE: Verb = Verb::Action(ActionName::FsWrite);

fn grant(pattern: &str) -> Grant {
    Grant {
        id: "g".to_owned(),
        pattern: Pattern::parse(pattern).unwrap(),
        role: RoleName::parse("dev").unwrap(),
        scope: Scope::Session("s1".to_owned()),
        expires: None,
    }
}

/// Full mode and every skill: whatever no rule allows asks.
fn decision(verb: Verb, facts: &Facts, rules: &Rules, grants: &[Grant]) -> Decision {
    with_grants(&dev(), Mode::Full, rules, grants, verb, facts)
}

fn dev() -> Role {
    role("dev", &["*"])
}

fn steps(verb: Verb, facts: &Facts) -> Vec<Step> {
    decision(verb, facts, &rules(&[]), &[]).steps
}

fn table(cases: &[(Verb, Facts)]) -> String {
    let mut table = String::new();
    for (verb, facts) in cases {
        for step in steps(*verb, facts) {
            if step.verdict != Verdict::Ask {
                continue;
            }
            writeln!(table, "{}", step.touch.escape_debug()).unwrap();
            writeln!(table, "    {}", step.offer.as_deref().unwrap_or("-")).unwrap();
            if let Some(wider) = step.offers_wider {
                writeln!(table, "    {wider}").unwrap();
            }
        }
    }
    table
}

#[test]
fn each_question_comes_with_the_narrowest_pattern_and_a_natural_wider_one() {
    let lines = [
        "cargo test -p a",
        "cargo test",
        "RUST_LOG=x cargo build && git push origin main | tee out/log > out/all",
        "npm run build -- --watch",
        "npm install left-pad",
        "ls -la src",
        "/usr/bin/ls",
        "./build.sh a",
        "python3 -c 'print(1)'",
        "echo 'a  b' '*' 'x?[y]' '(z)' '{a,b}' '\\' \"it's\"",
        "echo ''",
        "'=x' y",
        "git commit -m 'first line\nsecond line'",
        "make $(cat flags)",
        "eval \"$X\" > $OUT",
        "CARGO_HOME=/x cargo test",
        "rm -rf out",
        "sudo apt install x",
        "git -C x push",
        "uv tool run ruff check",
        "npm exec x y",
        "go run ./x",
        "python3 - <<'E'\nprint(1)\nE",
        "cd sub && ./build.sh",
    ];
    insta::assert_snapshot!("commands", table(&lines.map(|text| (RUN, line(text)))));
    let paths = [
        "/project/src/a.rs",
        "/project/a.rs",
        "/project/~/a",
        "/project/a b/ c ",
        "/project/{a,b}/[x]*?\\",
        "/project/(a)/\"b\"/'c'",
        "/project/a\nb",
        "/project/a\u{fffd}b",
        "/home/ada/notes/today.md",
        "/home/ada/.ssh/id",
        "/home/ada/x",
        "/home/y",
        "/etc/hosts",
        "/var/cache/x/y",
        "/",
    ];
    let both = paths.map(|name| (WRITE, path(Access::Write, name)));
    insta::assert_snapshot!("paths", table(&both));
    insta::assert_snapshot!(
        "others",
        table(&[
            (
                Verb::Action(ActionName::FsSearch),
                folder(Access::Read, "/project/src")
            ),
            (
                Verb::Action(ActionName::FsDelete),
                folder(Access::Delete, "/project")
            ),
            (WRITE, Facts::default()),
            (
                Verb::Net,
                hosts(&["example.com:443", "[::1]:80", "EXAMPLE.org.:1", "a.org"])
            ),
            (Verb::Net, hosts(&["*:443", "*.com:443", "a b", "*"])),
            (Verb::Net, hosts(&[])),
            (Verb::Action(ActionName::TerminalWrite), Facts::default()),
            (Verb::Action(ActionName::TerminalOpen), argv(&["bash"])),
            (RUN, Facts::default()),
        ])
    );
}

#[test]
fn what_no_grant_lifts_has_no_offer() {
    let some = rules(&["deny terminal.run(git push *)", "ask fs.write(src/**)"]);
    let maybe = decision(RUN, &line("git $X"), &some, &[]);
    let push = maybe
        .steps
        .iter()
        .find(|step| step.because.kind == Kind::RuleMaybe);
    assert_eq!(push.unwrap().offer, None);
    let denied = decision(RUN, &line("git push > src/a"), &some, &[]);
    assert_eq!(denied.verdict, Verdict::Deny);
    assert!(denied.steps.iter().all(|step| step.offer.is_none()));
    let protected = decision(
        WRITE,
        &path(Access::Write, "/project/ward.toml"),
        &some,
        &[],
    );
    assert!(protected.steps.iter().all(|step| step.offer.is_none()));
}

#[test]
fn an_exact_pattern_is_that_command_alone() {
    let text = "make $(cat flags) > $OUT";
    let offers: Vec<_> = steps(RUN, &line(text))
        .into_iter()
        .filter_map(|step| step.offer)
        .collect();
    let exact = grant(&offers[0]);
    assert!(offers.iter().all(|offer| *offer == offers[0]));
    let verdict =
        |facts: &Facts| decision(RUN, facts, &rules(&[]), std::slice::from_ref(&exact)).verdict;
    assert_eq!(verdict(&line(text)), Verdict::Allow);
    assert_eq!(verdict(&line("make $(cat flags) > $OUT ")), Verdict::Ask);
    assert_eq!(verdict(&argv(&["/bin/bash", "-c", text])), Verdict::Ask);
    let mut elsewhere = line(text);
    elsewhere.command.as_mut().unwrap().cwd = "/project/src".to_owned();
    assert_eq!(verdict(&elsewhere), Verdict::Ask);
    let mut steered = line(text);
    let env = &mut steered.command.as_mut().unwrap().env;
    env.insert("PATH".to_owned(), "/evil".to_owned());
    assert_eq!(verdict(&steered), Verdict::Ask);
    // A deny may be meant by such a line all the same, and may itself be exact.
    let deny = rules(&["deny terminal.run(make *)"]);
    let denied = decision(RUN, &line(text), &deny, std::slice::from_ref(&exact)).verdict;
    assert_eq!(denied, Verdict::Deny);
    let deny = rules(&[&format!("deny {}", offers[0])]);
    let denied = decision(RUN, &line(text), &deny, &[]).verdict;
    assert_eq!(denied, Verdict::Deny);
    let allow = rules(&[&format!("allow {}", offers[0])]);
    let allowed = decision(RUN, &line(text), &allow, &[]).verdict;
    assert_eq!(allowed, Verdict::Allow);
}

#[test]
fn a_line_that_asks_runs_with_all_of_its_offers() {
    for text in [
        "cargo test -p a && git push | tee out/x > out/log",
        "eval \"$X\" 2> err > $OUT",
        "FOO=1 cargo test < in",
        "cd /tmp && ls",
    ] {
        for some in [&[][..], &["ask terminal.run"], &["ask *"]] {
            let rules = rules(some);
            let asked = decision(RUN, &line(text), &rules, &[]);
            assert_eq!(asked.verdict, Verdict::Ask, "{text}");
            let offers = asked.steps.iter().filter_map(|step| step.offer.as_deref());
            let grants: Vec<Grant> = offers.map(grant).collect();
            let granted = decision(RUN, &line(text), &rules, &grants);
            assert_eq!(
                granted.verdict,
                Verdict::Allow,
                "{text}\n{}",
                granted.explain()
            );
        }
    }
}

/// What is offered with the questions about a line, besides its digest.
fn named(facts: &Facts) -> Vec<String> {
    let offers = steps(RUN, facts).into_iter();
    let named = offers.filter_map(|step| step.offer);
    let is_by_words = |offer: &String| offer.starts_with("terminal.run(") && !offer.contains("(=");
    named.filter(is_by_words).collect()
}

#[test]
fn what_a_program_may_run_of_what_it_reads_is_offered_as_that_line_alone() {
    for text in [
        "python3 - <<'E'\nprint(1)\nE",
        "python3 <<<x",
        "psql < a.sql",
        "psql 0< a.sql",
        "ls | sudo sh",
        "ls | psql",
        "ls |\npsql",
        "ls | (cd a; psql)",
        "ls | { true; psql; }",
        "ls | env psql",
        "ls | sh -c psql",
        "while psql; do ls; done < a.sql",
        "{ psql; } <<E\nx\nE",
        "ls | sed -f -",
        "ls | awk -f /dev/stdin",
        "bash //dev/stdin <<E\nls\nE",
    ] {
        assert_eq!(named(&line(text)), [] as [&str; 0], "{text}");
    }
    for (text, offers) in [
        ("psql a.sql", vec!["terminal.run(psql a.sql)"]),
        ("psql a > b", vec!["terminal.run(psql a)"]),
        (
            "psql | tee a; ls",
            vec!["terminal.run(psql)", "terminal.run(tee a)"],
        ),
        (
            "ls | grep a && psql",
            vec![
                "terminal.run(ls)",
                "terminal.run(grep a)",
                "terminal.run(psql)",
            ],
        ),
        (
            "(ls | tail)\npsql",
            vec![
                "terminal.run(ls)",
                "terminal.run(tail)",
                "terminal.run(psql)",
            ],
        ),
    ] {
        let named = named(&line(text));
        for offer in offers {
            assert!(
                named.iter().any(|named| named == offer),
                "{text}: {named:?}"
            );
        }
    }
    // Another script for the same words asks anew.
    let text = "python3 - <<'E'\nprint(1)\nE";
    let asked = steps(RUN, &line(text));
    let grants: Vec<Grant> = (asked.iter().filter_map(|step| step.offer.as_deref()))
        .map(grant)
        .collect();
    let verdict = |text: &str| decision(RUN, &line(text), &rules(&[]), &grants).verdict;
    assert_eq!(verdict(text), Verdict::Allow);
    assert_eq!(verdict(&text.replace('1', "2")), Verdict::Ask);
}

#[test]
fn a_file_that_is_named_from_a_folder_is_no_other_folders() {
    let some = rules(&[
        "allow terminal.run(./deploy.sh *)",
        "allow terminal.run(bash build.sh)",
        "allow terminal.run(/opt/x *)",
        "allow terminal.run(bash /opt/x y)",
        "allow terminal.run(cargo *)",
    ]);
    let verdict = |facts: &Facts| decision(RUN, facts, &some, &[]).verdict;
    for text in [
        "./deploy.sh a",
        "env ./deploy.sh",
        "bash build.sh",
        "true && ./deploy.sh",
    ] {
        assert_eq!(verdict(&line(text)), Verdict::Allow, "{text}");
        let mut elsewhere = line(text);
        elsewhere.command.as_mut().unwrap().cwd = "/project/sub".to_owned();
        assert_eq!(verdict(&elsewhere), Verdict::Ask, "{text}");
        let moved = line(&format!("cd sub && {text}"));
        assert_eq!(verdict(&moved), Verdict::Ask, "{text}");
        assert_eq!(named(&moved), [] as [&str; 0], "{text}");
    }
    for text in ["pushd sub; ./deploy.sh", "find . -execdir ./deploy.sh \\;"] {
        assert_ne!(verdict(&line(text)), Verdict::Allow, "{text}");
    }
    for text in [
        "cd sub && cargo test",
        "cd sub && /opt/x y",
        "cd sub && bash /opt/x y",
    ] {
        assert_eq!(verdict(&line(text)), Verdict::Allow, "{text}");
    }
}

fn words() -> impl Strategy<Value = String> {
    let odd = "[a-c*?\\[\\]{}()\\\\'\" ~=$.,!é-]{0,6}";
    prop_oneof![
        odd.prop_map(|word: String| word),
        prop::sample::select(vec![
            "cargo", "test", "git", "push", "ls", "*", "**", "rm", "-x", "a b"
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ]
}

fn names() -> impl Strategy<Value = String> {
    words().prop_map(|word| match word.replace('/', "_").as_str() {
        "" | "." | ".." => "_".to_owned(),
        name => name.to_owned(),
    })
}

/// Something that may ask.
fn questions() -> impl Strategy<Value = (Verb, Facts)> {
    let absolute = prop::collection::vec(names(), 1..4);
    let below = prop::sample::select(vec!["/project", "/home/ada", "", "/project/src"]);
    let kind = prop::bool::ANY;
    prop_oneof![
        prop::collection::vec(words(), 1..5).prop_map(|words| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            (RUN, argv(&words))
        }),
        prop::collection::vec(words(), 1..5).prop_map(|words| (RUN, line(&words.join(" ")))),
        (
            below,
            absolute,
            kind,
            prop::sample::select(vec![READ, WRITE, Verb::Wall])
        )
            .prop_map(|(below, names, is_folder, verb)| {
                let access = if verb == READ {
                    Access::Read
                } else {
                    Access::Write
                };
                let name = format!("{below}/{}", names.join("/"));
                let facts = if is_folder {
                    folder(access, &name)
                } else {
                    path(access, &name)
                };
                (verb, facts)
            }),
        prop_oneof!["[a-b*.]{1,4}(:[0-9]{1,2})?", ".{0,5}"]
            .prop_map(|host: String| (Verb::Net, hosts(&[&host]))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_offer_answers_its_question_and_no_other(
        (verb, facts) in questions(), others in prop::collection::vec(questions(), 8),
    ) {
        let none = rules(&[]);
        for (index, step) in decision(verb, &facts, &none, &[]).steps.iter().enumerate() {
            for offer in [&step.offer, &step.offers_wider].into_iter().flatten() {
                let granted = decision(verb, &facts, &none, &[grant(offer)]);
                prop_assert_eq!(granted.steps[index].verdict, Verdict::Allow, "{}", offer);
            }
            let Some(offer) = &step.offer else { continue };
            for (verb, facts) in others.iter().filter(|(_, other)| *other != facts) {
                let before = decision(*verb, facts, &none, &[]);
                let after = decision(*verb, facts, &none, &[grant(offer)]);
                for (before, after) in before.steps.iter().zip(&after.steps) {
                    if before.verdict == after.verdict {
                        continue;
                    }
                    // The same thing, asked for in another way.
                    let (asked, lifted) = (plain(&step.touch), plain(&before.touch));
                    let within = asked.strip_suffix(" and all in it").is_some_and(|tree| {
                        lifted.starts_with(&format!("{tree}/")) || lifted == tree
                    });
                    prop_assert!(lifted == asked || within, "{} lifted {}", offer, before.touch);
                }
            }
        }
    }
}

/// `/usr/bin/ls` is `ls`, and a host is the same in any case.
fn plain(touch: &str) -> String {
    let text = touch
        .replace("run /usr/bin/", "run ")
        .replace("run /bin/", "run ");
    match text.strip_prefix("reach ") {
        Some(host) => {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
            format!("reach {}:{port}", name.trim_end_matches('.').to_lowercase())
        }
        None => text,
    }
}
