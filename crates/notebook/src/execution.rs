//! A run of a cell, from the wish to its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::CellType;
use crate::id::{CellId, ExecutionId, SessionId};

/// How a run came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well.
    Ok,
    /// Not well.
    Failed(Failed),
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// The stable word: `error` where the cell itself failed, else one of Ward's kinds, such as
    /// `denied` or `runtime_lost`.
    pub kind: String,
    /// The sentence.
    pub message: String,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    /// It was asked for; the gate has not let it yet.
    Requested,
    /// It waits for its turn on a runtime.
    Assigned,
    /// It runs.
    Running,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It was stopped because somebody wanted it.
    Cancelled,
}

impl ExecutionState {
    /// Whether nothing more happens to it.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Requested | Self::Assigned | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// What a run asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// In its words.
    pub prompt: String,
    /// Whether the answer must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
}

/// A run of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Execution {
    /// Its id.
    pub execution_id: ExecutionId,
    /// Of which cell.
    pub cell_id: CellId,
    /// What the cell was when it was asked for.
    pub cell_type: CellType,
    /// What the cell said when it was asked for: exactly this runs. Empty once it is over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// How far it is.
    pub state: ExecutionState,
    /// Who asked for it, by the server's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// The role that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The type of runtime that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_type: Option<String>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Whether somebody wants it to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// What it asks, while nobody has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
}
