//! A session in memory: how far it is, what runs of it, and what its model knows.

pub(crate) mod history;
pub(crate) mod lately;
pub(crate) mod record;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Actor;
use protocol::gate::Failed;
use protocol::session::{Completed, Limits, SessionInfo, SessionState};
use store::{StoreError, StreamName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::history::History;
use self::lately::{Lately, Listener};
use self::record::Record;

/// A session.
#[derive(Debug)]
pub struct Session {
    pub(crate) id: String,
    /// Where it is told.
    pub(crate) stream: StreamName,
    record: Mutex<Record>,
    held: Mutex<Held>,
    /// How much it may use in the role that it has, and all below it together.
    bounds: Mutex<Limits>,
    /// How many turns those below it ask of the model now.
    below: AtomicU64,
    status: watch::Sender<Status>,
    /// What it told last.
    pub(crate) lately: Lately,
    /// Cancelled when it is deleted.
    pub(crate) gone: CancellationToken,
    /// What its model knows, while something happens. Whoever holds it writes: the order in the
    /// store is the order here.
    pub(crate) pen: tokio::sync::Mutex<Option<History>>,
    /// Who waits for a sub-agent: the session that called it, and the call.
    pub(crate) above: Option<(Arc<Session>, String)>,
}

/// What runs of a session.
#[derive(Debug, Default)]
struct Held {
    run: Option<CancellationToken>,
    /// The calls under way, and for each what it waits for.
    calls: HashMap<String, Asked>,
    /// How it stopped, where that could not be written.
    unwritten: Option<Failed>,
}

/// The answers that a call waits for.
#[derive(Default)]
struct Asked {
    approvals: Vec<String>,
    /// The sub-agent that waits for the answers to its own.
    below: Option<Arc<Session>>,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the sub-agent itself, which has who waits for it in turn.
        let below = self.below.as_ref().map(|child| &child.id);
        let mut told = f.debug_struct("Asked");
        told.field("approvals", &self.approvals)
            .field("below", &below);
        told.finish()
    }
}

impl Asked {
    fn waits(&self) -> bool {
        !self.approvals.is_empty() || self.below.is_some()
    }
}

/// How far a session is.
#[derive(Debug, Clone)]
pub struct Status {
    /// What it does.
    pub state: SessionState,
    /// How often it has stopped since Ward began.
    pub ends: u64,
}

impl Status {
    fn is_settled(&self) -> bool {
        matches!(self.state, SessionState::Idle | SessionState::Failed)
    }
}

/// How an agent stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// As it wanted to, or was told to.
    Completed(Completed),
    /// Something went wrong.
    Failed(Failed),
}

