//! What an action prints, on its way from the runtime to the store.

use std::sync::Arc;

use protocol::Encoding;
use protocol::method::OutputStream;
use tokio::sync::mpsc;

/// Pieces that may wait to be written; whoever sends more waits, and that slows the command down.
const WAITING: usize = 64;

/// A piece of output, or the end of a terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Some of what it printed.
    Printed {
        /// Where it came from.
        stream: OutputStream,
        /// The text, or base64.
        data: String,
        /// Which of the two.
        encoding: Encoding,
    },
    /// The terminal that the action opened has ended.
    Exited(Box<protocol::method::ExitedParams>),
}

/// The way of an action's output to whoever writes it down. Nothing is set up before the first
/// piece: most actions print nothing.
#[derive(Clone)]
pub struct Output {
    open: Arc<dyn Fn(mpsc::Receiver<Piece>) + Send + Sync>,
    way: Arc<std::sync::OnceLock<mpsc::Sender<Piece>>>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

impl Output {
    /// `open` is called with the first piece, to start taking them.
    pub fn new(open: impl Fn(mpsc::Receiver<Piece>) + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            way: Arc::default(),
        }
    }

    /// Nobody listens.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::new(drop)
    }

    /// Hands a piece over; waits while too many wait already.
    pub async fn send(&self, piece: Piece) {
        let way = self.way.get_or_init(|| {
            let (way, pieces) = mpsc::channel(WAITING);
            (self.open)(pieces);
            way
        });
        // Where nobody takes them any more there is nothing to slow down.
        let _ = way.send(piece).await;
    }
}
