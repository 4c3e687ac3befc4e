//! Everything that can happen in a notebook.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::bundle::{ArtifactRef, Bundle};
pub use crate::carried::*;
use crate::id::ExecutionId;
use crate::upcast;

/// Something that happened in a notebook. The tag is its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", remote = "Self")]
pub enum NotebookEvent {
    /// It was made; always the first.
    #[serde(rename = "notebook.made")]
    NotebookMade(NotebookMade),
    /// It is called something else.
    #[serde(rename = "notebook.titled")]
    NotebookTitled(NotebookTitled),
    /// Other things are said about it.
    #[serde(rename = "notebook.metadata")]
    NotebookMetadata(NotebookMetadata),
    /// How many runtimes it has at once.
    #[serde(rename = "notebook.runtimes")]
    RuntimesChanged(RuntimesChanged),
    /// There is a new cell.
    #[serde(rename = "cell.created")]
    CellCreated(CellCreated),
    /// What a cell says was edited.
    #[serde(rename = "cell.source")]
    CellSource(CellSource),
    /// A cell is of another type.
    #[serde(rename = "cell.type")]
    CellTyped(CellTyped),
    /// A cell is elsewhere.
    #[serde(rename = "cell.moved")]
    CellMoved(CellMoved),
    /// A cell is gone, with its outputs.
    #[serde(rename = "cell.deleted")]
    CellDeleted(CellDeleted),
    /// What is shown of a cell.
    #[serde(rename = "cell.visibility")]
    CellVisibility(CellVisibility),
    /// Other things are said about a cell.
    #[serde(rename = "cell.metadata")]
    CellMetadata(CellMetadata),
    /// Somebody wants a cell to run.
    #[serde(rename = "execution.requested")]
    ExecutionRequested(ExecutionRequested),
    /// The gate let it, on this runtime session.
    #[serde(rename = "execution.assigned")]
    ExecutionAssigned(ExecutionAssigned),
    /// The runtime began.
    #[serde(rename = "execution.started")]
    ExecutionStarted(ExecutionStarted),
    /// Somebody wants it to stop.
    #[serde(rename = "execution.cancel")]
    ExecutionCancel(ExecutionCancel),
    /// It came to its end, good or bad.
    #[serde(rename = "execution.completed")]
    ExecutionCompleted(ExecutionCompleted),
    /// It was stopped because somebody wanted it.
    #[serde(rename = "execution.cancelled")]
    ExecutionCancelled(ExecutionCancelled),
    /// A run asks for a line of input.
    #[serde(rename = "input.requested")]
    InputRequested(InputRequested),
    /// Somebody answered.
    #[serde(rename = "input.answered")]
    InputAnswered(InputAnswered),
    /// More of what was printed.
    #[serde(rename = "output.terminal")]
    Terminal(Terminal),
    /// Something is shown.
    #[serde(rename = "output.display")]
    Displayed(Displayed),
    /// What is shown under this id is another thing now, wherever it is.
    #[serde(rename = "output.display_updated")]
    DisplayUpdated(DisplayUpdated),
    /// The value of the cell.
    #[serde(rename = "output.result")]
    ResultOutput(ResultOutput),
    /// What went wrong in the cell.
    #[serde(rename = "output.error")]
    ErrorOutput(ErrorOutput),
    /// More of a text in Markdown.
    #[serde(rename = "output.markdown")]
    Markdown(Markdown),
    /// The outputs of the cell are gone.
    #[serde(rename = "output.cleared")]
    Cleared(Cleared),
    /// Some output was not kept.
    #[serde(rename = "output.dropped")]
    Dropped(Dropped),
    /// Outputs that came with a file.
    #[serde(rename = "output.imported")]
    Imported(Imported),
    /// A runtime announced itself.
    #[serde(rename = "runtime.started")]
    RuntimeStarted(RuntimeStarted),
    /// What a runtime is doing.
    #[serde(rename = "runtime.status")]
    RuntimeStatus(RuntimeUpdated),
    /// The same session went on after its runtime was away, such as a page that was loaded again.
    #[serde(rename = "runtime.renewed")]
    RuntimeRenewed(RuntimeUpdated),
    /// Somebody wants a runtime to begin anew.
    #[serde(rename = "runtime.restart")]
    RuntimeRestart(RuntimeRestart),
    /// A runtime session is over.
    #[serde(rename = "runtime.terminated")]
    RuntimeTerminated(RuntimeTerminated),
    /// Something large is kept beside the notebook.
    #[serde(rename = "artifact.added")]
    ArtifactAdded(ArtifactRef),
    /// It is no longer.
    #[serde(rename = "artifact.removed")]
    ArtifactRemoved(Removed),
}

impl NotebookEvent {
    /// Every kind.
    pub const KINDS: [&'static str; 35] = [
        "notebook.made",
        "notebook.titled",
        "notebook.metadata",
        "notebook.runtimes",
        "cell.created",
        "cell.source",
        "cell.type",
        "cell.moved",
        "cell.deleted",
        "cell.visibility",
        "cell.metadata",
        "execution.requested",
        "execution.assigned",
        "execution.started",
        "execution.cancel",
        "execution.completed",
        "execution.cancelled",
        "input.requested",
        "input.answered",
        "output.terminal",
        "output.display",
        "output.display_updated",
        "output.result",
        "output.error",
        "output.markdown",
        "output.cleared",
        "output.dropped",
        "output.imported",
        "runtime.started",
        "runtime.status",
        "runtime.renewed",
        "runtime.restart",
        "runtime.terminated",
        "artifact.added",
        "artifact.removed",
    ];

