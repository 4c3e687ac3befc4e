//! The actions that are under way or have ended not long ago.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use protocol::{Digest, ErrorKind, Failure};
use serde_json::value::RawValue;
use store::Seq;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::job::Job;

/// Actions under way at once, of all actors and of one agent.
const MAX_RUNNING: usize = 4096;
const MAX_OF_AGENT: usize = 256;
/// Ended actions that are kept in memory, and their bytes; the store has them all.
const MAX_ENDED: usize = 512;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// One action, from its request to its outcome.
#[derive(Debug)]
pub struct Live {
    /// Its id.
    pub id: String,
    /// The person who may look at it.
    pub person: String,
    /// Who asked for it.
    pub actor: String,
    /// Whether what it opens goes on after its end: a terminal, a background command.
    pub(crate) lasts: bool,
    /// Stands for all of the request but its id.
    pub(crate) content: Digest,
    pub(crate) state: watch::Sender<State>,
    pub(crate) cancel: CancellationToken,
    /// Where its stream is, once something that it printed was written.
    printed: OnceLock<watch::Sender<Seq>>,
}

/// How far an action is.
#[derive(Debug, Clone)]
pub enum State {
    /// Nothing is decided yet.
    Deciding,
    /// A person is asked.
    Asking {
        /// What is asked.
        approval_id: String,
    },
    /// It runs.
    Running,
    /// It has ended, and that is written.
    Ended(Arc<Ended>),
}

/// How an action ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The runtime's result, or why there is none.
    pub outcome: Result<Arc<RawValue>, Failure>,
    /// From the request to the end.
    pub duration_ms: u64,
}

impl Live {
    pub(crate) fn of(job: &Job) -> Self {
        Self {
            id: job.id.clone(),
            person: job.person.clone(),
            actor: job.actor.clone(),
            lasts: job.lasts(),
            content: job.content.clone(),
            state: watch::Sender::new(State::Deciding),
            cancel: CancellationToken::new(),
            printed: OnceLock::new(),
        }
    }

    /// How far it is now.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Told of every step.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Told whenever something that it printed, or asked, was written: read its stream.
    #[must_use]
    pub fn printed(&self) -> watch::Receiver<Seq> {
        self.prints().subscribe()
    }

    /// Something that it asks is written.
    pub(crate) fn has_asked(&self) {
        self.prints().send_modify(|_| ());
    }

    /// Something that it printed is written, up to here.
    pub(crate) fn has_printed(&self, head: Seq) {
        self.prints().send_replace(head);
    }

    /// Most print nothing, and nobody asks.
    fn prints(&self) -> &watch::Sender<Seq> {
        self.printed.get_or_init(|| watch::Sender::new(Seq::START))
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Arc<Ended> {
        let mut states = self.state.subscribe();
        loop {
            if let State::Ended(ended) = &*states.borrow_and_update() {
                return Arc::clone(ended);
            }
            if states.changed().await.is_err() {
                // The sender lives in `self`: this cannot be.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends it, wherever it is.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

/// All of them, by id.
#[derive(Debug, Default)]
pub(crate) struct Actions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<String, Arc<Live>>,
    running: usize,
    /// How many of each actor's run; an actor without any is not in it.
    by_actor: HashMap<String, usize>,
    ended: VecDeque<(String, usize)>,
    bytes: usize,
}

/// What an id turned out to be.
pub(crate) enum Begun {
    New,
    Known(Arc<Live>),
}

impl Actions {
    /// Takes in a new action, or finds the one of that id.
    pub(crate) fn begin(&self, live: &Arc<Live>) -> Result<Begun, Failure> {
        let mut known = self.known();
        if let Some(found) = known.by_id.get(&live.id) {
            same(found, live)?;
            return Ok(Begun::Known(Arc::clone(found)));
        }
        if known.running >= MAX_RUNNING {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "{MAX_RUNNING} actions are under way already. Wait for one of them, or cancel one."
                ),
            ));
        }
        let of_actor = known.by_actor.entry(live.actor.clone()).or_default();
        if *of_actor >= MAX_OF_AGENT && live.actor.starts_with("agent:") {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "This agent has {MAX_OF_AGENT} actions under way already. Wait for one of them, or cancel one."
                ),
            ));
        }
        *of_actor += 1;
        known.running += 1;
        known.by_id.insert(live.id.clone(), Arc::clone(live));
        Ok(Begun::New)
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        self.known().by_id.get(id).cloned()
    }

    /// It never was: its id is free again.
    pub(crate) fn forget(&self, id: &str) {
        let mut known = self.known();
        if let Some(live) = known.by_id.remove(id) {
            known.rests(&live.actor);
        }
    }

    /// It has ended; it is kept for a while.
    pub(crate) fn ended(&self, live: &Live, ended: Ended) {
        let size = match &ended.outcome {
            Ok(result) => result.get().len(),
            Err(failure) => failure.message.len(),
        };
        live.state.send_replace(State::Ended(Arc::new(ended)));
        let mut known = self.known();
        known.rests(&live.actor);
        known.bytes += size;
        known.ended.push_back((live.id.clone(), size));
        while known.ended.len() > MAX_ENDED || (known.bytes > MAX_BYTES && known.ended.len() > 1) {
            let Some((id, size)) = known.ended.pop_front() else {
                break;
            };
            known.bytes -= size;
            known.by_id.remove(&id);
        }
    }

    pub(crate) fn running(&self) -> Vec<Arc<Live>> {
        let known = self.known();
        let running = |live: &&Arc<Live>| !matches!(*live.state.borrow(), State::Ended(_));
        known.by_id.values().filter(running).cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// One of this actor's no longer runs.
    fn rests(&mut self, actor: &str) {
        self.running = self.running.saturating_sub(1);
        if let Some(count) = self.by_actor.get_mut(actor) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_actor.remove(actor);
            }
        }
    }
}

/// Refuses an id that was used for something else, or by somebody else.
fn same(found: &Live, asked: &Live) -> Result<(), Failure> {
    if found.content == asked.content && found.actor == asked.actor {
        return Ok(());
    }
    Err(used())
}

pub(crate) fn used() -> Failure {
    Failure::new(
        ErrorKind::Conflict,
        "An action with this id and other content was sent before. Give each action its own id.",
    )
}
