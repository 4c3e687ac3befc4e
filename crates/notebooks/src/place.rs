//! Where the gate runs a cell: the runtime session that has the notebook.

use std::sync::Arc;

use gate::runtime::{Output, Permit, Runtime, Waiting};
use notebook::{
    Comm, Execution, ExecutionAssigned, ExecutionId, ExecutionState, Notebook, NotebookEvent,
    RuntimeSession, SessionId, SessionState,
};
use policy::Confinement;
use protocol::facts::CellFact;
use protocol::method::InitializeResult;
use protocol::runtime::{RuntimeHealth, RuntimeInfo};
use protocol::{ActionName, Digest, ErrorKind, Facts, Failure, Mode};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use store::Store;

use crate::book::Book;
use crate::comms;

/// What stands before a notebook's id where a runtime is chosen.
pub(crate) const PREFIX: &str = "notebook:";

/// The parameters of `cell.execute`: a run, or a message to what a run left in the kernel, which
/// runs code there just as well.
#[derive(Debug, Deserialize)]
struct Params {
    execution_id: Option<ExecutionId>,
    comm: Option<Comm>,
    /// Which runtime has the comm, where there can be several.
    runtime_type: Option<String>,
}

/// What is to be run.
enum Wanted {
    Run(ExecutionId),
    Message {
        comm: Comm,
        runtime_type: Option<String>,
    },
}

/// The runtime of a notebook, as the gate sees it.
pub(crate) struct Place<S: Store>(pub(crate) Arc<Book<S>>);

impl<S: Store> Runtime for Place<S> {
    fn confinement(&self) -> Confinement {
        // Of several that could be asked for, the weakest counts.
        let confined = self.0.look(|notebook| {
            let mut active = notebook.sessions().iter().filter(|one| one.is_active());
            active.all(|session| session.capabilities.confined)
        });
        match confined {
            true => Confinement::Kernel,
            false => Confinement::Absent,
        }
    }

    fn resolve<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Result<Facts, Failure>> {
        Box::pin(std::future::ready(self.facts(action, params)))
    }

