//! What an agent writes, as events.

use notebook::{
    Cleared, DisplayUpdated, Displayed, Dropped, ErrorOutput, ExecutionCancelled,
    ExecutionCompleted, ExecutionId, Failed, Markdown, NotebookEvent, Outcome, ResultOutput,
    Terminal,
};
use protocol::ErrorKind;

use crate::outbox::Said;

/// What a handler said; nothing for what is not the cell's.
pub(crate) fn said(execution_id: ExecutionId, said: Said) -> Option<NotebookEvent> {
    Some(match said {
        Said::Count(_) | Said::Status(_) => return None,
        Said::Terminal { stream, text } => NotebookEvent::Terminal(Terminal {
            execution_id,
            stream,
            text,
        }),
        Said::Display { bundle, id } => NotebookEvent::Displayed(Displayed {
            execution_id,
            bundle,
            display_id: id,
        }),
        Said::Update { id, bundle } => NotebookEvent::DisplayUpdated(DisplayUpdated {
            execution_id,
            display_id: id,
            bundle,
        }),
        Said::Result { bundle, count } => NotebookEvent::ResultOutput(ResultOutput {
            execution_id,
            bundle,
            execution_count: count,
        }),
        Said::Error {
            name,
            value,
            traceback,
        } => NotebookEvent::ErrorOutput(ErrorOutput {
            execution_id,
            name,
            value,
            traceback,
        }),
        Said::Markdown(text) => NotebookEvent::Markdown(Markdown { execution_id, text }),
        Said::Clear { wait } => NotebookEvent::Cleared(Cleared { execution_id, wait }),
        Said::Dropped(bytes) => NotebookEvent::Dropped(Dropped {
            execution_id,
            bytes,
        }),
    })
}

pub(crate) fn completed(
    execution_id: ExecutionId,
    outcome: Outcome,
    count: Option<u64>,
) -> NotebookEvent {
    NotebookEvent::ExecutionCompleted(ExecutionCompleted {
        execution_id,
        outcome,
        execution_count: count,
    })
}

pub(crate) fn failed(execution_id: ExecutionId, kind: ErrorKind, message: &str) -> NotebookEvent {
    let failed = Failed {
        kind: word(kind),
        message: message.to_owned(),
    };
    completed(execution_id, Outcome::Failed(failed), None)
}

pub(crate) fn cancelled(execution_id: ExecutionId) -> NotebookEvent {
    NotebookEvent::ExecutionCancelled(ExecutionCancelled { execution_id })
}

/// An error kind as it is written.
fn word(kind: ErrorKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}
