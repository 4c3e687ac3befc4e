//! The server: what people and the gate do to the notebook, and what it takes from agents.

use notebook::{
    Author, ExecutionAssigned, ExecutionCancel, ExecutionCancelled, ExecutionCompleted,
    ExecutionId, ExecutionRequested, ExecutionState, Failed, NotebookEvent, Outcome,
    RuntimeRestart, RuntimeStarted, RuntimeTerminated, RuntimeUpdated, SessionId, SessionState,
    Termination,
};
use runtime_core::Announcement;
use store::Seq;
use store::replica::{Entry, EventId, Fold as _, Input as Fed};

use super::{Message, Token, World, cells, foreign};

impl World {
    /// The server appends by itself.
    pub(super) fn say(&mut self, event: NotebookEvent) {
        self.own += 1;
        let id = EventId {
            writer: "ward".into(),
            number: self.own,
        };
        self.append(Entry::pending(id, event));
    }

    pub(super) fn append(&mut self, mut entry: Entry<NotebookEvent>) {
        entry.actor = Some("x".into());
        self.base.state.apply(&entry);
        self.base.seq = self.base.seq.next();
        self.log.push(entry);
        let active = self.base.state.sessions().iter();
        assert!(active.filter(|session| session.is_active()).count() <= 1);
    }

    pub(super) fn request(&mut self) {
        let cell = self.dice.roll(7);
        let (cell_id, _) = cells()[if cell == 6 { 2 } else { cell % 2 }].clone();
        let execution_id = ExecutionId::new(format!("e{}", self.requested.len())).unwrap();
        self.requested.push(execution_id.clone());
        self.say(NotebookEvent::ExecutionRequested(ExecutionRequested {
            execution_id,
            cell_id,
            runtime_type: None,
            role: None,
        }));
    }

    /// The gate lets the first that waits run, on the session that is there.
    pub(super) fn assign(&mut self) {
        let state = &self.base.state;
        let mut waiting = state
            .queue()
            .filter(|run| run.state == ExecutionState::Requested)
            .map(|run| run.execution_id.clone());
        let next = waiting.next();
        drop(waiting);
        let session = state.active(None).map(|one| one.session_id.clone());
        let (Some(execution_id), Some(session_id)) = (next, session) else {
            return;
        };
        // Now and then it is for another runtime, such as one of another type.
        let session_id = match !self.calm && self.dice.one_in(8) {
            true => foreign(),
            false => session_id,
        };
        let event = ExecutionAssigned {
            execution_id,
            session_id,
        };
        self.say(NotebookEvent::ExecutionAssigned(event.clone()));
        if self.dice.one_in(4) {
            self.say(NotebookEvent::ExecutionAssigned(event));
        }
    }

    pub(super) fn cancel(&mut self) {
        let open: Vec<_> = self.base.state.queue().cloned().collect();
        if open.is_empty() {
            return;
        }
        let run = &open[self.dice.roll(open.len())];
        let execution_id = run.execution_id.clone();
        self.wished_to_stop.insert(execution_id.clone());
        self.say(NotebookEvent::ExecutionCancel(ExecutionCancel {
            execution_id: execution_id.clone(),
        }));
        // What no runtime has yet, Ward cancels itself.
        if run.state == ExecutionState::Requested {
            self.say(NotebookEvent::ExecutionCancelled(ExecutionCancelled {
                execution_id,
            }));
        }
    }

    /// Somebody wants the runtime that is there to begin anew: what it has may be stopped for it.
    pub(super) fn restart(&mut self) {
        let Some(active) = self.base.state.active(None) else {
            return;
        };
        let session_id = active.session_id.clone();
        self.say(NotebookEvent::RuntimeRestart(RuntimeRestart { session_id }));
        let open = self.base.state.queue().map(|run| run.execution_id.clone());
        self.may_be_stopped.extend(open);
    }

