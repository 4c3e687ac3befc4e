//! Who may append what, to a notebook as it is.

use gate::Actor;
use notebook::{
    Author, Bundle, ErrorOutput, ExecutionCompleted, ExecutionId, ExecutionState, Failed, Media,
    Notebook, NotebookEvent, Outcome, RuntimeSession, RuntimeTerminated, Runtimes, RuntimesChanged,
    SessionId, SessionState, Termination, Unkept, is_media_type,
};
use protocol::{ErrorKind, Failure};

/// The longest source of a cell, and the most cells.
const MAX_SOURCE: usize = 1024 * 1024;
const MAX_CELLS: usize = 10_000;
/// The longest question of a run.
const MAX_PROMPT: usize = 16 * 1024;
/// Runs that wait for their turn.
const MAX_QUEUE: usize = 1_000;

/// Who speaks.
pub(crate) struct Speaker<'a> {
    /// Who authenticated.
    pub(crate) actor: &'a Actor,
    /// The runtime session that they have shown to be.
    pub(crate) session: Option<&'a SessionId>,
}

/// Refuses what whoever speaks may not say. What merely does not fit is let through: it changes
/// nothing, and a replica that was offline must be able to get rid of it.
pub(crate) fn may(
    notebook: &Notebook,
    speaker: &Speaker<'_>,
    event: &NotebookEvent,
) -> Result<(), Failure> {
    if let Err(unkept) = event.check_json() {
        let (kind, instead) = match unkept {
            Unkept::Deep => (
                ErrorKind::TooLarge,
                ", which not everybody could read again. Make it flatter, or send it as text.",
            ),
            Unkept::Name => (
                ErrorKind::InvalidParams,
                ". Leave it out, or send it as text.",
            ),
        };
        let error = format!("`{}` carries {unkept}{instead}", event.kind());
        return Err(Failure::new(kind, error).with("event", event.kind()));
    }
    match event.author() {
        Author::Editor => edit(notebook, speaker.actor, event),
        Author::Requester => request(notebook, speaker.actor, event),
        Author::Runtime => run(notebook, speaker.session, event),
        Author::Ward => Err(refused(event, "Only Ward itself says this")),
    }
}

fn edit(notebook: &Notebook, actor: &Actor, event: &NotebookEvent) -> Result<(), Failure> {
    if let Actor::Agent(_) = actor {
        return Err(refused(event, "An agent does not edit notebooks"));
    }
    let too_long = match event {
        NotebookEvent::CellCreated(event) => {
            if notebook.count() >= MAX_CELLS {
                return Err(Failure::new(
                    ErrorKind::TooLarge,
                    format!("A notebook has at most {MAX_CELLS} cells."),
                ));
            }
            if notebook.cell(&event.cell_id).is_some() {
                return Err(Failure::new(
                    ErrorKind::Conflict,
                    format!(
                        "There is a cell `{}` already. Give each its own `cell_id`.",
                        event.cell_id
                    ),
                ));
            }
            event.source.len() > MAX_SOURCE
        }
        NotebookEvent::CellSource(event) => {
            let inserted: usize = event.splices.iter().map(|one| one.insert.len()).sum();
            let known = notebook.cell(&event.cell_id);
            let before = match &event.source {
                Some(source) => source.len(),
                None => known.map_or(0, |cell| cell.source.len()),
            };
            inserted > 0 && before + inserted > MAX_SOURCE || before > MAX_SOURCE
        }
        NotebookEvent::NotebookTitled(event) => {
            if event.title.chars().count() > 200 {
                return Err(Failure::new(
                    ErrorKind::TooLarge,
                    "A title has at most 200 characters.",
                ));
            }
            false
        }
        _ => false,
    };
    match too_long {
        true => Err(Failure::new(
            ErrorKind::TooLarge,
            "The source of a cell has at most 1 MiB.",
        )),
        false => Ok(()),
    }
}