impl Session {
    pub(crate) fn new(
        record: Record,
        above: Option<(Arc<Session>, String)>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            id: record.id.clone(),
            stream: stream(&format!("session/{}", record.id))?,
            status: watch::Sender::new(Status {
                state: record.progress.state,
                ends: 0,
            }),
            record: Mutex::new(record),
            held: Mutex::default(),
            bounds: Mutex::default(),
            below: AtomicU64::new(0),
            lately: Lately::new(),
            gone: CancellationToken::new(),
            pen: tokio::sync::Mutex::new(None),
            above,
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Somebody below it asks the model for a turn.
    pub(crate) fn asks_below(&self) {
        self.below.fetch_add(1, Ordering::Relaxed);
    }

    /// That turn is counted, or came to nothing.
    pub(crate) fn asked_it_below(&self) {
        self.below.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many turns those below it ask of the model now.
    pub(crate) fn asked_below(&self) -> u64 {
        self.below.load(Ordering::Relaxed)
    }

    /// Where its events are.
    #[must_use]
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// As it is listed.
    #[must_use]
    pub fn info(&self) -> SessionInfo {
        self.record().info()
    }

    /// The questions that it waits for, its own and those of its sub-agents.
    #[must_use]
    pub fn approvals(&self) -> Vec<String> {
        let mut approvals = Vec::new();
        let mut below = Vec::new();
        for asked in self.held().calls.values() {
            approvals.extend_from_slice(&asked.approvals);
            below.extend(asked.below.clone());
        }
        approvals.extend(below.iter().flat_map(|child| child.approvals()));
        approvals
    }

    /// How far it is, now and from now on.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// What it tells, from now on.
    #[must_use]
    pub fn listen(self: &Arc<Self>) -> Listener {
        Listener::new(self)
    }

    /// Waits until it has stopped more often than `ends`.
    pub async fn stopped(&self, ends: u64) {
        let mut status = self.status.subscribe();
        // The sender lives in `self`.
        let _ = status.wait_for(|status| status.ends > ends).await;
    }

    /// Waits until nothing runs of it.
    pub async fn settled(&self) {
        let mut status = self.status.subscribe();
        // The sender lives in `self`.
        let _ = status.wait_for(Status::is_settled).await;
    }

    /// Whether nothing runs of it.
    pub(crate) fn is_settled(&self) -> bool {
        self.status.borrow().is_settled()
    }

    /// How it stopped, where only this process knows.
    pub(crate) fn unwritten(&self) -> Option<Failed> {
        self.held().unwritten.clone()
    }

    /// Waits until it is deleted.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// How often it has stopped so far.
    #[must_use]
    pub fn ends(&self) -> u64 {
        self.status.borrow().ends
    }

    /// Ends what runs of it; whether anything did.
    pub fn cancel(&self) -> bool {
        match &self.held().run {
            Some(run) => {
                run.cancel();
                true
            }
            None => false,
        }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        // Nothing panics while it is held.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn actor(&self) -> Actor {
        self.record().actor.clone()
    }

    pub(crate) fn bounds(&self) -> MutexGuard<'_, Limits> {
        // Nothing panics while it is held.
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while it is held.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn runs(&self) -> bool {
        self.held().run.is_some()
    }

    /// It runs from now on.
    pub(crate) fn begin(&self) -> CancellationToken {
        let run = CancellationToken::new();
        {
            let mut held = self.held();
            held.run = Some(run.clone());
            held.unwritten = None;
        }
        self.show();
        run
    }

    /// It has stopped, and how is written.
    pub(crate) fn end(&self, state: SessionState) {
        {
            let mut held = self.held();
            held.run = None;
            held.calls.clear();
        }
        self.status.send_modify(|status| {
            status.state = state;
            status.ends += 1;
        });
        self.lately.rest();
    }

    /// It has stopped, and how could not be written.
    pub(crate) fn end_unwritten(&self, failed: Failed) {
        self.held().unwritten = Some(failed);
        self.end(SessionState::Failed);
    }

    /// A call is under way from now on, until this is dropped.
    pub(crate) fn call(self: &Arc<Self>, call_id: &str) -> Call {
        self.held()
            .calls
            .insert(call_id.to_owned(), Asked::default());
        self.show();
        Call {
            session: Arc::clone(self),
            call_id: call_id.to_owned(),
        }
    }

    /// Works out how far it is, and says so where that is new.
    fn show(&self) {
        let state = {
            let held = self.held();
            let waits = !held.calls.is_empty() && held.calls.values().all(Asked::waits);
            match (&held.run, waits) {
                (None, _) => return,
                (Some(_), true) => SessionState::Waiting,
                (Some(_), false) => SessionState::Running,
            }
        };
        self.record().progress.state = state;
        self.status.send_if_modified(|status| {
            let is_new = status.state != state;
            status.state = state;
            is_new
        });
    }
}

/// A call under way.
pub(crate) struct Call {
    session: Arc<Session>,
    call_id: String,
}

impl Call {
    /// It waits for this answer.
    pub(crate) fn asks(&self, approval: &str) {
        self.change(|asked| asked.approvals.push(approval.to_owned()));
    }

    /// It no longer does.
    pub(crate) fn answered(&self, approval: &str) {
        self.change(|asked| asked.approvals.retain(|known| known != approval));
    }

    /// It waits for the answers to what a sub-agent asks.
    pub(crate) fn asks_below(&self, child: &Arc<Session>) {
        self.change(|asked| asked.below = Some(Arc::clone(child)));
    }

    /// The sub-agent goes on.
    pub(crate) fn answered_below(&self) {
        self.change(|asked| asked.below = None);
    }

    fn change(&self, change: impl FnOnce(&mut Asked)) {
        if let Some(asked) = self.session.held().calls.get_mut(&self.call_id) {
            change(asked);
        }
        self.session.show();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.session.held().calls.remove(&self.call_id);
        self.session.show();
    }
}

/// The name of a stream that is made of ids that were checked.
pub(crate) fn stream(name: &str) -> Result<StreamName, StoreError> {
    StreamName::new(name).map_err(|error| StoreError::Failed(error.to_string()))
}
