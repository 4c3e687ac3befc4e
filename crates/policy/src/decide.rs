//! The decision: every voice is heard on every thing that would be touched, and the strictest wins.

use protocol::ActionName;
use protocol::facts::{Access, Facts};
use protocol::protected::protected;

use crate::command::Part;
use crate::decision::{Because, Decision, Kind, Step, Verdict};
use crate::exact::Exact;
use crate::grant::{Grant, Time};
use crate::mode::{Confinement, Mode};
use crate::offer;
use crate::pattern::{Fit, Stance};
use crate::place::{Base, Below, Place, Spot};
use crate::role::Role;
use crate::rule::{Origin, Rule, Rules, Source};
use crate::touch::{self, By, Reach, Touch};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The action, or what a running command was stopped at.
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
    /// An action that reaches further down in a folder than it does by itself.
    Deep(ActionName),
    /// A running command wants to reach the hosts in the facts.
    Net,
    /// A running command was stopped at the paths in the facts. It has been let run, so it needs no
    /// further skill: rules and grants about these paths count, and where none does it asks.
    Wall,
}

impl Verb {
    /// What an action is by its parameter `depth`, which facts do not tell: `fs.list` of one level
    /// looks at a folder, of more also into what is in it.
    #[must_use]
    pub fn of(action: ActionName, depth: Option<&serde_json::Value>) -> Self {
        let is_one_level = match depth {
            None | Some(serde_json::Value::Null) => true,
            Some(depth) => depth.as_u64().is_some_and(|depth| depth <= 1),
        };
        match action {
            ActionName::FsList if !is_one_level => Self::Deep(action),
            action => Self::Action(action),
        }
    }
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
///
/// Whether a grant would lift a question is asked the same way: by deciding again with it.
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
    let held = mode.min(ceiling);
    let mode = match asked.confinement {
        Confinement::Kernel => held,
        Confinement::Absent => Mode::Full,
    };
    let touches = touch::all(asked);
    let judge = Judge {
        authority,
        mode,
        unconfined: mode > held,
        rules,
        grants,
        asked,
        now,
        exact: Exact::new(asked.facts.command.as_ref()),
    };
    let mut steps: Vec<Step> = touches.iter().map(|touch| judge.step(touch)).collect();
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
    if verdict == Verdict::Ask {
        offer::add(&mut steps, &touches, &judge.exact, &asked.place);
    }
    Decision {
        verdict,
        because,
        mode,
        role: authority.role.name.to_string(),
        steps,
    }
}

/// How many rules are told that may be meant by what cannot be known: all of a thousand may be, and
/// one is enough.
const MOST_PERHAPS: usize = 8;

/// Everything that has a say.
struct Judge<'a> {
    authority: &'a Authority<'a>,
    mode: Mode,
    /// Whether it would run freer than the role or the request has it.
    unconfined: bool,
    rules: &'a Rules,
    grants: &'a [Grant],
    asked: &'a Asked<'a>,
    now: Time,
    exact: Exact<'a>,
}