    fn execute(&self, permit: Permit, _: Output) -> Waiting<'_, Result<Box<RawValue>, Failure>> {
        Box::pin(self.run(permit))
    }

    fn about(&self) -> Waiting<'_, Result<Arc<InitializeResult>, Failure>> {
        Box::pin(std::future::ready(Err(Failure::new(
            ErrorKind::NotCapable,
            "A notebook's runtime runs the notebook's cells and nothing else.",
        ))))
    }

    fn status(&self) -> RuntimeInfo {
        let info = self.0.info();
        let session = self.0.look(|notebook| notebook.active(None).cloned());
        match session {
            Some(session) => about(&self.0.id, &info.workspace, &info.title, &session),
            None => RuntimeInfo {
                state: RuntimeHealth::Away,
                ..nobody(&self.0.id, &info.workspace, &info.title)
            },
        }
    }

    fn stop(&self) -> Waiting<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl<S: Store> Place<S> {
    fn facts(&self, action: &str, params: &Value) -> Result<Facts, Failure> {
        let id = match wanted(action, params)? {
            Wanted::Run(id) => id,
            Wanted::Message { comm, runtime_type } => {
                return self.0.look(|notebook| {
                    let session = hears(notebook, runtime_type.as_deref())?;
                    facts_of_message(&self.0.id, &comm, session)
                });
            }
        };
        self.0.look(|notebook| {
            let run = notebook.execution(&id).ok_or_else(|| no_run(&id))?;
            if run.state != ExecutionState::Requested {
                return Err(done_already(&id));
            }
            let session = capable(notebook, run)?;
            Ok(facts_of(&self.0.id, run, session))
        })
    }

    /// Waits for its turn, assigns it, and waits for its end.
    async fn run(&self, permit: Permit) -> Result<Box<RawValue>, Failure> {
        let id = match wanted(ActionName::CellExecute.as_str(), permit.params())? {
            Wanted::Run(id) => id,
            Wanted::Message { comm, runtime_type } => {
                return self.pass_on(comm, runtime_type.as_deref(), &permit).await;
            }
        };
        if permit.id() != action_id(&self.0.id, &id) {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "A cell is run by an event `execution.requested` of its notebook, and in no other way.",
            ));
        }
        let mut heads = self.0.heads();
        let session = loop {
            heads.borrow_and_update();
            if let Some(session) = self.assign(&id, &permit).await? {
                break session;
            }
            changed(&mut heads).await?;
        };
        loop {
            heads.borrow_and_update();
            let run = self.0.look(|notebook| notebook.execution(&id).cloned());
            let run = run.ok_or_else(|| no_run(&id))?;
            if run.state.is_over() {
                return outcome(&run, &session);
            }
            changed(&mut heads).await?;
        }
    }

    /// Gives a message to the runtime that has its comm, and waits until it has it.
    async fn pass_on(
        &self,
        comm: Comm,
        runtime_type: Option<&str>,
        permit: &Permit,
    ) -> Result<Box<RawValue>, Failure> {
        let session = self.0.look(|notebook| {
            let session = hears(notebook, runtime_type)?;
            let found = facts_of_message(&self.0.id, &comm, session)?;
            let held = permit.mode() == Mode::Full || session.capabilities.confined;
            match found == *permit.facts() && held {
                true => Ok(session.session_id.clone()),
                false => Err(changed_since(&found)),
            }
        })?;
        self.0.give_comm(&session, comm).await?;
        raw(&json!({"status": "ok", "session_id": session}))
    }

    /// Assigns a run if it is the next of its session's; nothing where others are before it.
    async fn assign(
        &self,
        id: &ExecutionId,
        permit: &Permit,
    ) -> Result<Option<SessionId>, Failure> {
        enum Turn {
            Yes(SessionId),
            NotYet,
            Never(Failure),
        }
        let mut turn = Turn::NotYet;
        self.0
            .say(|notebook| {
                turn = match self.turn(notebook, id, permit) {
                    Ok(Some(session)) => Turn::Yes(session),
                    Ok(None) => Turn::NotYet,
                    Err(failure) => Turn::Never(failure),
                };
                match &turn {
                    Turn::Yes(session) => {
                        vec![NotebookEvent::ExecutionAssigned(ExecutionAssigned {
                            execution_id: id.clone(),
                            session_id: session.clone(),
                        })]
                    }
                    Turn::NotYet | Turn::Never(_) => Vec::new(),
                }
            })
            .await?;
        match turn {
            Turn::Yes(session) => Ok(Some(session)),
            Turn::NotYet => Ok(None),
            Turn::Never(failure) => Err(failure),
        }
    }

    fn turn(
        &self,
        notebook: &Notebook,
        id: &ExecutionId,
        permit: &Permit,
    ) -> Result<Option<SessionId>, Failure> {
        let run = notebook.execution(id).ok_or_else(|| no_run(id))?;
        if run.state != ExecutionState::Requested {
            return Err(done_already(id));
        }
        let session = capable(notebook, run)?;
        let found = facts_of(&self.0.id, run, session);
        // What was let because it is confined does not run where it is not: another runtime may have
        // come since.
        let held = permit.mode() == Mode::Full || session.capabilities.confined;
        if found != *permit.facts() || !held {
            return Err(changed_since(&found));
        }
        // Whoever was asked for before, on the same runtime, is first.
        let mut before = notebook
            .queue()
            .take_while(|other| other.execution_id != *id);
        let waits = before.any(|other| match &other.session_id {
            Some(other) => *other == session.session_id,
            None => {
                capable(notebook, other).is_ok_and(|other| other.session_id == session.session_id)
            }
        });
        Ok((!waits).then(|| session.session_id.clone()))
    }
}