    /// A session was not heard of for too long; now and then one that lives.
    pub(super) fn expire(&mut self) {
        let Some(active) = self.base.state.active(None) else {
            return;
        };
        let session = active.session_id.clone();
        let alive = self.processes.iter().any(|process| {
            process.machine.is_some() && process.token.as_ref().is_some_and(|t| t.0 == session)
        });
        if !alive || (!self.calm && self.dice.one_in(2)) {
            self.seen.timed_out += 1;
            self.terminate(&session, Termination::Timeout);
        }
    }

    /// Ends a session, and what was assigned to it.
    pub(super) fn terminate(&mut self, session: &SessionId, reason: Termination) {
        self.say(NotebookEvent::RuntimeTerminated(RuntimeTerminated {
            session_id: session.clone(),
            reason,
            message: None,
        }));
        self.bury(session);
    }

    pub(super) fn bury(&mut self, session: &SessionId) {
        self.tokens.remove(session);
        let its = self.base.state.queue();
        let its = its.filter(|run| run.session_id.as_ref() == Some(session));
        let its: Vec<ExecutionId> = its.map(|run| run.execution_id.clone()).collect();
        for execution_id in its {
            self.say(NotebookEvent::ExecutionCompleted(ExecutionCompleted {
                execution_id,
                outcome: Outcome::Failed(Failed {
                    kind: "runtime_lost".into(),
                    message: "gone".into(),
                }),
                execution_count: None,
            }));
        }
    }

    // The server's door.

    pub(super) fn announce(&mut self, asked: &Announcement) -> (Token, Seq) {
        let going_on = asked.session_id.clone().filter(|id| {
            let session = self.base.state.session(id);
            session.is_some_and(|session| session.is_active())
        });
        let session = match going_on {
            Some(session_id) => {
                self.seen.resumed += 1;
                self.say(NotebookEvent::RuntimeRenewed(RuntimeUpdated {
                    session_id: session_id.clone(),
                    state: SessionState::Starting,
                }));
                session_id
            }
            None => {
                if let Some(older) = self.base.state.active(None) {
                    let older = older.session_id.clone();
                    self.seen.displaced += 1;
                    self.terminate(&older, Termination::Displaced);
                }
                self.sessions += 1;
                let session_id = SessionId::new(format!("s{}", self.sessions)).unwrap();
                self.say(NotebookEvent::RuntimeStarted(RuntimeStarted {
                    session_id: session_id.clone(),
                    runtime_id: asked.runtime_id.clone(),
                    runtime_type: asked.runtime_type.clone(),
                    client_id: asked.client_id.clone(),
                    capabilities: asked.capabilities.clone(),
                }));
                session_id
            }
        };
        let generation = self.tokens.entry(session.clone()).or_default();
        *generation += 1;
        ((session, *generation), self.base.seq)
    }

    pub(super) fn push(
        &mut self,
        expected: Seq,
        entries: Vec<Entry<NotebookEvent>>,
        token: Option<&Token>,
    ) -> Message {
        let known = |entry: &Entry<NotebookEvent>| self.base.state.has(&entry.id);
        if expected != self.base.seq || entries.iter().any(known) {
            let head = self.base.seq;
            return Message::Replica(Fed::Behind { head });
        }
        let living =
            token.filter(|(session, generation)| self.tokens.get(session) == Some(generation));
        let Some((session, _)) = living else {
            self.seen.refused_pushes += 1;
            return Message::Refused;
        };
        for entry in &entries {
            assert_eq!(entry.event.author(), Author::Runtime);
            if let Some(id) = entry.event.execution() {
                let run = self.base.state.execution(id).unwrap();
                assert_eq!(run.session_id.as_ref(), Some(session), "another's run");
            }
        }
        let session = session.clone();
        let mut over = false;
        for entry in entries {
            over |= matches!(entry.event, NotebookEvent::RuntimeTerminated(_));
            self.append(entry);
        }
        if over {
            self.bury(&session);
        }
        let head = self.base.seq;
        Message::Replica(Fed::Accepted { expected, head })
    }
}
