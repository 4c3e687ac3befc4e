//! Sessions that go on from another's conversation, from its end or from an event before.

use std::collections::HashSet;
use std::sync::Arc;

use gate::{Actor, new_id, now};
use protocol::session::{Changed, SessionEvent, SessionState, Started, Usage};
use protocol::{ErrorKind, Failure};
use store::Store;

use crate::journal::{Page, unwritten};
use crate::provider::Role;
use crate::runner::Inner;
use crate::session::Session;
use crate::session::history::Entry;
use crate::session::record::{Progress, Record};

impl<S: Store> Inner<S> {
    /// A new session that knows this one's conversation up to an event.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        session: &Arc<Session>,
        actor: &Actor,
        at: Option<u64>,
    ) -> Result<Arc<Session>, Failure> {
        let id = new_id()?;
        let old = session.record().clone();
        let mut part = Part::new(&old.progress);
        let mut last = 0;
        self.each(&session.stream, |event| {
            last = event.seq.get();
            let Some(event) = SessionEvent::read(&event.kind, event.data) else {
                return;
            };
            match at.is_some_and(|at| last > at) {
                true => part.later(&event),
                false => part.add(event),
            }
        })
        .await?;
        if let Some(at) = at.filter(|at| *at > last) {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!(
                    "`at` is {at}, and the session has {last} events. Leave it out to take all of them."
                ),
            ));
        }
        part.leave_out();
        let entries = part.entries(self.entries(&session.id).await?);
        let Took {
            turns,
            usage,
            cost,
            read,
            worked_ms,
        } = part.took();
        let parents = part.parents(&old.progress.parents);
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
                role: part.now.role.clone(),
                callers: old.progress.callers.min(parents.len()),
                parents,
                model: part.now.model.clone(),
                mode: part.now.mode,
                updated_at: now().0,
                turns,
                // Its events tell of no other's turns.
                turns_below: match at {
                    Some(_) => 0,
                    None => old.progress.turns_below,
                },
                usage,
                cost: cost.map(|dollars| (dollars * 1e6).round() as u64),
                read,
                worked_ms: match at {
                    Some(_) => worked_ms,
                    // Also what it worked since its last turn.
                    None => old.progress.worked_ms,
                },
                ..old.progress.clone()
            },
            ..old
        };
        // As the first one began: what changed since is among the events.
        let mut page = Page::event(SessionEvent::Started(Started {
            session_id: id.clone(),
            workspace: record.workspace.display().to_string(),
            parent: None,
            forked_from: Some(session.id.clone()),
            ..part.began
        }));
        page.events.extend(part.events);
        page.entries = entries;
        let forked = Arc::new(Session::new(record, None).map_err(unwritten)?);
        self.create(&forked, page).await?;
        self.sessions().insert(id, Arc::clone(&forked));
        Ok(forked)
    }
}

/// A session up to an event.
struct Part {
    began: Started,
    /// Role, model and mode as they were there.
    now: Started,
    /// The roles that stood above it through handoffs.
    above: Vec<String>,
    events: Vec<SessionEvent>,
    /// Where the turn begins that is not complete yet, and the calls that nothing came of.
    open: Option<usize>,
    calls: HashSet<String>,
    /// The roles that it changed from later on, and whether that was a handoff.
    later: Vec<(String, bool)>,
    later_role: Option<String>,
}

/// What a session took up to an event, as its events tell it.
#[derive(Default)]
struct Took {
    turns: u64,
    usage: Usage,
    /// In dollars.
    cost: Option<f64>,
    /// How much the last turn read.
    read: u64,
    worked_ms: u64,
}

impl Part {
    fn new(progress: &Progress) -> Self {
        // The first event says how it began; should it be unreadable, how it is.
        let began = Started {
            session_id: String::new(),
            role: progress.role.clone(),
            model: progress.model.clone(),
            mode: progress.mode,
            workspace: String::new(),
            parent: None,
            forked_from: None,
        };
        Self {
            now: began.clone(),
            began,
            above: Vec::new(),
            events: Vec::new(),
            open: None,
            calls: HashSet::new(),
            later: Vec::new(),
            later_role: None,
        }
    }

    fn add(&mut self, event: SessionEvent) {
        match &event {
            SessionEvent::Started(started) => {
                self.began = started.clone();
                self.now = started.clone();
                return;
            }
            SessionEvent::Completed(_) => return,
            SessionEvent::Failed(_) => {
                self.leave_out();
                return;
            }
            SessionEvent::Changed(changed) => self.change(changed),
            SessionEvent::TurnStarted(_) => {
                self.leave_out();
                self.open = Some(self.events.len());
            }
            SessionEvent::MessageCompleted(said) => {
                self.calls = said.calls.iter().cloned().collect();
                self.close();
            }
            SessionEvent::ToolOutput(came) => {
                self.calls.remove(&came.call_id);
                self.close();
            }
            SessionEvent::TurnDropped(_) => {
                self.calls.clear();
                self.close();
            }
            _ => {}
        }
        self.events.push(event);
    }

