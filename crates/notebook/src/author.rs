//! Who may append what: the one table.

use crate::event::NotebookEvent;

/// Who may append an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// Who edits the notebook.
    Editor,
    /// Who wants something to run, or to stop.
    Requester,
    /// The runtime session that the execution was assigned to, or that the event is about.
    Runtime,
    /// Ward alone: the gate, and who keeps runtime sessions and artifacts.
    Ward,
}

impl NotebookEvent {
    /// Who may append it. What a runtime says Ward may say in its place, once it is dead.
    #[must_use]
    pub fn author(&self) -> Author {
        match self {
            Self::NotebookTitled(_)
            | Self::NotebookMetadata(_)
            | Self::RuntimesChanged(_)
            | Self::CellCreated(_)
            | Self::CellSource(_)
            | Self::CellTyped(_)
            | Self::CellMoved(_)
            | Self::CellDeleted(_)
            | Self::CellVisibility(_)
            | Self::CellMetadata(_) => Author::Editor,
            Self::ExecutionRequested(_) | Self::ExecutionCancel(_) | Self::RuntimeRestart(_) => {
                Author::Requester
            }
            Self::ExecutionStarted(_)
            | Self::InputRequested(_)
            | Self::ExecutionCompleted(_)
            | Self::ExecutionCancelled(_)
            | Self::Terminal(_)
            | Self::Displayed(_)
            | Self::DisplayUpdated(_)
            | Self::ResultOutput(_)
            | Self::ErrorOutput(_)
            | Self::Markdown(_)
            | Self::Cleared(_)
            | Self::Dropped(_)
            | Self::RuntimeStatus(_)
            | Self::RuntimeTerminated(_) => Author::Runtime,
            Self::NotebookMade(_)
            | Self::ExecutionAssigned(_)
            | Self::InputAnswered(_)
            | Self::Imported(_)
            | Self::RuntimeStarted(_)
            | Self::RuntimeRenewed(_)
            | Self::ArtifactAdded(_)
            | Self::ArtifactRemoved(_) => Author::Ward,
        }
    }
}