impl Judge<'_> {
    /// One thing: what each voice says, and the strictest of them.
    fn step(&self, touch: &Touch) -> Step {
        let mut voices: Vec<Because> = by_protection(touch).into_iter().collect();
        voices.extend(
            self.authority
                .all()
                .filter_map(|role| self.by_skill(touch, role)),
        );
        let mut perhaps = [0_usize; 2];
        let mut is_named = false;
        for rule in self.rules.about(touch) {
            let Some((kind, verdict, fit)) = self.by_rule(touch, rule) else {
                continue;
            };
            if fit == Fit::Maybe {
                let told = &mut perhaps[usize::from(kind == Kind::RuleMaybe)];
                *told += 1;
                if *told > MOST_PERHAPS {
                    continue;
                }
            }
            is_named |=
                (kind, verdict) == (Kind::Rule, Verdict::Allow) && rule.pattern.is_one_command();
            voices.push(Because {
                kind,
                verdict,
                text: rule.pattern.to_string(),
                reason: rule.reason.clone(),
                origin: rule.origin.clone(),
            });
        }

        // Who allows this very command has seen the word that nobody knows.
        if !is_named {
            voices.extend(self.by_perhaps_protected(touch));
        }
        let is_protected = voices
            .iter()
            .any(|voice| matches!(voice.kind, Kind::Protected | Kind::ProtectedMaybe));
        let allowed = voices
            .iter()
            .any(|voice| voice.kind == Kind::Rule && voice.verdict == Verdict::Allow);
        if !allowed {
            let (verdict, reason) = default_of(touch, self.mode);
            voices.push(by_mode(verdict, self.mode, reason));
        }
        if self.unconfined {
            let reason = "the runtime cannot confine, and the mode is `sandbox`";
            voices.push(by_mode(Verdict::Ask, self.mode, reason));
        }
        // A grant answers a question. It cannot answer for a rule that denies, or may.
        let strictest = voices.iter().map(|voice| voice.verdict).max();
        let may_deny = voices.iter().any(|voice| voice.kind == Kind::RuleMaybe);
        if strictest == Some(Verdict::Ask)
            && !may_deny
            && let Some(grant) = self.grants.iter().find(|grant| {
                self.lifts(grant, touch) && (!is_protected || names_exactly(grant, touch))
            })
        {
            return Step::new(touch.to_string(), by_grant(grant), voices);
        }
        // Of equals, the one that says most: a rule before a skill before the mode.
        let decisive = voices
            .iter()
            .enumerate()
            .max_by_key(|(index, voice)| (voice.verdict, weight(voice), std::cmp::Reverse(*index)))
            .map_or(0, |(index, _)| index);
        let because = voices.swap_remove(decisive);
        Step::new(touch.to_string(), because, voices)
    }

    /// Where nobody knows which path it is, it may be one that is protected: that asks, whatever
    /// allows paths in general. Only for what a confined command's shell opens there is no need,
    /// since the wall holds these paths wherever the word leads.
    fn by_perhaps_protected(&self, touch: &Touch) -> Option<Because> {
        let Touch::Path {
            access,
            path: None,
            by,
            shown,
            ..
        } = touch
        else {
            return None;
        };
        if (*by, self.mode) == (By::Redirection, Mode::Sandbox) {
            return None;
        }
        let reason = match access {
            // Of all that is protected, only Ward's own folders are closed to reading.
            Access::Read if self.asked.place.own.is_empty() => return None,
            Access::Read => "where it leads is not known, and it may be among Ward's own files",
            Access::Write | Access::Delete => {
                "where it leads is not known, and it may be what agents may not change"
            }
        };
        Some(Because {
            kind: Kind::ProtectedMaybe,
            verdict: Verdict::Ask,
            text: shown.clone(),
            reason: reason.to_owned(),
            origin: builtin_origin(),
        })
    }

    /// Whether a grant answers a question about this.
    fn lifts(&self, grant: &Grant, touch: &Touch) -> bool {
        let role = &self.authority.role.name;
        let place = &self.asked.place;
        grant.holds(role, self.asked.session, place.workspace, self.now)
            && grant.pattern.fits(touch, Stance::Permit, &self.exact) == Fit::Yes
    }

    /// What the role's skills say: nothing where nobody needs one.
    fn by_skill(&self, touch: &Touch, role: &Role) -> Option<Because> {
        if is_beyond_skills(touch) {
            return None;
        }
        let best = role
            .skills
            .iter()
            .map(|skill| {
                let fit = skill.pattern.fits(touch, Stance::Permit, &self.exact);
                (fit, skill)
            })
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

    /// What a rule says about this, and how surely it is about it.
    fn by_rule(&self, touch: &Touch, rule: &Rule) -> Option<(Kind, Verdict, Fit)> {
        let stance = match rule.verdict {
            Verdict::Allow => Stance::Permit,
            Verdict::Ask | Verdict::Deny => Stance::Restrict,
        };
        let fit = rule.pattern.fits(touch, stance, &self.exact);
        let (kind, verdict) = match (fit, rule.verdict) {
            (Fit::No, _) | (Fit::Maybe, Verdict::Allow) => return None,
            (Fit::Yes, Verdict::Allow) if rule.origin.source == Source::Untrusted => {
                (Kind::Untrusted, Verdict::Allow)
            }
            (Fit::Maybe, Verdict::Deny) => (Kind::RuleMaybe, Verdict::Ask),
            (Fit::Yes | Fit::Maybe, verdict) => (Kind::Rule, verdict),
        };
        Some((kind, verdict, fit))
    }
}

/// How telling a voice is among equals.
fn weight(voice: &Because) -> u8 {
    match voice.kind {
        Kind::Protected => 7,
        Kind::Rule => 6,
        Kind::Grant => 5,
        Kind::RuleMaybe => 4,
        Kind::ProtectedMaybe => 3,
        Kind::Mode => 2,
        Kind::SkillMaybe | Kind::Skill => 1,
        Kind::Untrusted => 0,
    }
}

/// Folders of the kernel's, in which a path is a way to a process or a switch.
const KERNEL: [&str; 2] = ["proc", "sys"];