/// The session that would run this.
fn capable<'a>(notebook: &'a Notebook, run: &Execution) -> Result<&'a RuntimeSession, Failure> {
    let kind = run.runtime_type.as_deref();
    let mut active = notebook.all_active(kind);
    let able = active.find(|session| session.capabilities.can(run.cell_type));
    // Where none is, the newest says what is missing.
    let Some(session) = able.or_else(|| notebook.active(kind)) else {
        return Err(Failure::new(
            ErrorKind::NoRuntime,
            match &run.runtime_type {
                Some(kind) => format!(
                    "No {kind} runtime has this notebook. Start one, then run the cell again."
                ),
                None => {
                    "No runtime has this notebook. Start one, then run the cell again.".to_owned()
                }
            },
        ));
    };
    match session.capabilities.can(run.cell_type) {
        true => Ok(session),
        false => Err(Failure::new(
            ErrorKind::NotCapable,
            format!(
                "This notebook's runtime ({}) does not run {} cells. Start one that does.",
                session.runtime_type,
                run.cell_type.as_str()
            ),
        )),
    }
}

/// The session that takes a message.
fn hears<'a>(
    notebook: &'a Notebook,
    runtime_type: Option<&str>,
) -> Result<&'a RuntimeSession, Failure> {
    let mut active = notebook.all_active(runtime_type);
    let able = active.find(|session| session.capabilities.takes_comms);
    let session = able.or_else(|| notebook.active(runtime_type));
    let session = session.ok_or_else(|| {
        Failure::new(
            ErrorKind::NoRuntime,
            "No runtime has this notebook, so that its widgets hear nothing.",
        )
    })?;
    match session.capabilities.takes_comms {
        true => Ok(session),
        false => Err(Failure::new(
            ErrorKind::NotCapable,
            format!(
                "This notebook's runtime ({}) takes no messages to widgets. Start one that does.",
                session.runtime_type
            ),
        )),
    }
}

fn facts_of_message(
    notebook: &str,
    comm: &Comm,
    session: &RuntimeSession,
) -> Result<Facts, Failure> {
    let written = serde_json::to_vec(comm)
        .map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))?;
    Ok(Facts {
        cell: Some(CellFact {
            notebook_id: notebook.to_owned(),
            cell_id: String::new(),
            execution_id: String::new(),
            comm_id: Some(comm.comm_id.clone()),
            language: session.runtime_type.clone(),
            digest: Digest::of(&written),
        }),
        word_of: Some(session.runtime_type.clone()),
        ..Facts::default()
    })
}

fn changed_since(found: &Facts) -> Failure {
    Failure::new(
        ErrorKind::Changed,
        "What would run is no longer what was decided on.",
    )
    .with("found", json!(found))
}

fn facts_of(notebook: &str, run: &Execution, session: &RuntimeSession) -> Facts {
    Facts {
        cell: Some(CellFact {
            notebook_id: notebook.to_owned(),
            cell_id: run.cell_id.to_string(),
            execution_id: run.execution_id.to_string(),
            comm_id: None,
            language: match run.cell_type {
                notebook::CellType::Code => session.runtime_type.clone(),
                other => other.as_str().to_owned(),
            },
            digest: Digest::of(run.source.as_bytes()),
        }),
        word_of: Some(session.runtime_type.clone()),
        ..Facts::default()
    }
}

/// How a run ended, as the outcome of the action. A cell that failed was run.
fn outcome(run: &Execution, session: &SessionId) -> Result<Box<RawValue>, Failure> {
    let lost = |kind: &str| kind == "runtime_lost";
    match (run.state, &run.failed) {
        (ExecutionState::Cancelled, _) => Err(Failure::new(
            ErrorKind::Cancelled,
            "The cell was stopped because somebody wanted it.",
        )),
        (_, Some(failed)) if lost(&failed.kind) => {
            Err(Failure::new(ErrorKind::RuntimeLost, failed.message.clone()))
        }
        (_, failed) => {
            let result = match failed {
                Some(failed) => {
                    json!({"status": "failed", "session_id": session, "failed": failed})
                }
                None => json!({"status": "ok", "session_id": session}),
            };
            raw(&result)
        }
    }
}

fn raw(result: &Value) -> Result<Box<RawValue>, Failure> {
    to_raw_value(result).map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))
}

/// The action's id of a run: sent again, it is the same.
pub(crate) fn action_id(notebook: &str, execution: &ExecutionId) -> String {
    // Both together are too long for an id.
    let digest = Digest::of(format!("{notebook}/{execution}").as_bytes());
    let short: String = digest.as_str().chars().skip(7).take(40).collect();
    format!("cell-{short}")
}

