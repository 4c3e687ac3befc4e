//! A session in memory: how far it is, what runs of it, and what its model knows.

pub(crate) mod history;
pub(crate) mod lately;
pub(crate) mod record;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Actor;
use protocol::gate::Failed;
use protocol::session::{Completed, SessionInfo, SessionState};
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
    /// The calls under way, and for each the questions that it waits for.
    calls: HashMap<String, Vec<String>>,
}

/// How far a session is.
#[derive(Debug, Clone)]
pub struct Status {
    /// What it does.
    pub state: SessionState,
    /// How often it has stopped since Ward began.
    pub ends: u64,
    /// How it stopped last.
    pub last: Option<Arc<End>>,
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
                last: None,
            }),
            record: Mutex::new(record),
            held: Mutex::default(),
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

    /// The questions that it waits for.
    #[must_use]
    pub fn approvals(&self) -> Vec<String> {
        self.held().calls.values().flatten().cloned().collect()
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
    pub async fn stopped(&self, ends: u64) -> Option<Arc<End>> {
        let mut status = self.status.subscribe();
        let stopped = status.wait_for(|status| status.ends > ends).await;
        stopped.ok().and_then(|status| status.last.clone())
    }

    /// Waits until nothing runs of it.
    pub async fn settled(&self) {
        let mut status = self.status.subscribe();
        let settled =
            |status: &Status| matches!(status.state, SessionState::Idle | SessionState::Failed);
        // The sender lives in `self`.
        let _ = status.wait_for(settled).await;
    }

    /// How it stopped last, if nothing runs of it; not known of what stopped before Ward began.
    #[must_use]
    pub fn last(&self) -> Option<Arc<End>> {
        let status = self.status.borrow();
        match status.state {
            SessionState::Idle | SessionState::Failed => status.last.clone(),
            SessionState::Running | SessionState::Waiting => None,
        }
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
        self.held().run = Some(run.clone());
        self.show();
        run
    }

    /// It has stopped, and that is written.
    pub(crate) fn end(&self, end: End) {
        {
            let mut held = self.held();
            held.run = None;
            held.calls.clear();
        }
        self.status.send_modify(|status| {
            status.state = match &end {
                End::Completed(_) => SessionState::Idle,
                End::Failed(_) => SessionState::Failed,
            };
            status.ends += 1;
            status.last = Some(Arc::new(end));
        });
        self.lately.rest();
    }

    /// A call is under way from now on, until this is dropped.
    pub(crate) fn call(self: &Arc<Self>, call_id: &str) -> Call {
        self.held().calls.insert(call_id.to_owned(), Vec::new());
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
            let waits =
                !held.calls.is_empty() && held.calls.values().all(|asked| !asked.is_empty());
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
        if let Some(asked) = self.session.held().calls.get_mut(&self.call_id) {
            asked.push(approval.to_owned());
        }
        self.session.show();
    }

    /// It no longer does.
    pub(crate) fn answered(&self, approval: &str) {
        if let Some(asked) = self.session.held().calls.get_mut(&self.call_id) {
            asked.retain(|known| known != approval);
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
