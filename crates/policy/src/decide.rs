//! The decision: every voice is heard on every thing that would be touched, and the strictest wins.

use protocol::ActionName;
use protocol::facts::{Access, Facts};
use protocol::protected::protected;

use crate::command::Part;
use crate::decision::{Because, Decision, Kind, Step, Verdict};
use crate::grant::{Grant, Time};
use crate::mode::{Confinement, Mode};
use crate::pattern::{Fit, Stance};
use crate::place::{Base, Below, Place, Spot};
use crate::role::Role;
use crate::rule::{Origin, Rule, Rules, Source};
use crate::touch::{self, Touch};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The action, or a host while a command runs.
    pub verb: Verb,
    /// What it would touch, as the runtime resolved it.
    pub facts: &'a Facts,
    /// Where.
    pub place: Place<'a>,
    /// In which session.
    pub session: Option<&'a str>,
    /// Whether the runtime that would do it can confine.
    pub confinement: Confinement,
}

/// What kind of thing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// An action.
    Action(ActionName),
    /// A running command wants to reach the hosts in the facts.
    Net,
}

/// A role, and those on whose behalf it acts. It may do what all of them may.
#[derive(Debug, Clone, Copy)]
pub struct Authority<'a> {
    role: &'a Role,
    parents: &'a [&'a Role],
}

impl<'a> Authority<'a> {
    /// A role that a person has chosen.
    #[must_use]
    pub fn of(role: &'a Role) -> Self {
        Self { role, parents: &[] }
    }

    /// A sub-agent's: the intersection with all of its parents'.
    #[must_use]
    pub fn under(role: &'a Role, parents: &'a [&'a Role]) -> Self {
        Self { role, parents }
    }

    fn all(&self) -> impl Iterator<Item = &'a Role> {
        std::iter::once(self.role).chain(self.parents.iter().copied())
    }
}

/// Decides whether a role may do what is asked, and says what made it so.
#[must_use]
pub fn decide(
    authority: &Authority<'_>,
    mode: Mode,
    rules: &Rules,
    grants: &[Grant],
    asked: &Asked<'_>,
    now: Time,
) -> Decision {
    let ceiling = authority
        .all()
        .map(|role| role.mode)
        .min()
        .unwrap_or(Mode::Sandbox);
    let mode = match asked.confinement {
        Confinement::Kernel => mode.min(ceiling),
        Confinement::Absent => Mode::Full,
    };
    let mut steps: Vec<Step> = touch::all(asked)
        .iter()
        .map(|touch| judge(touch, authority, mode, rules, grants, asked, now))
        .collect();
    if mode > ceiling {
        let because = by_mode(
            Verdict::Deny,
            mode,
            "the runtime cannot confine, and the role's mode is `sandbox`. Use a runtime that can, or give the role `mode: full`",
        );
        steps.push(Step {
            touch: "run unconfined".to_owned(),
            verdict: Verdict::Deny,
            because,
            considered: Vec::new(),
        });
    }
    // Of the strictest, the one that says most; of equals, the first as written.
    let decisive = steps
        .iter()
        .rev()
        .max_by_key(|step| (step.verdict, weight(&step.because)));
    let (verdict, because) = match decisive {
        Some(step) => (step.verdict, step.because.clone()),
        None => (
            Verdict::Ask,
            by_mode(Verdict::Ask, mode, "nothing is known about it"),
        ),
    };
    Decision {
        verdict,
        because,
        mode,
        role: authority.role.name.to_string(),
        steps,
    }
}

