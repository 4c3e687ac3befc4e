//! Whatever the rules and whatever is asked: a decision is made, nothing that it offers is more than
//! an answer to its question, and one more deny never permits more.

#![no_main]

use libfuzzer_sys::fuzz_target;
use policy::{
    Asked, Authority, Confinement, Decision, Grant, Mode, Pattern, Place, Role, RoleName, Rule,
    Rules, Scope, Source, Time, Verb, Verdict,
};
use protocol::facts::{Access, CommandFact, PathFact};
use protocol::{ActionName, Facts};

fn role() -> Role {
    let text = "---\nname: dev\nmode: full\nskills: ['*']\n---\n";
    policy::role::read(text, "dev.md", "dev", Source::Person, &[])
        .expect("the role is fine")
        .0
}

fn decide(role: &Role, rules: &Rules, grants: &[Grant], verb: Verb, facts: &Facts) -> Decision {
    let asked = Asked {
        verb,
        facts,
        place: Place {
            workspace: "/project",
            home: Some("/home/ada"),
            own: &[],
        },
        session: Some("s"),
        confinement: Confinement::Kernel,
    };
    policy::decide(
        &Authority::of(role),
        Mode::Full,
        rules,
        grants,
        &asked,
        Time(0),
    )
}

fn questions(text: &str, words: &str) -> Vec<(Verb, Facts)> {
    let command = |line: Option<String>, argv: Vec<String>| Facts {
        command: Some(CommandFact {
            line,
            argv,
            program: None,
            cwd: "/project".into(),
            env: [].into(),
        }),
        ..Facts::default()
    };
    let path = |access| Facts {
        paths: vec![PathFact {
            path: format!("/project/{text}"),
            access,
            kind: None,
            digest: None,
        }],
        ..Facts::default()
    };
    let hosts = Facts {
        hosts: vec![text.to_owned()],
        ..Facts::default()
    };
    let run = Verb::Action(ActionName::TerminalRun);
    let shell = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    let words = words.split(' ').map(str::to_owned).collect();
    vec![
        (run, command(Some(text.to_owned()), shell)),
        (run, command(None, words)),
        (Verb::Action(ActionName::FsRead), path(Access::Read)),
        (Verb::Wall, path(Access::Write)),
        (Verb::Net, hosts),
    ]
}

// Rules, a line and words, with \x01 between them: plain bytes, so that a dictionary and seeds fit.
fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.splitn(3, '\u{1}');
    let mut part = || parts.next().unwrap_or_default();
    let (written, line, words) = (part(), part(), part());

    let mut rules = Rules::read(written, "rules.toml", Source::Person).unwrap_or_default();
    // Most texts are no TOML; each line may still be a rule.
    for line in written.lines() {
        let (verdict, pattern) = match line.split_at_checked(1) {
            Some(("-", pattern)) => (Verdict::Deny, pattern),
            Some(("?", pattern)) => (Verdict::Ask, pattern),
            Some(("+", pattern)) => (Verdict::Allow, pattern),
            Some(_) | None => continue,
        };
        if let Ok(pattern) = Pattern::parse(pattern) {
            let origin = policy::Origin {
                source: Source::Person,
                file: "f".into(),
                line: 1,
            };
            rules.push(Rule {
                verdict,
                pattern,
                reason: String::new(),
                origin,
            });
        }
    }
    let role = role();
    let mut stricter = rules.clone();
    let deny = "[[rules]]\ndeny = \"terminal.run(git push *)\"\n[[rules]]\ndeny = \"fs.*(a/**)\"\n";
    stricter.extend(Rules::read(deny, "deny.toml", Source::Person).expect("the rules are fine"));

    for (verb, facts) in questions(line, words) {
        let decision = decide(&role, &rules, &[], verb, &facts);
        let _ = decision.explain();
        assert!(decide(&role, &stricter, &[], verb, &facts).verdict >= decision.verdict);
        for (index, step) in decision.steps.iter().enumerate() {
            for offer in [&step.offer, &step.offers_wider].into_iter().flatten() {
                assert_eq!(decision.verdict, Verdict::Ask);
                let grant = Grant {
                    id: "g".into(),
                    pattern: Pattern::parse(offer).expect("an offer can be read"),
                    role: RoleName::parse("dev").expect("the name is fine"),
                    scope: Scope::Session("s".into()),
                    expires: None,
                };
                let granted = decide(&role, &rules, &[grant], verb, &facts);
                assert_eq!(granted.steps[index].verdict, Verdict::Allow, "{offer}");
            }
        }
    }
});
