//! A wish to run a cell on its way to the gate, and what became of it back into the notebook.

use std::sync::Arc;
use std::time::Duration;

use gate::{Actor, Gate, Live, Request};
use notebook::{
    ExecutionCancel, ExecutionCancelled, ExecutionId, ExecutionRequested, ExecutionState,
    NotebookEvent,
};
use protocol::runtime::RuntimeChoice;
use protocol::{ActionName, ErrorKind, Failure};
use serde_json::json;
use store::Store;

use crate::book::Book;
use crate::check::failed;
use crate::place::{PREFIX, action_id};

/// How long a runtime has to stop what it was asked to stop.
const STOPPING: Duration = Duration::from_secs(10);

/// Takes a wish to the gate, and its outcome back.
pub(crate) fn start<S: Store>(
    gate: &Gate<S>,
    book: &Arc<Book<S>>,
    actor: &Actor,
    wanted: &ExecutionRequested,
) {
    let (gate, book, actor) = (gate.clone(), Arc::clone(book), actor.clone());
    let wanted = wanted.clone();
    tokio::spawn(async move {
        let id = wanted.execution_id.clone();
        let ended = match submit(&gate, &book, &actor, &wanted).await {
            Ok(live) => live.ended().await.outcome.clone().map(drop),
            Err(failure) => Err(failure),
        };
        close(&book, &id, ended).await;
    });
}

async fn submit<S: Store>(
    gate: &Gate<S>,
    book: &Book<S>,
    actor: &Actor,
    wanted: &ExecutionRequested,
) -> Result<Arc<Live>, Failure> {
    let id = &wanted.execution_id;
    let run = book.look(|notebook| notebook.execution(id).cloned());
    let run = run.ok_or_else(|| Failure::new(ErrorKind::Unknown, "The run is gone."))?;
    let params = json!({
        "notebook_id": book.id,
        "cell_id": run.cell_id,
        "execution_id": id,
        "cell_type": run.cell_type,
        "source": run.source,
    });
    let mut request = Request::new(ActionName::CellExecute.as_str(), params);
    request.id = Some(action_id(&book.id, id));
    request.role.clone_from(&wanted.role);
    request.workspace = Some(book.info().workspace.into());
    request.runtime = Some(RuntimeChoice::Id(format!("{PREFIX}{}", book.id)));
    gate.submit(actor, request).await
}

/// Somebody wants a run to stop. What the runtime has it is to stop; what waits elsewhere is
/// stopped at the gate.
pub(crate) fn cancel<S: Store>(gate: &Gate<S>, book: &Arc<Book<S>>, id: &ExecutionId) {
    let person = Actor::Person(book.info().owner);
    let live = gate.action(&person, &action_id(&book.id, id)).ok();
    let (book, id) = (Arc::clone(book), id.clone());
    tokio::spawn(async move {
        let mut heads = book.heads();
        let is_over = |book: &Book<S>| {
            let state = book.look(|notebook| notebook.execution(&id).map(|run| run.state));
            state.is_none_or(ExecutionState::is_over)
        };
        let state = book.look(|notebook| notebook.execution(&id).map(|run| run.state));
        if matches!(
            state,
            Some(ExecutionState::Assigned | ExecutionState::Running)
        ) {
            let stopped = async {
                while !is_over(&book) {
                    if heads.changed().await.is_err() {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(STOPPING, stopped).await;
        }
        match live {
            _ if is_over(&book) => {}
            Some(live) => live.cancel(),
            None => {
                let cancelled = Failure::new(ErrorKind::Cancelled, "It was cancelled.");
                close(&book, &id, Err(cancelled)).await;
            }
        }
    });
}

/// Says how a run ended, where nobody has.
async fn close<S: Store>(book: &Book<S>, id: &ExecutionId, ended: Result<(), Failure>) {
    let said = book
        .say(|notebook| {
            let run = notebook.execution(id);
            let Some(run) = run.filter(|run| !run.state.is_over()) else {
                return Vec::new();
            };
            let execution_id = id.clone();
            match &ended {
                Err(failure) if failure.kind == ErrorKind::Cancelled => {
                    let mut events = Vec::new();
                    // The runtime has to know, if it has it.
                    if run.session_id.is_some() && !run.cancel {
                        let execution_id = execution_id.clone();
                        events.push(NotebookEvent::ExecutionCancel(ExecutionCancel {
                            execution_id,
                        }));
                    }
                    events.push(NotebookEvent::ExecutionCancelled(ExecutionCancelled {
                        execution_id,
                    }));
                    events
                }
                Err(failure) if failure.kind == ErrorKind::BadPolicy => {
                    // What runs in a kernel between two cells can leave such a file, and who wrote
                    // it nobody knows but the person.
                    let message = format!(
                        "{} If it is in the workspace and not yours, a cell left it there: remove it and run the cell again, or restart the runtime, which sets it aside.",
                        failure.message
                    );
                    vec![failed(id, failure.kind, &message)]
                }
                Err(failure) => vec![failed(id, failure.kind, &failure.message)],
                Ok(()) => vec![failed(
                    id,
                    ErrorKind::Conflict,
                    "An action of this id was done before. Give each run its own `execution_id`.",
                )],
            }
        })
        .await;
    if let Err(failure) = said {
        tracing::error!(%failure, "the end of a run could not be written");
    }
}

/// What an earlier Ward left: sessions are over with it, what they had is lost, and what waits for
/// an answer goes on waiting.
pub(crate) async fn resume<S: Store>(gate: &Gate<S>, book: &Arc<Book<S>>) -> Result<(), Failure> {
    let sessions = book.look(|notebook| {
        let active = notebook.sessions().iter().filter(|one| one.is_active());
        active.map(|one| one.session_id.clone()).collect::<Vec<_>>()
    });
    for session in sessions {
        let why = "Ward ended while this was under way. Nobody knows how far it came; run the cell again if you want.";
        book.end(&session, notebook::Termination::Error, why)
            .await?;
    }
    let waiting = book.look(|notebook| {
        let waiting = notebook.queue().map(|run| run.execution_id.clone());
        waiting.collect::<Vec<_>>()
    });
    let person = Actor::Person(book.info().owner);
    for id in waiting {
        match gate.action(&person, &action_id(&book.id, &id)) {
            Ok(live) => {
                let book = Arc::clone(book);
                tokio::spawn(async move {
                    let ended = live.ended().await.outcome.clone().map(drop);
                    close(&book, &id, ended).await;
                });
            }
            Err(_) => {
                let lost = Failure::new(
                    ErrorKind::RuntimeLost,
                    "Ward ended before this began. Run the cell again.",
                );
                close(book, &id, Err(lost)).await;
            }
        }
    }
    Ok(())
}
