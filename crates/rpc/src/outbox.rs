//! What is to be written, gathered so that many frames leave in one write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

/// So much is written at once, though more is to come: the other side can begin with it.
const WORTH_A_WRITE: usize = 4 * 1024;

/// Above this nothing more is taken from the queue: there is enough for the next write.
const ENOUGH: usize = 128 * 1024;

/// Above this nothing more is read: the other side does not read what it asked for. Far above
/// `ENOUGH`, so that what is merely told never keeps a cancel from being read.
const FULL: usize = 4 * 1024 * 1024;

/// A buffer that grew larger than this for one large frame is given back.
const KEPT: usize = 256 * 1024;

/// Bytes on their way out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    written: usize,
    flush: bool,
}

impl Outbox {
    pub(crate) fn is_worth_a_write(&self) -> bool {
        self.bytes.len() - self.written >= WORTH_A_WRITE
    }

    pub(crate) fn has_enough(&self) -> bool {
        self.bytes.len() - self.written >= ENOUGH
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() - self.written >= FULL
    }

    /// Whether all is written and flushed.
    pub(crate) fn is_done(&self) -> bool {
        self.bytes.is_empty() && !self.flush
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes what there is.
    pub(crate) fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        mut writer: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            let count = ready!(Pin::new(&mut writer).poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.flush = true;
        }
        self.written = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        if self.flush {
            ready!(Pin::new(&mut writer).poll_flush(cx))?;
            self.flush = false;
        }
        Poll::Ready(Ok(()))
    }
}
