//! What each kind of event carries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bundle::Bundle;
use crate::cell::CellType;
use crate::execution::Outcome;
use crate::id::{CellId, ExecutionId, OutputId, SessionId};
use crate::output::Output;
use crate::place::Place;
use crate::session::{Capabilities, SessionState};
use crate::source::Splice;

/// A notebook was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookMade {
    /// What people call it.
    #[serde(default)]
    pub title: String,
    /// What is said about it, as in a file: `kernelspec`, `language_info` …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The minor version of the file's format, 4.x.
    #[serde(default = "minor")]
    pub nbformat_minor: u64,
    /// What else was in the file, at its top.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

pub(crate) fn minor() -> u64 {
    5
}

/// A notebook's new title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookTitled {
    /// What people call it.
    pub title: String,
}

/// What is said about a notebook, by name; null takes it away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookMetadata {
    /// What is new.
    pub set: Map<String, Value>,
}

/// How many runtimes a notebook has at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runtimes {
    /// One.
    #[default]
    One,
    /// One of each type, such as Python and JavaScript side by side.
    OnePerType,
}

/// A notebook has another number of runtimes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimesChanged {
    /// How many.
    pub runtimes: Runtimes,
}

/// A new cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellCreated {
    /// Its id: one that no cell of the notebook has.
    pub cell_id: CellId,
    /// What it is.
    pub cell_type: CellType,
    /// Where it is.
    pub place: Place,
    /// What it says.
    #[serde(default)]
    pub source: String,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What else was in the file: attachments, and what nobody knows.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// A cell was edited: all of it, or a piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellSource {
    /// Which cell.
    pub cell_id: CellId,
    /// All that it says now, where all was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The pieces that were replaced then, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splices: Vec<Splice>,
}

/// A cell's new type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellTyped {
    /// Which cell.
    pub cell_id: CellId,
    /// What it is now.
    pub cell_type: CellType,
}

/// A cell's new place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellMoved {
    /// Which cell.
    pub cell_id: CellId,
    /// Where it is now.
    pub place: Place,
}

/// A cell is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellDeleted {
    /// Which cell.
    pub cell_id: CellId,
}

/// What is shown of a cell. Left out is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellVisibility {
    /// Which cell.
    pub cell_id: CellId,
    /// Whether its source is folded away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_hidden: Option<bool>,
    /// Whether its outputs are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_hidden: Option<bool>,
}

/// What is said about a cell, by name; null takes it away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellMetadata {
    /// Which cell.
    pub cell_id: CellId,
    /// What is new.
    pub set: Map<String, Value>,
}

/// Somebody wants a cell to run as it is at this event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionRequested {
    /// The id of this run: one that the notebook never had.
    pub execution_id: ExecutionId,
    /// Which cell.
    pub cell_id: CellId,
    /// The type of the runtime, where there can be several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_type: Option<String>,
    /// In which role, where a person asks; an agent has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// The gate let a cell run, there and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionAssigned {
    /// Which run.
    pub execution_id: ExecutionId,
    /// On which runtime session.
    pub session_id: SessionId,
}

/// The runtime began with a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionStarted {
    /// Which run.
    pub execution_id: ExecutionId,
    /// The kernel's number for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
}

/// Somebody wants a run to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionCancel {
    /// Which run.
    pub execution_id: ExecutionId,
}

/// A run came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionCompleted {
    /// Which run.
    pub execution_id: ExecutionId,
    /// How.
    pub outcome: Outcome,
    /// The kernel's number for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
}

/// A run was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionCancelled {
    /// Which run.
    pub execution_id: ExecutionId,
}

/// A run asks whoever is in front for a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputRequested {
    /// Which run.
    pub execution_id: ExecutionId,
    /// What it asks.
    #[serde(default)]
    pub prompt: String,
    /// Whether the answer must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
}

/// Somebody answered. What they said is for the runtime alone, and is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputAnswered {
    /// Which run.
    pub execution_id: ExecutionId,
    /// Who, by the server's word.
    pub answered_by: String,
}

/// Where something was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// More of what was printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terminal {
    /// By which run.
    pub execution_id: ExecutionId,
    /// Where.
    pub stream: StreamKind,
    /// What is new.
    pub text: String,
}

/// Something is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Displayed {
    /// By which run.
    pub execution_id: ExecutionId,
    /// What.
    pub bundle: Bundle,
    /// The id under which it can become another thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_id: Option<OutputId>,
}

/// What was shown is another thing now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisplayUpdated {
    /// By which run.
    pub execution_id: ExecutionId,
    /// The id it was shown under.
    pub display_id: OutputId,
    /// What it is now.
    pub bundle: Bundle,
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultOutput {
    /// By which run.
    pub execution_id: ExecutionId,
    /// What.
    pub bundle: Bundle,
    /// The kernel's number for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
}

/// What went wrong in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorOutput {
    /// By which run.
    pub execution_id: ExecutionId,
    /// The kind of error, such as `ZeroDivisionError`.
    pub name: String,
    /// What it says.
    pub value: String,
    /// Where it happened, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traceback: Vec<String>,
}

/// More of a text in Markdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Markdown {
    /// By which run.
    pub execution_id: ExecutionId,
    /// What is new.
    pub text: String,
}

/// The outputs of a cell are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleared {
    /// By which run.
    pub execution_id: ExecutionId,
    /// Only once the next output comes, so that nothing flickers.
    #[serde(default)]
    pub wait: bool,
}

/// Some output was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// Of which run.
    pub execution_id: ExecutionId,
    /// How many bytes.
    pub bytes: u64,
}

/// Outputs that came with a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Of which cell.
    pub cell_id: CellId,
    /// What.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// The kernel's number for the run that made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
}

/// A runtime announced itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeStarted {
    /// Which session of it.
    pub session_id: SessionId,
    /// Which runtime, in its own words, such as `browser-echo`.
    pub runtime_id: String,
    /// What it runs, such as `python`.
    pub runtime_type: String,
    /// The person whose it is.
    pub client_id: String,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
}

/// How a runtime session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeUpdated {
    /// Which session.
    pub session_id: SessionId,
    /// What it is doing.
    pub state: SessionState,
}

/// Somebody wants a runtime to begin anew: all that it knows is to be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeRestart {
    /// Which session.
    pub session_id: SessionId,
}

/// Why a runtime session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// It was ended.
    Shutdown,
    /// It is begun anew.
    Restart,
    /// It failed.
    Error,
    /// It was not heard of for too long.
    Timeout,
    /// A newer one has its place.
    Displaced,
}

/// A runtime session is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeTerminated {
    /// Which session.
    pub session_id: SessionId,
    /// Why.
    pub reason: Termination,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Something is no longer kept beside the notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// `sha256:<hex>` of its bytes.
    pub digest: String,
}