/// What carries authority or runs by itself is not for agents to change, whatever their skills, and
/// Ward's own folders are not for them to read either. What no runtime would do whatever the answer
/// is denied here, so that nobody is asked about it. A command that was stopped at something that runs by itself may ask for it: `git remote add`.
fn by_protection(touch: &Touch) -> Option<Because> {
    let Touch::Path {
        access,
        path: Some(path),
        reach,
        by,
        ..
    } = touch
    else {
        return None;
    };
    let because = |verdict, text: &str, reason: String| {
        Some(Because {
            kind: Kind::Protected,
            verdict,
            text: text.to_owned(),
            reason,
            origin: builtin_origin(),
        })
    };
    if let Some(folder) = path.wards_own() {
        let reason = match access {
            Access::Read => {
                "it is where Ward keeps what it acts on, and its tokens; read it yourself"
            }
            Access::Write | Access::Delete => {
                "it is where Ward keeps what it acts on; change it yourself"
            }
        };
        return because(Verdict::Deny, folder, reason.to_owned());
    }
    if let (By::Action(_), Below::Names([first, ..])) = (by, path.below(Base::Root))
        && KERNEL.contains(&first.as_str())
    {
        let reason = "it is the kernel's, which no file action touches; a command may";
        return because(Verdict::Deny, &format!("/{first}"), reason.to_owned());
    }
    if *access == Access::Read {
        return None;
    }
    if let Some(folder) = path.holds_wards_own() {
        let reason = "it is where Ward keeps what it acts on, and would change with this";
        return because(Verdict::Deny, folder, reason.to_owned());
    }
    let (names, inside) = match path.in_workspace() {
        Some(names) => (names, true),
        None => (path.names(), false),
    };
    let protection = protected(names.iter().map(String::as_bytes));
    match (protection, by) {
        (Some(found), _) if found.carries_authority() => because(
            Verdict::Deny,
            found.pattern,
            format!("it {}; change it yourself", found.reason),
        ),
        (Some(found), By::Action(_)) => because(
            Verdict::Deny,
            found.pattern,
            format!("it {}; change it yourself", found.reason),
        ),
        (Some(found), By::Redirection) if inside => because(
            Verdict::Deny,
            found.pattern,
            format!("it {}; change it yourself", found.reason),
        ),
        (Some(found), By::Stopped) if inside => {
            because(Verdict::Ask, found.pattern, format!("it {}", found.reason))
        }
        (_, By::Stopped) if *reach == Reach::Tree && (inside || path.is_above()) => because(
            Verdict::Deny,
            &path.to_string(),
            "what is protected may be in it; a path in it can be asked for".to_owned(),
        ),
        (_, By::Action(_) | By::Redirection | By::Stopped) => None,
    }
}

/// Whether a grant names this very path, or the very command where nobody knows the path: nothing
/// wider opens what is protected, or may be.
fn names_exactly(grant: &Grant, touch: &Touch) -> bool {
    match touch {
        Touch::Path {
            path: Some(path), ..
        } => grant.pattern.names_exactly(path),
        Touch::Path { path: None, .. } => grant.pattern.is_one_command(),
        Touch::Command(_)
        | Touch::Unknown(_)
        | Touch::Typed
        | Touch::Use(_)
        | Touch::Host { .. } => false,
    }
}

/// Whether no skill is needed: for what only surrounds a command, and for what a command that has
/// been let run was stopped at.
fn is_beyond_skills(touch: &Touch) -> bool {
    match touch {
        Touch::Command(command) => command.part == Part::Surrounds,
        Touch::Path { by, .. } => *by == By::Stopped,
        Touch::Unknown(_) | Touch::Typed | Touch::Use(_) | Touch::Host { .. } => false,
    }
}

fn how_to_add(role: &Role, wanted: &str) -> String {
    match role.origin.source {
        Source::Builtin => format!("Use a role that has it, or write your own with `{wanted}`"),
        Source::Untrusted | Source::Trusted | Source::Person => {
            format!("Add `{wanted}` to its skills in {}", role.origin.file)
        }
    }
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
        (
            _,
            Touch::Path {
                by: By::Stopped, ..
            },
        ) => (Verdict::Ask, "a command was stopped there"),
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
            (Some(path), By::Redirection) if is_in_room(path, *access) => {
                (Verdict::Allow, "it stays inside the wall")
            }
            (Some(_), _) => (Verdict::Ask, "it would cross the wall"),
            (None, By::Action(_) | By::Stopped) => (Verdict::Ask, "it may cross the wall"),
            (None, By::Redirection) => {
                (Verdict::Allow, "the kernel holds the wall, wherever it is")
            }
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
