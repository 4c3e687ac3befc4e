//! Runtime sessions: who runs the cells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::CellType;
use crate::event::Termination;
use crate::id::SessionId;

/// What a runtime can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Capabilities {
    /// It runs code.
    pub can_execute_code: bool,
    /// It runs queries.
    pub can_execute_sql: bool,
    /// It asks models.
    pub can_execute_ai: bool,
    /// What runs there is confined, by its own word: it can reach neither files nor hosts that a
    /// wall would keep from it. Where it is not, each run asks in sandbox mode.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// What its cells leave behind takes messages from whoever shows it: widgets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub takes_comms: bool,
    /// Which models it can ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available_ai_models: Vec<String>,
}

impl Capabilities {
    /// Whether a cell of this type can run there.
    #[must_use]
    pub fn can(&self, cell: CellType) -> bool {
        match cell {
            CellType::Code => self.can_execute_code,
            CellType::Sql => self.can_execute_sql,
            CellType::Ai => self.can_execute_ai,
            CellType::Markdown | CellType::Raw => false,
        }
    }
}

/// What a runtime session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It was announced, and is not ready yet.
    Starting,
    /// It takes executions.
    Ready,
    /// It works on one.
    Busy,
    /// Its kernel is started anew.
    Restarting,
    /// It is over.
    Terminated,
}

/// A runtime session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeSession {
    /// Which one.
    pub session_id: SessionId,
    /// Which runtime, in its own words.
    pub runtime_id: String,
    /// What it runs.
    pub runtime_type: String,
    /// The person whose it is.
    pub client_id: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What it is doing.
    pub state: SessionState,
    /// How often somebody wanted it to begin anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Termination>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RuntimeSession {
    /// Whether it is not over.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state != SessionState::Terminated
    }
}
