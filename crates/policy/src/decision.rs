//! What was decided, and what made it so.

use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::rule::Origin;

/// The answer. The order is that of strictness: the largest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It happens.
    Allow,
    /// A person is asked first.
    Ask,
    /// It does not happen.
    Deny,
}

impl Verdict {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A decision with its whole derivation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// What made it.
    pub because: Because,
    /// The mode it was decided for, after every ceiling.
    pub mode: Mode,
    /// The role that asked.
    pub role: String,
    /// What the action would touch, and what was decided for each.
    pub steps: Vec<Step>,
}

/// One thing that the action would touch, and what was decided for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The thing, as people read it.
    pub touch: String,
    /// The answer for it.
    pub verdict: Verdict,
    /// What made it.
    pub because: Because,
    /// Everything else that had a say; of many rules that may or may not be meant, a few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Because>,
    /// For a question: the narrowest pattern with which a grant answers it. Left out where no
    /// grant can, or where the decision is no question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// A pattern that a person may well mean instead: `terminal.run(cargo test *)`, a file's
    /// folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers_wider: Option<String>,
}

impl Step {
    pub(crate) fn new(touch: String, because: Because, considered: Vec<Because>) -> Self {
        Self {
            touch,
            verdict: because.verdict,
            because,
            considered,
            offer: None,
            offers_wider: None,
        }
    }
}

/// What made a decision: a rule, a skill, a grant, a mode, each with where it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Because {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it says on its own.
    pub verdict: Verdict,
    /// Its text: a rule's pattern, a missing skill, a mode.
    pub text: String,
    /// Why, as a sentence.
    pub reason: String,
    /// Where it is written.
    pub origin: Origin,
}

/// The kinds of things that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A rule fits.
    Rule,
    /// A rule that denies may fit; it cannot be known.
    RuleMaybe,
    /// An allow rule fits that does not count, because nobody trusts its workspace.
    Untrusted,
    /// The role has the skill, or lacks it.
    Skill,
    /// Whether the role's skill covers this cannot be known.
    SkillMaybe,
    /// A grant.
    Grant,
    /// No rule says anything; the mode does.
    Mode,
    /// The path is protected in every workspace.
    Protected,
    /// The path may be a protected one; it cannot be known.
    ProtectedMaybe,
}

impl std::fmt::Display for Because {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            Kind::Rule => write!(f, "rule `{} {}`", self.verdict, self.text)?,
            Kind::RuleMaybe => write!(f, "perhaps rule `deny {}`", self.text)?,
            Kind::Untrusted => write!(f, "untrusted rule `allow {}`", self.text)?,
            Kind::Skill | Kind::SkillMaybe => write!(f, "skill `{}`", self.text)?,
            Kind::Grant => write!(f, "grant `{}`", self.text)?,
            Kind::Mode => write!(f, "mode `{}`", self.text)?,
            Kind::Protected => write!(f, "protected `{}`", self.text)?,
            Kind::ProtectedMaybe => write!(f, "perhaps protected `{}`", self.text)?,
        }
        write!(f, " ({})", self.origin)?;
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}