/// One thing: what each voice says, and the strictest of them.
fn judge(
    touch: &Touch,
    authority: &Authority<'_>,
    mode: Mode,
    rules: &Rules,
    grants: &[Grant],
    asked: &Asked<'_>,
    now: Time,
) -> Step {
    let mut voices = Vec::new();
    voices.extend(by_protection(touch));
    voices.extend(authority.all().filter_map(|role| by_skill(touch, role)));
    voices.extend(rules.about(touch).filter_map(|rule| by_rule(touch, rule)));

    let allowed = voices
        .iter()
        .any(|voice| voice.kind == Kind::Rule && voice.verdict == Verdict::Allow);
    if !allowed {
        let (verdict, reason) = default_of(touch, mode);
        voices.push(by_mode(verdict, mode, reason));
    }
    let granted = grants.iter().find_map(|grant| {
        let role = &authority.role.name;
        let holds = grant.holds(role, asked.session, asked.place.workspace, now)
            && grant.pattern.fits(touch, Stance::Permit) == Fit::Yes;
        holds.then(|| by_grant(grant))
    });
    // A grant answers a question. It cannot answer for a rule that denies, or may.
    let strictest = voices.iter().map(|voice| voice.verdict).max();
    let may_deny = voices.iter().any(|voice| voice.kind == Kind::RuleMaybe);
    if let (Some(grant), Some(Verdict::Ask), false) = (granted, strictest, may_deny) {
        return Step {
            touch: touch.to_string(),
            verdict: Verdict::Allow,
            because: grant,
            considered: voices,
        };
    }
    // Of equals, the one that says most: a rule before a skill before the mode.
    let decisive = voices
        .iter()
        .enumerate()
        .max_by_key(|(index, voice)| (voice.verdict, weight(voice), std::cmp::Reverse(*index)))
        .map_or(0, |(index, _)| index);
    let because = voices.swap_remove(decisive);
    Step {
        touch: touch.to_string(),
        verdict: because.verdict,
        because,
        considered: voices,
    }
}

/// How telling a voice is among equals.
fn weight(voice: &Because) -> u8 {
    match voice.kind {
        Kind::Protected => 6,
        Kind::Rule => 5,
        Kind::Grant => 4,
        Kind::RuleMaybe => 3,
        Kind::Mode => 2,
        Kind::SkillMaybe | Kind::Skill => 1,
        Kind::Untrusted => 0,
    }
}

/// What carries authority or runs by itself is not for agents to change, whatever their skills.
fn by_protection(touch: &Touch) -> Option<Because> {
    let Touch::Path {
        access: Access::Write | Access::Delete,
        path: Some(path),
        ..
    } = touch
    else {
        return None;
    };
    let names = path.in_workspace()?;
    let protection = protected(names.iter().map(String::as_bytes))?;
    Some(Because {
        kind: Kind::Protected,
        verdict: Verdict::Deny,
        text: protection.pattern.to_owned(),
        reason: format!("it {}; change it yourself", protection.reason),
        origin: builtin_origin(),
    })
}

/// What the role's skills say: nothing where nobody needs one.
fn by_skill(touch: &Touch, role: &Role) -> Option<Because> {
    if matches!(touch, Touch::Command(command) if command.part == Part::Surrounds) {
        return None;
    }
    let best = role
        .skills
        .iter()
        .map(|skill| (skill.pattern.fits(touch, Stance::Permit), skill))
        .max_by_key(|(fit, _)| *fit)
        .filter(|(fit, _)| *fit != Fit::No);
    let wanted = touch.skill();
    Some(match best {
        Some((Fit::Yes, skill)) => Because {
            kind: Kind::Skill,
            verdict: Verdict::Allow,
            text: skill.pattern.to_string(),
            reason: format!("role `{}` has it", role.name),
            origin: skill.origin.clone(),
        },
        Some((Fit::Maybe | Fit::No, skill)) => Because {
            kind: Kind::SkillMaybe,
            verdict: Verdict::Ask,
            text: skill.pattern.to_string(),
            reason: format!(
                "whether role `{}` may is not known; `{wanted}` would say so",
                role.name
            ),
            origin: skill.origin.clone(),
        },
        None => Because {
            kind: Kind::Skill,
            verdict: Verdict::Deny,
            text: wanted.clone(),
            reason: format!(
                "role `{}` does not have it. {}",
                role.name,
                how_to_add(role, &wanted)
            ),
            origin: role.origin.clone(),
        },
    })
}

fn how_to_add(role: &Role, wanted: &str) -> String {
    match role.origin.source {
        Source::Builtin => format!("Use a role that has it, or write your own with `{wanted}`"),
        Source::Untrusted | Source::Trusted | Source::Person => {
            format!("Add `{wanted}` to its skills in {}", role.origin.file)
        }
    }
}