pub(crate) fn about(
    notebook: &str,
    workspace: &str,
    title: &str,
    session: &RuntimeSession,
) -> RuntimeInfo {
    RuntimeInfo {
        version: session.runtime_id.clone(),
        confined: session.capabilities.confined,
        state: match session.state {
            SessionState::Starting => RuntimeHealth::Starting,
            SessionState::Ready => RuntimeHealth::Ready,
            SessionState::Busy => RuntimeHealth::Busy,
            SessionState::Restarting => RuntimeHealth::Restarting,
            SessionState::Terminated => RuntimeHealth::Stopped,
        },
        kind: session.runtime_type.clone(),
        restarts: session.restarts,
        ..nobody(notebook, workspace, title)
    }
}

fn nobody(notebook: &str, workspace: &str, title: &str) -> RuntimeInfo {
    RuntimeInfo {
        runtime_id: format!("{PREFIX}{notebook}"),
        kind: "notebook".to_owned(),
        workspace: workspace.to_owned(),
        workspace_name: title.to_owned(),
        state: RuntimeHealth::Away,
        capabilities: vec![ActionName::CellExecute.as_str().to_owned()],
        version: String::new(),
        extension_version: String::new(),
        confined: false,
        restarts: 0,
        process: None,
    }
}

fn wanted(action: &str, params: &Value) -> Result<Wanted, Failure> {
    if action != ActionName::CellExecute.as_str() {
        return Err(Failure::new(
            ErrorKind::NotCapable,
            format!("A notebook's runtime cannot do {action}."),
        ));
    }
    let params: Params = serde_json::from_value(params.clone())
        .map_err(|error| Failure::new(ErrorKind::InvalidParams, error.to_string()))?;
    match (params.execution_id, params.comm) {
        (Some(id), None) => Ok(Wanted::Run(id)),
        (None, Some(comm)) => {
            comm.check().map_err(|bad| comms::refused(&bad))?;
            Ok(Wanted::Message {
                comm,
                runtime_type: params.runtime_type,
            })
        }
        (Some(_), Some(_)) | (None, None) => Err(Failure::new(
            ErrorKind::InvalidParams,
            "`cell.execute` runs a cell by its `execution_id`, or sends a message, `comm`, to what one made.",
        )),
    }
}

async fn changed(heads: &mut tokio::sync::watch::Receiver<store::Seq>) -> Result<(), Failure> {
    heads
        .changed()
        .await
        .map_err(|_| Failure::new(ErrorKind::RuntimeLost, "The notebook was closed meanwhile."))
}

fn no_run(id: &ExecutionId) -> Failure {
    Failure::new(
        ErrorKind::Unknown,
        format!("There is no run `{id}` in this notebook that waits."),
    )
}

fn done_already(id: &ExecutionId) -> Failure {
    Failure::new(
        ErrorKind::Closed,
        format!("The run `{id}` was assigned already, or is over."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_the_runtime_does_not_run_is_refused_with_what_it_is_and_what_to_do() {
        let mut notebook = Notebook::default();
        let events: Vec<NotebookEvent> = serde_json::from_value(json!([
            {"kind": "cell.created", "cell_id": "a", "cell_type": "sql", "place": "V"},
            {"kind": "runtime.started", "session_id": "s", "runtime_id": "ward-01a1ebaab19b", "runtime_type": "python", "client_id": "ada", "capabilities": {"can_execute_code": true}},
            {"kind": "execution.requested", "execution_id": "e", "cell_id": "a"},
        ]))
        .unwrap();
        for event in &events {
            notebook.take(event, None);
        }
        let run = notebook.execution(&ExecutionId::new("e").unwrap()).unwrap();
        let refused = capable(&notebook, run).unwrap_err();
        assert_eq!(
            (refused.kind, refused.message.as_str()),
            (
                ErrorKind::NotCapable,
                "This notebook's runtime (python) does not run sql cells. Start one that does."
            )
        );
    }
}
