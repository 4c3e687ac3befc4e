//! Roles, rules and facts for tests, from short texts.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use policy::{
    Asked, Authority, Confinement, Decision, Grant, Mode, Pattern, Place, Role, RoleName, Rules,
    Scope, Source, Time, Verb, decide,
};
use protocol::facts::{Access, CommandFact, EntryKind, PathFact};
use protocol::{ActionName, Facts};

pub(crate) const WORKSPACE: &str = "/project";
pub(crate) const PLACE: Place<'static> = Place {
    workspace: WORKSPACE,
    home: Some("/home/ada"),
    own: &["/home/ada/.config/ward", "/var/lib/ward"],
};
pub(crate) const NOW: Time = Time(1_000);

/// A role with these skills, and full mode as its ceiling.
pub(crate) fn role(name: &str, skills: &[&str]) -> Role {
    let list: String = skills
        .iter()
        .map(|skill| format!("  - \"{skill}\"\n"))
        .collect();
    let skills = if list.is_empty() {
        " []".to_owned()
    } else {
        format!("\n{list}")
    };
    let text = format!("---\nname: {name}\nmode: full\nskills:{skills}\n---\nDo it.\n");
    policy::role::read(&text, &format!("{name}.md"), name, Source::Person, &[])
        .unwrap()
        .0
}

/// Rules such as `deny fs.write(a)`, one a line.
pub(crate) fn rules(lines: &[&str]) -> Rules {
    rules_of(lines, Source::Person)
}

pub(crate) fn rules_of(lines: &[&str], source: Source) -> Rules {
    let text: String = lines
        .iter()
        .map(|line| {
            let (verdict, pattern) = line.split_once(' ').unwrap();
            format!("[[rules]]\n{verdict} = '''{pattern}'''\n")
        })
        .collect();
    Rules::read(&text, "rules.toml", source).unwrap()
}

/// The facts of a line for the shell, run in the workspace.
pub(crate) fn line(line: &str) -> Facts {
    let mut facts = argv(&["/bin/bash", "-c", line]);
    facts.command.as_mut().unwrap().line = Some(line.to_owned());
    facts
}

pub(crate) fn argv(words: &[&str]) -> Facts {
    Facts {
        command: Some(CommandFact {
            line: None,
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            program: None,
            cwd: WORKSPACE.to_owned(),
            env: [].into(),
        }),
        ..Facts::default()
    }
}

pub(crate) fn path(access: Access, path: &str) -> Facts {
    facts_of(access, path, EntryKind::File)
}

pub(crate) fn folder(access: Access, path: &str) -> Facts {
    facts_of(access, path, EntryKind::Directory)
}

fn facts_of(access: Access, path: &str, kind: EntryKind) -> Facts {
    Facts {
        paths: vec![PathFact {
            path: path.to_owned(),
            access,
            kind: Some(kind),
            digest: None,
        }],
        ..Facts::default()
    }
}

pub(crate) fn hosts(hosts: &[&str]) -> Facts {
    Facts {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..Facts::default()
    }
}

/// A decision about an action on the local runtime.
pub(crate) fn decision(
    role: &Role,
    mode: Mode,
    rules: &Rules,
    action: ActionName,
    facts: &Facts,
) -> Decision {
    with_grants(role, mode, rules, &[], Verb::Action(action), facts)
}

pub(crate) fn with_grants(
    role: &Role,
    mode: Mode,
    rules: &Rules,
    grants: &[Grant],
    verb: Verb,
    facts: &Facts,
) -> Decision {
    decide(
        &Authority::of(role),
        mode,
        rules,
        grants,
        &asked(verb, facts),
        NOW,
    )
}

pub(crate) fn asked(verb: Verb, facts: &Facts) -> Asked<'_> {
    Asked {
        verb,
        facts,
        place: PLACE,
        session: Some("s1"),
        confinement: Confinement::Kernel,
    }
}

/// A grant for the role `dev`.
pub(crate) fn grant(pattern: &str, scope: Scope, expires: Option<Time>) -> Grant {
    Grant {
        id: "g1".to_owned(),
        pattern: Pattern::parse(pattern).unwrap(),
        role: RoleName::parse("dev").unwrap(),
        scope,
        expires,
    }
}