fn by_rule(touch: &Touch, rule: &Rule) -> Option<Because> {
    let stance = match rule.verdict {
        Verdict::Allow => Stance::Permit,
        Verdict::Ask | Verdict::Deny => Stance::Restrict,
    };
    let (kind, verdict, text) = match (rule.pattern.fits(touch, stance), rule.verdict) {
        (Fit::No, _) | (Fit::Maybe, Verdict::Allow) => return None,
        (Fit::Yes, Verdict::Allow) if rule.origin.source == Source::Untrusted => {
            (Kind::Untrusted, Verdict::Allow, rule.pattern.to_string())
        }
        (Fit::Maybe, Verdict::Deny) => (Kind::RuleMaybe, Verdict::Ask, rule.pattern.to_string()),
        (Fit::Yes | Fit::Maybe, verdict) => (Kind::Rule, verdict, rule.pattern.to_string()),
    };
    Some(Because {
        kind,
        verdict,
        text,
        reason: rule.reason.clone(),
        origin: rule.origin.clone(),
    })
}

fn by_grant(grant: &Grant) -> Because {
    Because {
        kind: Kind::Grant,
        verdict: Verdict::Allow,
        text: grant.pattern.to_string(),
        reason: "you said yes".to_owned(),
        origin: Origin {
            source: Source::Person,
            file: format!("grant {}", grant.id),
            line: 1,
        },
    }
}

fn by_mode(verdict: Verdict, mode: Mode, reason: &str) -> Because {
    Because {
        kind: Kind::Mode,
        verdict,
        text: mode.to_string(),
        reason: reason.to_owned(),
        origin: builtin_origin(),
    }
}

fn builtin_origin() -> Origin {
    Origin {
        source: Source::Builtin,
        file: "built-in".to_owned(),
        line: 1,
    }
}

/// What holds where no rule says anything.
fn default_of(touch: &Touch, mode: Mode) -> (Verdict, &'static str) {
    if matches!(touch, Touch::Command(command) if command.part == Part::Surrounds) {
        return (Verdict::Allow, "what it runs is looked at on its own");
    }
    match (mode, touch) {
        (_, Touch::Use(_)) if mode == Mode::Sandbox => (Verdict::Allow, "it stays inside the wall"),
        (_, Touch::Use(ActionName::TerminalRun | ActionName::TerminalOpen)) => {
            (Verdict::Allow, "what it runs is looked at on its own")
        }
        (Mode::Full, _) => (Verdict::Ask, "no rule allows it"),
        (Mode::Sandbox, Touch::Host { .. }) => (Verdict::Ask, "it would cross the wall"),
        (
            Mode::Sandbox,
            Touch::Path {
                access, path, by, ..
            },
        ) => match (path, by) {
            (Some(path), _) if path.in_workspace().is_some() => {
                (Verdict::Allow, "it stays inside the wall")
            }
            (Some(path), None) if is_in_room(path, *access) => {
                (Verdict::Allow, "it stays inside the wall")
            }
            (Some(_), _) => (Verdict::Ask, "it would cross the wall"),
            (None, Some(_)) => (Verdict::Ask, "it may cross the wall"),
            (None, None) => (Verdict::Allow, "the kernel holds the wall, wherever it is"),
        },
        (Mode::Sandbox, Touch::Command(_) | Touch::Unknown(_) | Touch::Typed | Touch::Use(_)) => {
            (Verdict::Allow, "the kernel holds the wall")
        }
    }
}

/// Paths outside the workspace that a confined command has: its own `/tmp`, and the system's
/// folders for reading.
fn is_in_room(path: &Spot, access: Access) -> bool {
    let folders: &[&str] = match access {
        Access::Read => &["tmp", "usr", "bin", "lib", "lib64", "proc"],
        Access::Write | Access::Delete => &["tmp"],
    };
    match path.below(Base::Root) {
        Below::Names([first, ..]) => folders.contains(&first.as_str()),
        Below::Names([]) | Below::Above | Below::Elsewhere | Below::Unknown => false,
    }
}
