//! Sessions of a Ward that has ended: what waits for a person waits on, what was cut off says so.

use std::sync::Arc;

use gate::{Seen, State};
use protocol::session::{SessionEvent, SessionState};
use protocol::{ErrorKind, Failure};
use store::Store;

use crate::calls::{Made, not_begun};
use crate::journal::{Page, unwritten};
use crate::runner::Inner;
use crate::session::Session;
use crate::turn::id_of;

impl<S: Store> Inner<S> {
    /// Takes up all sessions.
    pub(crate) async fn take_up(self: &Arc<Self>) -> Result<(), Failure> {
        let mut records = self.listed().await?;
        // Those above first: a sub-agent knows who waits for it.
        records.sort_by_key(|record| record.depth);
        let mut unfinished = Vec::new();
        for record in records {
            let is_over = matches!(
                record.progress.state,
                SessionState::Idle | SessionState::Failed
            );
            let above = record.parent.as_ref().and_then(|parent| self.find(parent));
            let above = above.zip(record.call.clone());
            let session = Arc::new(Session::new(record, above).map_err(unwritten)?);
            self.sessions()
                .insert(session.id.clone(), Arc::clone(&session));
            if !is_over {
                unfinished.push(session);
            }
        }
        // Those below first: whoever waits for a sub-agent finds it waiting.
        for session in unfinished.iter().rev() {
            if self.waits(session).await? {
                self.start(session, Made::Before);
            } else {
                self.cut_off(session).await?;
            }
        }
        Ok(())
    }

    /// Whether a session only waited for a person, who is still asked or has answered since: then
    /// nothing of it was lost, and it goes on.
    async fn waits(&self, session: &Session) -> Result<bool, Failure> {
        let mut pen = session.pen.lock().await;
        let open = self.history(session, &mut pen).await?.open_calls();
        let actor = session.actor();
        let mut all_done = !open.is_empty();
        for (number, _) in open {
            let id = id_of(&session.id, number);
            if self.find(&id).is_some_and(|child| child.runs()) {
                return Ok(true);
            }
            all_done &= match self.gate.seen(&actor, &id).await {
                Ok(Seen::Live(live)) => match live.state() {
                    State::Asking { .. } => return Ok(true),
                    State::Ended(ended) => !is_lost(&ended),
                    State::Deciding | State::Running => false,
                },
                Ok(Seen::Past(ended)) => !is_lost(&ended),
                Err(_) => false,
            };
        }
        Ok(all_done)
    }

    /// Writes what is known of calls that were under way, and that the session was cut off.
    async fn cut_off(&self, session: &Session) -> Result<(), Failure> {
        let open = {
            let mut pen = session.pen.lock().await;
            self.history(session, &mut pen).await?.open_calls()
        };
        for (number, call) in &open {
            let came = self.known_of(session, *number).await.map(Into::into);
            self.came(session, call, came, std::time::Instant::now())
                .await?;
        }
        let failure = Failure::new(
            ErrorKind::Interrupted,
            "Ward ended while this session was under way. It is as far as its last event; say something, or nothing, to go on.",
        )
        .with("session_id", session.id.as_str());
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let page = Page::event(SessionEvent::Failed(failure.into()));
        self.write(session, history, page, |progress| {
            progress.state = SessionState::Failed;
        })
        .await?;
        session.end(SessionState::Failed);
        *pen = None;
        Ok(())
    }

    async fn known_of(&self, session: &Session, number: u64) -> Result<String, Failure> {
        let id = id_of(&session.id, number);
        if let Some(child) = self.find(&id) {
            return self.came_of(&child).await;
        }
        match self.gate.seen(&session.actor(), &id).await {
            Ok(Seen::Past(ended)) => ended.outcome.map(|result| result.get().to_owned()),
            Ok(Seen::Live(live)) => match live.state() {
                State::Ended(ended) => match &ended.outcome {
                    Ok(result) => Ok(result.get().to_owned()),
                    Err(failure) => Err(failure.clone()),
                },
                State::Deciding | State::Asking { .. } | State::Running => Err(not_begun()),
            },
            Err(_) => Err(not_begun()),
        }
    }
}

/// Whether nobody knows what came of an action.
fn is_lost(ended: &gate::Ended) -> bool {
    matches!(&ended.outcome, Err(failure) if failure.kind == ErrorKind::RuntimeLost)
}
