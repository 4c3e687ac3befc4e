//! A question to a person, and the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::facts::Facts;
use crate::mode::Mode;
use crate::wall::Widen;

/// A question to a person, open until it is answered, bound to the digest of exactly what it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its name.
    pub id: String,
    /// The digest of what would happen: an answer has to carry it.
    pub digest: Digest,
    /// The action that waits.
    pub action_id: String,
    /// What is asked about.
    pub subject: Subject,
    /// Which action.
    pub action: String,
    /// Its parameters, whole.
    pub params: Value,
    /// What it would touch.
    pub facts: Facts,
    /// Who asks: the role.
    pub role: String,
    /// Who asks: the token, as the gate authenticated it.
    pub actor: String,
    /// How it would run.
    pub mode: Mode,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The workspace's real path.
    pub workspace: String,
    /// What made it a question.
    pub rule: RuleInfo,
    /// Each thing that is asked about, with the grants that would answer it for longer.
    pub questions: Vec<Question>,
    /// A diff of what a file action would change, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Why it is asked although it was answered before: left out for a first question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<AskedAgain>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: u64,
    /// When no answer becomes a no.
    pub expires_at: u64,
    /// The client that is asked first; all others of the person have it in their inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Why a question is asked once more after an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedAgain {
    /// What has changed since, in a sentence or several.
    pub because: String,
    /// The question that was answered before.
    pub after: String,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// The action as it will run.
    Action,
    /// A command that runs wants to reach a host; its connection is held meanwhile.
    Host {
        /// `name:port`.
        host: String,
    },
    /// A command has ended because the wall stopped it. Yes runs it again, with the wall widened by
    /// exactly these paths; what it did before may be done twice.
    Again {
        /// The paths.
        widen: Vec<Widen>,
        /// What was to be made new, of which only the folder can be opened: that is among the paths.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        wanted: Vec<String>,
    },
}

/// What made a decision, and where that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInfo {
    /// What kind of thing it is: rule, skill, grant, mode, protected …
    pub kind: String,
    /// Its text.
    pub text: String,
    /// Why.
    pub reason: String,
    /// Its file.
    pub file: String,
    /// The line in it.
    pub line: usize,
}

impl std::fmt::Display for RuleInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            text,
            reason,
            file,
            line,
        } = self;
        match kind.as_str() {
            // Whether it is meant cannot be known.
            "rule_maybe" => write!(f, "perhaps rule `deny {text}`")?,
            "protected_maybe" => write!(f, "perhaps protected `{text}`")?,
            "skill_maybe" => write!(f, "skill `{text}`")?,
            kind => write!(f, "{kind} `{text}`")?,
        }
        write!(f, " ({file}:{line})")?;
        if !reason.is_empty() {
            write!(f, ": {reason}")?;
        }
        Ok(())
    }
}

/// One thing that is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The thing, as people read it.
    pub touch: String,
    /// Why it asks.
    pub why: String,
    /// The narrowest grant that would answer it; left out where it can be answered only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A wider one that a person may mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wider: Option<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// How far an answer goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScope {
    /// This once.
    #[default]
    Once,
    /// In this session: makes grants.
    Session,
    /// In this workspace: makes grants.
    Workspace,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// Yes or no.
    pub decision: Choice,
    /// How far it goes.
    #[serde(default)]
    pub scope: AnswerScope,
    /// The digest of the approval that the person saw.
    pub digest: Digest,
    /// What the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The grants to make, where they shall differ from those offered. They have to answer the
    /// whole question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<String>>,
    /// When the grants end, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// How a question was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// A person said yes.
    Allowed,
    /// A person said no.
    Denied,
    /// What it was about has changed; another question takes its place where one is needed.
    Changed,
    /// Nobody answered in time.
    Expired,
    /// The action was cancelled, or the connection that waited was given up.
    Withdrawn,
}

/// What all clients are told when a question is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// Which.
    pub approval_id: String,
    /// The action that waited.
    pub action_id: String,
    /// How.
    pub resolution: Resolution,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How far the answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<AnswerScope>,
    /// What the agent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The grants that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
}

/// A remembered answer, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantInfo {
    /// Its name, to revoke it by.
    pub id: String,
    /// What it allows.
    pub pattern: String,
    /// Whether it answered a question about a command's wall: then the wall is open for whole folders
    /// too, from a command's start. A yes to a file action opens no folder to commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wall: bool,
    /// Whom.
    pub role: String,
    /// The session it holds in: one of this actor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Who asked.
    pub actor: String,
    /// The workspace it holds in.
    pub workspace: String,
    /// Who said yes.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_perhaps_meant_is_told_in_words() {
        let rule = |kind: &str| RuleInfo {
            kind: kind.to_owned(),
            text: "fs.read".to_owned(),
            reason: "Private.".to_owned(),
            file: "rules.toml".to_owned(),
            line: 3,
        };
        let kinds = ["rule", "rule_maybe", "protected_maybe", "skill_maybe"];
        let told = kinds.map(|kind| rule(kind).to_string());
        assert_eq!(
            told,
            [
                "rule `fs.read` (rules.toml:3): Private.",
                "perhaps rule `deny fs.read` (rules.toml:3): Private.",
                "perhaps protected `fs.read` (rules.toml:3): Private.",
                "skill `fs.read` (rules.toml:3): Private.",
            ]
        );
    }
}
