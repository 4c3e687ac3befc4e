//! Sessions of a Ward that has ended: what waits for a person waits on, what was cut off says so.
//! And sessions that go on from another's conversation.

use std::collections::HashSet;
use std::sync::Arc;

use gate::{Actor, Seen, State, new_id, now};
use protocol::session::{SessionEvent, SessionState, Started};
use protocol::{ErrorKind, Failure};
use store::Store;

use crate::calls::{Made, not_begun};
use crate::journal::{Page, unwritten};
use crate::runner::Inner;
use crate::session::history::{Entry, History};
use crate::session::record::{Progress, Record};
use crate::session::{End, Session};
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
            let came = self.known_of(session, *number).await;
            self.came(session, call, came, std::time::Instant::now())
                .await?;
        }
        let failure = Failure::new(
            ErrorKind::Interrupted,
            "Ward ended while this session was under way. It is as far as its last event; say something, or nothing, to go on.",
        )
        .with("session_id", session.id.as_str());
        let failed = protocol::gate::Failed::from(failure);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let page = Page::event(SessionEvent::Failed(failed.clone()));
        self.write(session, history, page, |progress| {
            progress.state = SessionState::Failed;
        })
        .await?;
        session.end(End::Failed(failed));
        *pen = None;
        Ok(())
    }

    async fn known_of(&self, session: &Session, number: u64) -> Result<String, Failure> {
        let id = id_of(&session.id, number);
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

    /// A new session that knows this one's conversation up to an event.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        session: &Arc<Session>,
        actor: &Actor,
        at: Option<u64>,
    ) -> Result<Arc<Session>, Failure> {
        let id = new_id()?;
        let old = session.record().clone();
        let mut events = Vec::new();
        let mut known = HashSet::new();
        self.each(&session.stream, |event| {
            if at.is_some_and(|at| event.seq.get() > at) {
                return;
            }
            let Some(event) = SessionEvent::read(&event.kind, event.data) else {
                return;
            };
            match &event {
                SessionEvent::Received(said) => drop(known.insert(said.message_id.clone())),
                SessionEvent::MessageCompleted(said) => {
                    known.insert(said.message_id.clone());
                }
                SessionEvent::ToolOutput(came) => drop(known.insert(came.call_id.clone())),
                SessionEvent::Started(_) | SessionEvent::Completed(_) => return,
                SessionEvent::Failed(_) => return,
                _ => {}
            }
            events.push(event);
        })
        .await?;
        let entries = self.entries(&session.id).await?;
        let entries = known_entries(entries, &known);
        let record = Record {
            id: id.clone(),
            actor: actor.clone(),
            parent: None,
            call: None,
            root: id.clone(),
            depth: 0,
            created_at: now().0,
            progress: Progress {
                state: SessionState::Idle,
                updated_at: now().0,
                ..old.progress.clone()
            },
            ..old
        };
        let progress = &record.progress;
        let mut page = Page::event(SessionEvent::Started(Started {
            session_id: id.clone(),
            role: progress.role.clone(),
            model: progress.model.clone(),
            mode: progress.mode,
            workspace: record.workspace.display().to_string(),
            parent: None,
            forked_from: Some(session.id.clone()),
        }));
        page.events.extend(events);
        page.entries = entries;
        let forked = Arc::new(Session::new(record, None).map_err(unwritten)?);
        self.create(&forked, page).await?;
        self.sessions().insert(id, Arc::clone(&forked));
        Ok(forked)
    }
}

/// Whether nobody knows what came of an action.
fn is_lost(ended: &gate::Ended) -> bool {
    matches!(&ended.outcome, Err(failure) if failure.kind == ErrorKind::RuntimeLost)
}

/// The entries that a conversation consists of as far as it is known; a turn whose calls nothing
/// came of there is left out.
fn known_entries(entries: Vec<Entry>, known: &HashSet<String>) -> Vec<Entry> {
    let mut kept = Vec::new();
    let mut history = History::default();
    let mut whole = 0;
    for entry in entries {
        let is_known = match &entry {
            Entry::Message(said) | Entry::Queued(said) => known.contains(&said.id),
            Entry::Result(result) => known.contains(&result.call_id),
            Entry::Taken { .. } | Entry::Compacted { .. } | Entry::Whole { .. } => true,
        };
        if !is_known {
            break;
        }
        history.add(entry.clone());
        kept.push(entry);
        if history.open_calls().is_empty() {
            whole = kept.len();
        }
    }
    kept.truncate(whole);
    kept
}