fn request(notebook: &Notebook, actor: &Actor, event: &NotebookEvent) -> Result<(), Failure> {
    if let (Actor::Agent(_), NotebookEvent::RuntimeRestart(_)) = (actor, event) {
        return Err(refused(event, "All that a runtime knows is a person's"));
    }
    let wanted = match event {
        NotebookEvent::ExecutionRequested(wanted) => wanted,
        NotebookEvent::ExecutionCancel(stop) => {
            let id = &stop.execution_id;
            return match notebook.execution(id) {
                Some(_) => Ok(()),
                None => Err(Failure::new(
                    ErrorKind::Closed,
                    format!("There is no run `{id}` in this notebook, or it was over long ago."),
                )),
            };
        }
        NotebookEvent::RuntimeRestart(restart) => {
            let id = &restart.session_id;
            return match notebook.session(id).is_some_and(RuntimeSession::is_active) {
                true => Ok(()),
                false => Err(Failure::new(
                    ErrorKind::Closed,
                    format!("There is no runtime session `{id}`, or it is over. Start a runtime."),
                )),
            };
        }
        _ => return Ok(()),
    };
    if let (Actor::Agent(agent), Some(role)) = (actor, &wanted.role)
        && *role != agent.role
    {
        return Err(Failure::new(
            ErrorKind::Forbidden,
            format!(
                "An agent cannot choose its role; this one is `{}`.",
                agent.role
            ),
        ));
    }
    if notebook.execution(&wanted.execution_id).is_some() {
        return Err(Failure::new(
            ErrorKind::Conflict,
            format!(
                "There is a run `{}` already. Give each its own `execution_id`.",
                wanted.execution_id
            ),
        ));
    }
    let Some(cell) = notebook.cell(&wanted.cell_id) else {
        return Err(Failure::new(
            ErrorKind::Unknown,
            format!("There is no cell `{}` in this notebook.", wanted.cell_id),
        ));
    };
    if !cell.cell_type.runs() {
        return Err(Failure::new(
            ErrorKind::NotCapable,
            format!("A cell of type {} does not run.", cell.cell_type.as_str()),
        ));
    }
    match notebook.queue().count() >= MAX_QUEUE {
        true => Err(Failure::new(
            ErrorKind::Busy,
            format!("{MAX_QUEUE} runs wait in this notebook already."),
        )),
        false => Ok(()),
    }
}

fn run(
    notebook: &Notebook,
    session: Option<&SessionId>,
    event: &NotebookEvent,
) -> Result<(), Failure> {
    let Some(session) = session else {
        return Err(refused(
            event,
            "Only the runtime says this, with its own token in `X-Ward-Runtime`",
        ));
    };
    let about = match event {
        NotebookEvent::RuntimeStatus(event) => {
            if event.state == SessionState::Terminated {
                return Err(Failure::new(
                    ErrorKind::InvalidParams,
                    "That a session is over is said with `runtime.terminated`.",
                ));
            }
            Some(&event.session_id)
        }
        NotebookEvent::RuntimeTerminated(ended) => {
            match ended.reason {
                Termination::Shutdown | Termination::Restart | Termination::Error => {}
                Termination::Timeout | Termination::Displaced => {
                    return Err(refused(event, "Only Ward gives this reason"));
                }
            }
            Some(&ended.session_id)
        }
        _ => None,
    };
    if let Some(about) = about {
        return match about == session {
            true => Ok(()),
            false => Err(refused(event, "It is about another runtime session")),
        };
    }
    let Some(id) = event.execution() else {
        return Err(refused(event, "It is about no run"));
    };
    let known = notebook.execution(id);
    let Some(known) = known.filter(|run| run.session_id.as_ref() == Some(session)) else {
        return Err(refused(event, "The run was not assigned to this session"));
    };
    if let NotebookEvent::InputRequested(asked) = event
        && asked.prompt.len() > MAX_PROMPT
    {
        return Err(Failure::new(
            ErrorKind::TooLarge,
            format!("A question has at most {MAX_PROMPT} bytes."),
        ));
    }
    if let Some(bundle) = event.bundle() {
        can_be_shown(notebook, bundle)?;
    }
    let fits = match (event, known.state) {
        (_, ExecutionState::Completed | ExecutionState::Failed | ExecutionState::Cancelled) => {
            return Err(Failure::new(
                ErrorKind::Closed,
                format!("The run `{id}` is over; nothing more is said of it."),
            )
            .with("execution_id", id.as_str()));
        }
        (_, ExecutionState::Requested) => false,
        (NotebookEvent::ExecutionStarted(_), state) => state == ExecutionState::Assigned,
        (NotebookEvent::ExecutionCompleted(_) | NotebookEvent::ExecutionCancelled(_), _) => true,
        (_, state) => state == ExecutionState::Running,
    };
    match fits {
        true => Ok(()),
        false => Err(Failure::new(
            ErrorKind::Conflict,
            format!(
                "{} does not fit: the run `{id}` is not that far, or further.",
                event.kind()
            ),
        )
        .with("execution_id", id.as_str())),
    }
}

