//! One end of a connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::driver::Driver;
use crate::remote::{Queues, Remote, Shared};
use crate::service::Service;

/// How much one connection may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one incoming body. What is over it is answered with `frame_too_large`.
    /// [`Remote::set_frame_limit`] changes it later.
    pub frame: usize,
    /// Requests of the other side under way at once. At the bound, nothing more is read.
    pub in_flight: usize,
    /// Frames of ours that wait to be written. At the bound, who sends waits.
    pub outgoing: usize,
    /// How long handlers that took the cancel token, and what is still to be written, are waited
    /// for when the connection ends.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 64 * 1024 * 1024,
            in_flight: 1024,
            outgoing: 16,
            grace: Duration::from_secs(2),
        }
    }
}

/// Why a connection ended.
#[derive(Debug)]
pub enum End {
    /// The other side closed its end.
    EndOfInput,
    /// The other side closed its end in the middle of a frame.
    Truncated,
    /// [`Remote::close`] was called.
    Closed,
    /// Reading or writing failed.
    Failed(std::io::Error),
}

/// One end of a connection, not yet at work.
#[derive(Debug)]
#[must_use = "a peer does nothing until it is run"]
pub struct Peer<R, W> {
    reader: R,
    writer: W,
    limits: Limits,
    shared: Arc<Shared>,
    queues: Queues,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl<R, W> Peer<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    /// A peer over these bytes, and the other side as this one sees it.
    pub fn new(reader: R, writer: W, limits: Limits) -> (Self, Remote) {
        let shared = Arc::new(Shared::new(limits.frame));
        let (remote, queues) = Remote::new(Arc::clone(&shared), limits.outgoing);
        let peer = Self {
            reader,
            writer,
            limits,
            shared,
            queues,
        };
        (peer, remote)
    }

    /// Reads, answers and writes until the connection ends. When it returns or is dropped, no
    /// handler is left and every request of ours has failed as `disconnected`.
    pub async fn run<S: Service>(self, service: S) -> End {
        Driver::new(
            &service,
            self.reader,
            self.writer,
            self.limits,
            self.shared,
            self.queues,
        )
        .await
    }
}