    /// Its kind, as it is written.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotebookMade(_) => "notebook.made",
            Self::NotebookTitled(_) => "notebook.titled",
            Self::NotebookMetadata(_) => "notebook.metadata",
            Self::RuntimesChanged(_) => "notebook.runtimes",
            Self::CellCreated(_) => "cell.created",
            Self::CellSource(_) => "cell.source",
            Self::CellTyped(_) => "cell.type",
            Self::CellMoved(_) => "cell.moved",
            Self::CellDeleted(_) => "cell.deleted",
            Self::CellVisibility(_) => "cell.visibility",
            Self::CellMetadata(_) => "cell.metadata",
            Self::ExecutionRequested(_) => "execution.requested",
            Self::ExecutionAssigned(_) => "execution.assigned",
            Self::ExecutionStarted(_) => "execution.started",
            Self::ExecutionCancel(_) => "execution.cancel",
            Self::ExecutionCompleted(_) => "execution.completed",
            Self::ExecutionCancelled(_) => "execution.cancelled",
            Self::InputRequested(_) => "input.requested",
            Self::InputAnswered(_) => "input.answered",
            Self::Terminal(_) => "output.terminal",
            Self::Displayed(_) => "output.display",
            Self::DisplayUpdated(_) => "output.display_updated",
            Self::ResultOutput(_) => "output.result",
            Self::ErrorOutput(_) => "output.error",
            Self::Markdown(_) => "output.markdown",
            Self::Cleared(_) => "output.cleared",
            Self::Dropped(_) => "output.dropped",
            Self::Imported(_) => "output.imported",
            Self::RuntimeStarted(_) => "runtime.started",
            Self::RuntimeStatus(_) => "runtime.status",
            Self::RuntimeRenewed(_) => "runtime.renewed",
            Self::RuntimeRestart(_) => "runtime.restart",
            Self::RuntimeTerminated(_) => "runtime.terminated",
            Self::ArtifactAdded(_) => "artifact.added",
            Self::ArtifactRemoved(_) => "artifact.removed",
        }
    }

    /// The execution that it is about, for what a runtime says of one.
    #[must_use]
    pub fn execution(&self) -> Option<&ExecutionId> {
        match self {
            Self::ExecutionRequested(event) => Some(&event.execution_id),
            Self::ExecutionAssigned(event) => Some(&event.execution_id),
            Self::ExecutionStarted(event) => Some(&event.execution_id),
            Self::ExecutionCancel(event) => Some(&event.execution_id),
            Self::ExecutionCompleted(event) => Some(&event.execution_id),
            Self::ExecutionCancelled(event) => Some(&event.execution_id),
            Self::InputRequested(event) => Some(&event.execution_id),
            Self::InputAnswered(event) => Some(&event.execution_id),
            Self::Terminal(event) => Some(&event.execution_id),
            Self::Displayed(event) => Some(&event.execution_id),
            Self::DisplayUpdated(event) => Some(&event.execution_id),
            Self::ResultOutput(event) => Some(&event.execution_id),
            Self::ErrorOutput(event) => Some(&event.execution_id),
            Self::Markdown(event) => Some(&event.execution_id),
            Self::Cleared(event) => Some(&event.execution_id),
            Self::Dropped(event) => Some(&event.execution_id),
            Self::NotebookMade(_)
            | Self::NotebookTitled(_)
            | Self::NotebookMetadata(_)
            | Self::RuntimesChanged(_)
            | Self::CellCreated(_)
            | Self::CellSource(_)
            | Self::CellTyped(_)
            | Self::CellMoved(_)
            | Self::CellDeleted(_)
            | Self::CellVisibility(_)
            | Self::CellMetadata(_)
            | Self::Imported(_)
            | Self::RuntimeStarted(_)
            | Self::RuntimeStatus(_)
            | Self::RuntimeRenewed(_)
            | Self::RuntimeRestart(_)
            | Self::RuntimeTerminated(_)
            | Self::ArtifactAdded(_)
            | Self::ArtifactRemoved(_) => None,
        }
    }
}

impl NotebookEvent {
    /// What it shows in media types, where it does.
    #[must_use]
    pub fn bundle(&self) -> Option<&Bundle> {
        match self {
            Self::Displayed(event) => Some(&event.bundle),
            Self::DisplayUpdated(event) => Some(&event.bundle),
            Self::ResultOutput(event) => Some(&event.bundle),
            _ => None,
        }
    }

    /// What stands in the place of an output that cannot be kept; nothing for what is no output.
    #[must_use]
    pub fn instead(&self) -> Option<Self> {
        let execution_id = match self {
            Self::Terminal(event) => &event.execution_id,
            Self::Displayed(event) => &event.execution_id,
            Self::DisplayUpdated(event) => &event.execution_id,
            Self::ResultOutput(event) => &event.execution_id,
            Self::ErrorOutput(event) => &event.execution_id,
            Self::Markdown(event) => &event.execution_id,
            _ => return None,
        };
        let bytes = serde_json::to_string(self).map_or(0, |text| text.len());
        Some(Self::Dropped(Dropped {
            execution_id: execution_id.clone(),
            bytes: bytes as u64,
        }))
    }
}

impl Serialize for NotebookEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for NotebookEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut event = Map::<String, Value>::deserialize(deserializer)?;
        upcast::upcast(&mut event, upcast::STEPS);
        Self::deserialize(Value::Object(event)).map_err(serde::de::Error::custom)
    }
}
