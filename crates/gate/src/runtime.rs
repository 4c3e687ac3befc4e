//! What the gate needs of a place where actions run, and the permit without which nothing does.

mod local;
mod output;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use policy::Confinement;
use protocol::method::{ExecuteParams, InitializeResult};
pub use protocol::runtime::{RuntimeChoice, RuntimeHealth, RuntimeInfo};
use protocol::wall::{PermitParams, WallAskParams, WallAskResult, WallParams};
use protocol::{ActionName, Digest, Facts, Failure, Mode};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;

pub use local::{Launch, LocalRuntime, Near, Nearby};
pub use output::{Output, Piece};

/// Something that is waited for.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where actions run: the local runtime server, an editor, a notebook's agent.
pub trait Runtime: Send + Sync {
    /// Whether it can hold a wall around a command.
    fn confinement(&self) -> Confinement;

    /// What an action would touch, without touching it.
    fn resolve<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Result<Facts, Failure>>;

    /// Does what the permit says, once. Dropping the future cancels it.
    fn execute(
        &self,
        permit: Permit,
        output: Output,
    ) -> Waiting<'_, Result<Box<RawValue>, Failure>>;

    /// What it says about itself, once it is there: every action with its schema, and its sandbox.
    fn about(&self) -> Waiting<'_, Result<Arc<InitializeResult>, Failure>>;

    /// Starts it, where it is started at all, so that it is there when the first action comes.
    fn wake(&self) {}

    /// Leave to reach a host was taken back: connections that have none left are closed.
    fn review(&self) -> Waiting<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// How it is.
    fn status(&self) -> RuntimeInfo;

    /// Ends it and all that runs there.
    fn stop(&self) -> Waiting<'_, ()>;
}

/// Who is asked when a running command wants to cross the wall.
pub trait Wall: Send + Sync {
    /// May it? Takes as long as a person needs; dropping the future withdraws the question.
    fn ask(&self, asked: WallAskParams) -> Waiting<'_, WallAskResult>;
}

/// Runtimes beside the local one, which come and go: editors.
pub trait Elsewhere: Send + Sync {
    /// The one runtime of this person's that is chosen and can do this action. None, several and
    /// away are failures of their own; there is no guess. One that works in another folder of this
    /// machine than this workspace is refused: rules, roles and grants are each workspace's own.
    fn find(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
        action: ActionName,
    ) -> Result<Arc<dyn Runtime>, Failure>;

    /// What a choice stands for now: the id of the one runtime, and what it can do.
    fn choose(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
    ) -> Result<RuntimeInfo, Failure>;

    /// Whether this person has, or ever had, a runtime of this id: one that is gone may come back.
    fn is_known(&self, person: &str, id: &str) -> bool;

    /// Whether one that is not there can come: a Ward that lasts as long as one command listens
    /// nowhere.
    fn can_come(&self) -> bool;

    /// The folder that the runtime of this id works in, where it is known.
    fn workspace_of(&self, person: &str, id: &str) -> Option<String>;

    /// Those of this person's.
    fn list(&self, person: &str) -> Vec<RuntimeInfo>;

    /// Told whenever one comes, goes or changes.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Leave to do one action once: this action, these facts, this wall. Only the gate can make one,
/// and a runtime takes nothing else.
#[derive(Debug)]
pub struct Permit {
    id: String,
    action: String,
    params: Value,
    session: Option<String>,
    facts: Facts,
    digest: Digest,
    mode: Mode,
    wall: WallParams,
}

/// What a permit is for.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) id: String,
    pub(crate) action: String,
    pub(crate) params: Value,
    pub(crate) session: Option<String>,
    pub(crate) facts: Facts,
    pub(crate) digest: Digest,
    pub(crate) mode: Mode,
    pub(crate) wall: WallParams,
}

impl Permit {
    /// The gate's alone: nothing outside this crate can call it.
    pub(crate) fn new(terms: Terms) -> Self {
        let Terms {
            id,
            action,
            params,
            session,
            facts,
            digest,
            mode,
            wall,
        } = terms;
        Self {
            id,
            action,
            params,
            session,
            facts,
            digest,
            mode,
            wall,
        }
    }

    /// The action's id. A runtime does what has this id once.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How the command was decided on: confined, or trusted.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the action was found to touch when it was decided on.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the action was asked with.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.params
    }

    /// Which action, with what. For a runtime that is told no more than that.
    #[must_use]
    pub fn into_action(self) -> (String, String, Value) {
        (self.id, self.action, self.params)
    }

    /// As it is sent to a runtime server.
    #[must_use]
    pub fn into_params(self) -> ExecuteParams {
        ExecuteParams {
            id: self.id,
            action: self.action,
            params: self.params,
            session: self.session,
            permit: Some(PermitParams {
                digest: self.digest,
                mode: self.mode,
            }),
            wall: Some(self.wall),
            expect: Some(self.facts),
        }
    }
}
