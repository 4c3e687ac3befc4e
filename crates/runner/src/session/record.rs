//! What is known of every session without reading it: who it belongs to, how far it is.

use std::path::PathBuf;

use gate::{Actor, Ask};
use protocol::runtime::RuntimeChoice;
use protocol::session::{Limits, SessionInfo, SessionState, Usage};
use protocol::{Digest, Mode};
use serde::{Deserialize, Serialize};

/// A session, as the index has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    /// Whose it is, as they authenticated.
    pub(crate) actor: Actor,
    pub(crate) workspace: PathBuf,
    pub(crate) ask: Ask,
    /// Where its actions run; [`None`] is the local runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<RuntimeChoice>,
    /// The session whose agent called this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// The call that waits for it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// The one that all the actions are done for: its own, or that of the first of its parents.
    pub(crate) root: String,
    /// How many agents stand above it.
    pub(crate) depth: usize,
    /// What it was asked for with, so that the same again is the same.
    pub(crate) content: Digest,
    pub(crate) created_at: u64,
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

/// What changes of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) title: String,
    pub(crate) state: SessionState,
    pub(crate) role: String,
    /// On whose behalf: the roles that called or handed over. It may do what all of them may.
    pub(crate) parents: Vec<String>,
    /// How many of those called it; the others handed over, and what they may use binds it.
    #[serde(default)]
    pub(crate) callers: usize,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    /// The runtime that was found for what was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runtime_id: Option<String>,
    pub(crate) turns: u64,
    /// The turns of all agents below it.
    #[serde(default)]
    pub(crate) turns_below: u64,
    pub(crate) usage: Usage,
    /// What it cost, in millionths of a dollar, as far as prices are known.
    pub(crate) cost: Option<u64>,
    /// How much the model read and said in its last turn, in tokens: it reads that again in the next.
    /// 0 where older turns are no longer told since.
    #[serde(default)]
    pub(crate) read: u64,
    /// How long it has worked.
    pub(crate) worked_ms: u64,
    pub(crate) updated_at: u64,
}

impl Record {
    /// As it is listed.
    pub(crate) fn info(&self) -> SessionInfo {
        let progress = &self.progress;
        SessionInfo {
            session_id: self.id.clone(),
            title: progress.title.clone(),
            state: progress.state,
            role: progress.role.clone(),
            model: progress.model.clone(),
            mode: progress.mode,
            workspace: self.workspace.display().to_string(),
            runtime: self.runtime.clone(),
            actor: self.actor.name(),
            parent: self.parent.clone(),
            turns: progress.turns,
            usage: progress.usage,
            cost: self.progress.dollars(),
            created_at: self.created_at,
            updated_at: progress.updated_at,
        }
    }

    /// Whether this actor may look at it: its own, and a person those of their agents.
    pub(crate) fn is_seen_by(&self, actor: &Actor) -> bool {
        match actor {
            Actor::Person(person) => self.actor.person() == person,
            Actor::Agent(_) => self.actor == *actor,
        }
    }
}

impl Progress {
    /// This was used too. What it cost is added up as far as it is known.
    pub(crate) fn spend(&mut self, usage: Usage, cost: Option<u64>) {
        self.usage += usage;
        self.cost = match (self.cost, cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }

    /// Whether it and those below it have had the turns that were asked for, with so many that are
    /// asked of the model now. Those of a role are its own: it may let others work longer than it does
    /// itself.
    pub(crate) fn has_had_turns(&self, now: u64) -> bool {
        let had = self.turns.saturating_add(self.turns_below);
        let had = had.saturating_add(now);
        self.limits.turns.is_some_and(|most| had >= most)
    }

    /// What it cost, in dollars.
    pub(crate) fn dollars(&self) -> Option<f64> {
        self.cost.map(|micros| micros as f64 / 1e6)
    }
}
