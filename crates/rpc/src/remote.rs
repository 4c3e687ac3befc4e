//! The other side, to be asked and told things.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ErrorKind, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::failure::disconnected;
use crate::message::{self, Answer};

/// The other side of a connection. Clones are the same side.
#[derive(Debug, Clone)]
pub struct Remote {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Vec<u8>>,
    abandoned: mpsc::UnboundedSender<u64>,
}

/// What the handles and the peer have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    asked: Mutex<Asked>,
    next: AtomicU64,
    /// Bytes of one incoming body.
    pub(crate) frame_limit: AtomicUsize,
    pub(crate) closing: CancellationToken,
}

/// Who waits for which answer; `None` once no answer can come.
#[derive(Debug)]
struct Asked(Option<HashMap<u64, oneshot::Sender<Answer>>>);

impl Shared {
    pub(crate) fn new(frame_limit: usize) -> Self {
        Self {
            asked: Mutex::new(Asked(Some(HashMap::new()))),
            next: AtomicU64::new(0),
            frame_limit: AtomicUsize::new(frame_limit),
            closing: CancellationToken::new(),
        }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        // Nothing panics while it is held; if something did, a map is never half-changed.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an answer to whoever asked; `false` where nobody did.
    pub(crate) fn answered(&self, id: u64, answer: Answer) -> bool {
        let waiting = self.asked().0.as_mut().and_then(|asked| asked.remove(&id));
        match waiting {
            Some(waiting) => {
                // Who no longer waits does not need it.
                let _ = waiting.send(answer);
                true
            }
            None => false,
        }
    }

    /// From now on nothing is asked, and everybody who waits learns that no answer comes.
    pub(crate) fn disconnect(&self) {
        let asked = self.asked().0.take();
        for waiting in asked.into_iter().flat_map(HashMap::into_values) {
            let _ = waiting.send(Err(disconnected()));
        }
    }
}

/// The ends of the queues that the peer empties.
pub(crate) struct Queues {
    pub(crate) frames: mpsc::Receiver<Vec<u8>>,
    /// Requests of ours that nobody waits for any more. Only a request that went through `frames`
    /// gets here, so that queue bounds this one.
    pub(crate) abandoned: mpsc::UnboundedReceiver<u64>,
}

impl Remote {
    pub(crate) fn new(shared: Arc<Shared>, outgoing: usize) -> (Self, Queues) {
        let (queue, frames) = mpsc::channel(outgoing.max(1));
        let (abandoned, given_up) = mpsc::unbounded_channel();
        (
            Self {
                shared,
                queue,
                abandoned,
            },
            Queues {
                frames,
                abandoned: given_up,
            },
        )
    }

    /// Asks, and waits for the answer. Waits also while the outgoing queue is full. Dropping the
    /// future cancels the request over there.
    pub async fn call<P: Serialize, T: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<T, Failure> {
        let result = self.call_raw(method, params).await?;
        serde_json::from_str(result.get()).map_err(|error| {
            Failure::new(
                ErrorKind::Internal,
                format!("The answer to `{method}` is not what was expected: {error}."),
            )
        })
    }

    /// The same, with the answer as JSON that was not read.
    pub async fn call_raw<P: Serialize>(&self, method: &str, params: &P) -> Answer {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let frame = message::call(Some(id), method, params)?;
        let (waiting, answer) = oneshot::channel();
        match &mut self.shared.asked().0 {
            Some(asked) => asked.insert(id, waiting),
            None => return Err(disconnected()),
        };
        let mut asking = Asking {
            remote: self,
            id,
            stage: Stage::Queueing,
        };
        self.queue.send(frame).await.map_err(|_| disconnected())?;
        asking.stage = Stage::Waiting;
        let answer = answer.await.unwrap_or_else(|_| Err(disconnected()));
        asking.stage = Stage::Answered;
        answer
    }

    /// Tells. Waits while the outgoing queue is full.
    pub async fn notify<P: Serialize>(&self, method: &str, params: &P) -> Result<(), Failure> {
        let frame = message::call(None, method, params)?;
        self.queue.send(frame).await.map_err(|_| disconnected())
    }

    /// Changes how large an incoming body may be: less before it is known who is talking, more
    /// afterwards.
    pub fn set_frame_limit(&self, bytes: usize) {
        self.shared.frame_limit.store(bytes, Ordering::Relaxed);
    }

    /// Ends the connection from this side: nothing more is read, what is queued is still written.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// Waits until the connection has ended or is about to.
    pub async fn closed(&self) {
        tokio::select! {
            () = self.shared.closing.cancelled() => {}
            () = self.queue.closed() => {}
        }
    }
}

/// A request of ours. Dropped half-way, it tells the other side to stop.
struct Asking<'a> {
    remote: &'a Remote,
    id: u64,
    stage: Stage,
}

enum Stage {
    Queueing,
    Waiting,
    Answered,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Stage::Answered = self.stage {
            return;
        }
        let waiting = match &mut self.remote.shared.asked().0 {
            Some(asked) => asked.remove(&self.id).is_some(),
            None => false,
        };
        if let (Stage::Waiting, true) = (&self.stage, waiting) {
            // Where the peer is gone there is nobody to tell.
            let _ = self.remote.abandoned.send(self.id);
        }
    }
}
