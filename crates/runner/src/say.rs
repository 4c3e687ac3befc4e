//! What is said to a session that is there already.

use std::sync::Arc;

use protocol::session::{Origin, PostMessage, SessionState};
use protocol::{ErrorKind, Failure};
use store::{Seq, Store};

use crate::calls::Made;
use crate::input::{checked, is_empty, message, nothing_said, received};
use crate::journal::{Page, unwritten};
use crate::runner::Inner;
use crate::session::Session;
use crate::session::history::{Entry, History, Said};

/// Messages that may wait for a busy agent.
const MAX_QUEUED: usize = 64;

impl<S: Store> Inner<S> {
    /// A message for a session. It waits in line for what runs, or for the run that begins with it:
    /// so it stands behind all that was said before, whatever came between.
    pub(crate) async fn say(
        self: &Arc<Self>,
        session: &Arc<Session>,
        origin: Origin,
        asked: &PostMessage,
    ) -> Result<Seq, Failure> {
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let head = self.head(session).await?;
        let runs = session.runs();
        if is_known(session, history, asked)? {
            return Ok(head);
        }
        let page = if is_empty(&asked.input) {
            let failed = session.record().progress.state == SessionState::Failed;
            if runs || !failed {
                return Err(nothing_said());
            }
            Page::default()
        } else {
            if runs && history.queued() >= MAX_QUEUED {
                return Err(Failure::new(
                    ErrorKind::Busy,
                    format!("{MAX_QUEUED} messages wait for this agent already."),
                ));
            }
            let id = match &asked.id {
                Some(id) => id_of(session, id)?,
                None => {
                    let number = history.all().len() + history.queued() + 1;
                    format!("{}-m{number}", session.id)
                }
            };
            let (message, _) = message(&asked.input, origin)?;
            Page::event(received(&id, &message)).entry(Entry::Queued(Said {
                id,
                message: Arc::new(message),
            }))
        };
        self.write(session, history, page, |progress| {
            if !runs {
                progress.state = SessionState::Running;
            }
        })
        .await?;
        if !runs {
            self.start(session, Made::Before);
        }
        Ok(head)
    }

    /// Where a session is, if this was said in it before.
    pub(crate) async fn said_before(
        &self,
        session: &Session,
        asked: &PostMessage,
    ) -> Result<Option<Seq>, Failure> {
        if asked.id.is_none() {
            return Ok(None);
        }
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        match is_known(session, history, asked)? {
            true => self.head(session).await.map(Some),
            false => Ok(None),
        }
    }

    /// Where a session's events are.
    async fn head(&self, session: &Session) -> Result<Seq, Failure> {
        let last = self.gate.store().tail(&session.stream, 1).await;
        let last = last.map_err(unwritten)?;
        Ok(last.last().map_or(Seq::START, |event| event.seq))
    }
}

/// The id of a message that a client gave one.
fn id_of(session: &Session, id: &str) -> Result<String, Failure> {
    Ok(format!("{}-{}", session.id, checked(id)?))
}

/// Whether a message of this id was said before; with other content it is not the same one.
fn is_known(session: &Session, history: &History, asked: &PostMessage) -> Result<bool, Failure> {
    let Some(id) = &asked.id else {
        return Ok(false);
    };
    let Some(said) = history.said(&id_of(session, id)?) else {
        return Ok(false);
    };
    let (message, _) = message(&asked.input, said.message.origin.clone())?;
    if message.content == said.message.content {
        return Ok(true);
    }
    Err(Failure::new(
        ErrorKind::Conflict,
        "A message with this id and other content was said before. Give each its own id.",
    ))
}