    /// Something that happened only after that.
    fn later(&mut self, event: &SessionEvent) {
        match event {
            // Always the first: how it began is known wherever it is cut off.
            SessionEvent::Started(_) => self.add(event.clone()),
            SessionEvent::Changed(changed) => {
                if let Some(role) = &changed.role {
                    let before = self.later_role.replace(role.clone());
                    let before = before.unwrap_or_else(|| self.now.role.clone());
                    self.later.push((before, changed.handoff));
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, changed: &Changed) {
        let Changed {
            role,
            model,
            mode,
            title: _,
            handoff,
        } = changed;
        if let Some(role) = role {
            let before = std::mem::replace(&mut self.now.role, role.clone());
            match handoff {
                true if !self.above.contains(&before) => self.above.push(before),
                true => {}
                false => self.above.clear(),
            }
        }
        if let Some(model) = model {
            self.now.model.clone_from(model);
        }
        if let Some(mode) = mode {
            self.now.mode = *mode;
        }
    }

    /// A turn is complete when something came of all its calls.
    fn close(&mut self) {
        if self.calls.is_empty() {
            self.open = None;
        }
    }

    /// Leaves out the turn that is not complete. What others said and changed meanwhile stays.
    fn leave_out(&mut self) {
        self.calls.clear();
        let Some(from) = self.open.take() else {
            return;
        };
        let stays = |event: &SessionEvent| {
            matches!(
                event,
                SessionEvent::Changed(_)
                    | SessionEvent::Received(_)
                    | SessionEvent::RuntimeAwaited(_)
                    | SessionEvent::RuntimeChosen(_)
            )
        };
        let turn = self.events.split_off(from);
        self.events.extend(turn.into_iter().filter(stays));
    }

    /// On whose behalf it was: as now, without the handoffs since.
    fn parents(&self, now: &[String]) -> Vec<String> {
        let mut parents = now.to_vec();
        for (before, handoff) in self.later.iter().rev() {
            if !handoff {
                // A person chose, and nothing of what was before is left.
                return self.above.clone();
            }
            // It stands there once, however often it handed over; and as long as it is the role
            // itself, it makes no difference.
            if parents.last() == Some(before) {
                parents.pop();
            }
        }
        parents
    }

    /// What it took so far.
    fn took(&self) -> Took {
        let mut took = Took::default();
        let mut dropped = false;
        for event in &self.events {
            match event {
                SessionEvent::TurnStarted(_) => dropped = false,
                SessionEvent::TurnDropped(_) => dropped = true,
                SessionEvent::MessageCompleted(_) => took.turns += 1,
                SessionEvent::Usage(told) => {
                    took.usage = told.total;
                    took.cost = told.cost;
                    took.worked_ms = told.worked_ms;
                    if !dropped {
                        took.read = told.turn.total();
                    }
                }
                SessionEvent::Compacted(_) => took.read = 0,
                _ => {}
            }
        }
        took
    }

    /// Of all entries of the history those that belong to it.
    fn entries(&self, all: Vec<Entry>) -> Vec<Entry> {
        let mut known = HashSet::new();
        let mut compactions = 0_usize;
        for event in &self.events {
            match event {
                SessionEvent::Received(said) => drop(known.insert(said.message_id.as_str())),
                SessionEvent::MessageCompleted(said) => {
                    known.insert(said.message_id.as_str());
                }
                SessionEvent::Compacted(_) => compactions += 1,
                _ => {}
            }
        }
        // Ids of calls come from the model and may come again: results belong to the turn before.
        let mut of_known_turn = true;
        let is_kept = |entry: &Entry| match entry {
            Entry::Message(said) | Entry::Queued(said) => {
                let is_known = known.contains(said.id.as_str());
                if said.message.role == Role::Assistant {
                    of_known_turn = is_known;
                }
                is_known
            }
            Entry::Result(_) | Entry::Whole { .. } => of_known_turn,
            Entry::Taken { .. } => true,
            Entry::Compacted { .. } => {
                let is_known = compactions > 0;
                compactions = compactions.saturating_sub(1);
                is_known
            }
        };
        let mut kept = all;
        kept.retain(is_kept);
        kept
    }
}
