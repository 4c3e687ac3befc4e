//! Where an action's output goes while it happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::method::{ACTION_OUTPUT, ExitedParams, OutputParams, OutputStream, TERMINAL_EXITED};
use protocol::{Data, Encoding};
use rpc::Remote;
use tokio::sync::Mutex;

use crate::terminal::text;

/// How much output of one command is passed on while it happens. A build prints some megabytes;
/// what prints more is not being read by anyone.
const CAP: u64 = 16 * 1024 * 1024;

/// The way from one action to the client. Clones are the same way.
#[derive(Debug, Clone)]
pub struct Output(Option<Arc<Way>>);

#[derive(Debug)]
struct Way {
    id: String,
    remote: Remote,
    /// Held while a piece is queued, so that the numbers leave in their order.
    next: Mutex<u64>,
    /// Bytes that were passed on or would have been; above the cap it only grows.
    passed: AtomicU64,
    dropped: AtomicU64,
}

/// Whether output is passed on without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    /// Up to a bound; what is beyond is counted and dropped.
    Bounded,
    /// As fast as the client reads: a terminal that a person looks at.
    Unbounded,
}

impl Output {
    /// Nobody listens.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(None)
    }

    /// To this client, as the output of the action `id`.
    #[must_use]
    pub fn to(remote: Remote, id: String) -> Self {
        Self(Some(Arc::new(Way {
            id,
            remote,
            next: Mutex::new(0),
            passed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        })))
    }

    /// Passes a piece on. Waits while the client is slow: that is what slows the command down.
    pub(crate) async fn send(&self, stream: OutputStream, data: Data, cap: Cap) {
        let Some(way) = &self.0 else { return };
        let size = text::size(&data);
        if cap == Cap::Bounded {
            let passed = way.passed.fetch_add(size, Ordering::Relaxed);
            // Once something is dropped everything is, so that there is one gap and not many.
            if passed + size > CAP {
                way.dropped.fetch_add(size, Ordering::Relaxed);
                return;
            }
        }
        way.send(stream, data).await;
    }

    /// Says what was dropped, if anything was.
    pub(crate) async fn finish(&self) {
        let Some(way) = &self.0 else { return };
        let dropped = way.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let data = Data {
                text: dropped.to_string(),
                encoding: Encoding::Utf8,
            };
            way.send(OutputStream::Dropped, data).await;
        }
    }

    /// Tells that the terminal this action opened has ended.
    pub(crate) async fn exited(&self, exited: impl FnOnce(String) -> ExitedParams) {
        let Some(way) = &self.0 else { return };
        // A client that is gone need not be told.
        let _ = way
            .remote
            .notify(TERMINAL_EXITED, &exited(way.id.clone()))
            .await;
    }
}

impl Way {
    async fn send(&self, stream: OutputStream, data: Data) {
        let mut next = self.next.lock().await;
        let params = OutputParams {
            id: self.id.clone(),
            seq: *next,
            stream,
            data: data.text,
            encoding: data.encoding,
        };
        // A client that is gone need not be told; the end of its connection ends the command.
        let _ = self.remote.notify(ACTION_OUTPUT, &params).await;
        // Only now: who is dropped while it waits has sent nothing.
        *next += 1;
    }
}