fn can_be_shown(notebook: &Notebook, bundle: &Bundle) -> Result<(), Failure> {
    for (media_type, media) in &bundle.data {
        let wrong = match media {
            _ if !is_media_type(media_type) => {
                let shown: String = media_type.escape_debug().take(80).collect();
                format!("`{shown}` is no media type, such as text/plain.")
            }
            Media::Artifact(artifact) if !notebook.artifacts.contains_key(&artifact.digest) => {
                let shown: String = artifact.digest.escape_debug().take(80).collect();
                format!("There is no artifact `{shown}` in this notebook. Upload it first.")
            }
            Media::Inline(_) | Media::Artifact(_) => continue,
        };
        return Err(Failure::new(ErrorKind::InvalidParams, wrong).with("field", "bundle"));
    }
    Ok(())
}

/// What Ward says after an event, in the same breath.
pub(crate) fn follows(notebook: &Notebook, event: &NotebookEvent) -> Vec<NotebookEvent> {
    match event {
        NotebookEvent::RuntimeTerminated(ended) => lost(
            notebook,
            &ended.session_id,
            "The runtime ended while it worked on this.",
        ),
        // Where there is room for one again, the newest has the notebook.
        NotebookEvent::RuntimesChanged(RuntimesChanged {
            runtimes: Runtimes::One,
        }) => {
            let newest = notebook.active(None).map(|one| &one.session_id);
            let active = notebook.sessions().iter().filter(|one| one.is_active());
            let older = active.filter(|one| Some(&one.session_id) != newest);
            older.flat_map(|one| displaced(notebook, one)).collect()
        }
        _ => Vec::new(),
    }
}

/// The end of a session that another one takes the place of.
pub(crate) fn displaced(notebook: &Notebook, session: &RuntimeSession) -> Vec<NotebookEvent> {
    let id = &session.session_id;
    let why = "Another runtime took this one's place while it worked on this.";
    let mut events = lost(notebook, id, why);
    events.push(NotebookEvent::RuntimeTerminated(RuntimeTerminated {
        session_id: id.clone(),
        reason: Termination::Displaced,
        message: None,
    }));
    events
}

/// The end of every run that a session leaves behind.
pub(crate) fn lost(notebook: &Notebook, session: &SessionId, why: &str) -> Vec<NotebookEvent> {
    let mut events = Vec::new();
    for run in notebook.queue() {
        if run.session_id.as_ref() != Some(session) {
            continue;
        }
        let id = &run.execution_id;
        match run.cancel {
            true => events.push(NotebookEvent::ExecutionCancelled(
                notebook::ExecutionCancelled {
                    execution_id: id.clone(),
                },
            )),
            false => {
                if run.state == ExecutionState::Running {
                    events.push(NotebookEvent::ErrorOutput(ErrorOutput {
                        execution_id: id.clone(),
                        name: "RuntimeLost".to_owned(),
                        value: why.to_owned(),
                        traceback: Vec::new(),
                    }));
                }
                events.push(failed(id, ErrorKind::RuntimeLost, why));
            }
        }
    }
    events
}

/// A run that failed for a reason of Ward's.
pub(crate) fn failed(id: &ExecutionId, kind: ErrorKind, why: &str) -> NotebookEvent {
    let kind = serde_json::to_value(kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str());
    NotebookEvent::ExecutionCompleted(ExecutionCompleted {
        execution_id: id.clone(),
        outcome: Outcome::Failed(Failed {
            kind: kind.unwrap_or("internal").to_owned(),
            message: why.to_owned(),
        }),
        execution_count: None,
    })
}

fn refused(event: &NotebookEvent, why: &str) -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        format!("`{}` is not yours to append. {why}.", event.kind()),
    )
    .with("event", event.kind())
}
