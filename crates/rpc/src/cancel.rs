//! What `$/cancelRequest` does to the work on a request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;

/// Whether a request was cancelled, shared by the peer and whoever works on it.
///
/// A handler that never asks for the token is dropped. One that did has things to put away: it is
/// told, and gives the answer itself.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    asked: AtomicBool,
    token: OnceLock<CancellationToken>,
    waker: AtomicWaker,
}

impl Cancel {
    /// Cancels the work.
    pub(crate) fn cancel(&self) {
        self.asked.store(true, Ordering::SeqCst);
        match self.token.get() {
            Some(token) => token.cancel(),
            None => self.waker.wake(),
        }
    }

    /// The token; asking for it is the promise to heed it.
    pub(crate) fn token(&self) -> CancellationToken {
        let token = self.token.get_or_init(CancellationToken::new);
        // It may have been cancelled between our first poll and now.
        if self.asked.load(Ordering::SeqCst) {
            token.cancel();
        }
        token.clone()
    }

    /// Whether the handler is to be dropped; else it wakes `waker` when it is.
    pub(crate) fn drops(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.asked.load(Ordering::SeqCst) && self.token.get().is_none()
    }
}
