//! A command's output, on its way to the client and into what is kept.

use std::sync::Arc;
use std::time::Duration;

use protocol::Data;
use protocol::method::OutputStream;
use sandbox::Outcome;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use super::stream::Source;
use super::text::Pieces;
use crate::output::{Cap, Output};

/// Bytes read at once, and so the most that one piece of output holds.
const PIECE: usize = 64 * 1024;

/// A piece smaller than this comes from a program that prints line by line. The first leaves at
/// once; before the next, others get the time to join it.
const SMALL: usize = 16 * 1024;

/// That time: short enough for someone who types, long enough for hundreds of lines.
const PAUSE: Duration = Duration::from_millis(4);

/// Where a command's output goes.
pub(crate) struct Pump {
    pub(crate) output: Output,
    pub(crate) cap: Cap,
    /// How the command ended, once it has.
    pub(crate) end: Arc<SetOnce<Outcome>>,
    /// Once cancelled, output is still read and kept, but no longer passed on.
    pub(crate) mute: CancellationToken,
}

impl Pump {
    /// Passes one stream on, to its end.
    pub(crate) async fn run(
        &self,
        source: Option<&Source>,
        name: OutputStream,
        mut keep: impl FnMut(&[u8]),
    ) {
        let Some(source) = source else { return };
        // Not filled with zeros: most commands print far less.
        let mut buffer = Vec::with_capacity(PIECE);
        let mut pieces = Pieces::default();
        loop {
            if let Err(error) = source.read(&mut buffer, &self.end).await {
                tracing::warn!(%error, "the output of a command cannot be read");
                break;
            }
            if buffer.is_empty() {
                break;
            }
            keep(&buffer);
            if let Some(piece) = pieces.next(&buffer) {
                self.pass(name, piece).await;
            }
            if buffer.len() < SMALL {
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    _ = self.end.wait() => {}
                }
            }
        }
        if let Some(piece) = pieces.rest() {
            self.pass(name, piece).await;
        }
    }

    async fn pass(&self, name: OutputStream, piece: Data) {
        tokio::select! {
            biased;
            () = self.mute.cancelled() => {}
            () = self.output.send(name, piece, self.cap) => {}
        }
    }
}
