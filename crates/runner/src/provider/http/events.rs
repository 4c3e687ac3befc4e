//! The bytes of an answer as events, in whatever pieces they come, with limits on time and size.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sse_stream::{Sse, SseByteStream};
use tokio::time::{Instant, Sleep, sleep};

use super::Timeouts;
use crate::provider::{Patience, ProviderError};

/// The largest event that is read: a picture fits, what has no end does not.
const LARGEST: usize = 64 << 20;

/// Why no more bytes came.
#[derive(Debug, Clone, thiserror::Error)]
enum Broken {
    #[error("nothing came")]
    TimedOut(Patience, Duration),
    #[error("{0}")]
    Cut(String),
    #[error("an event of more than {LARGEST} bytes")]
    TooLarge,
}

/// Server-sent events out of `bytes`.
pub(in crate::provider) fn events<S, E>(
    provider: String,
    bytes: S,
    timeouts: Timeouts,
) -> impl Stream<Item = Result<Sse, ProviderError>> + Send
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: std::error::Error + 'static,
{
    let bytes = Timed {
        bytes,
        timeouts,
        patience: Patience::FirstByte,
        since: None,
        alarm: Box::pin(sleep(timeouts.first_byte)),
        open: 0,
        over: false,
    };
    SseByteStream::new(Box::pin(bytes)).map(move |event| {
        event.map_err(|error| match error {
            sse_stream::Error::Body(error) => match error.downcast_ref::<Broken>() {
                Some(Broken::TimedOut(patience, after)) => ProviderError::Timeout {
                    provider: provider.clone(),
                    patience: *patience,
                    after: *after,
                },
                Some(Broken::Cut(why)) => ProviderError::StreamCut {
                    provider: provider.clone(),
                    why: why.clone(),
                },
                Some(Broken::TooLarge) | None => ProviderError::BadStream {
                    provider: provider.clone(),
                    why: error.to_string(),
                },
            },
            error => ProviderError::BadStream {
                provider: provider.clone(),
                why: error.to_string(),
            },
        })
    })
}

/// Pieces that are waited for no longer than there is patience.
struct Timed<S> {
    bytes: S,
    timeouts: Timeouts,
    patience: Patience,
    /// Since when the next piece is waited for.
    since: Option<Instant>,
    /// When to look next whether one has come; to set it anew for each would take longer.
    alarm: Pin<Box<Sleep>>,
    /// How many bytes there are of an event that has not ended.
    open: usize,
    over: bool,
}

impl<S> Timed<S> {
    fn wait(&self) -> Duration {
        match self.patience {
            Patience::FirstByte => self.timeouts.first_byte,
            Patience::BetweenBytes => self.timeouts.between_bytes,
        }
    }

    fn came(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        self.since = None;
        if self.patience == Patience::FirstByte {
            self.patience = Patience::BetweenBytes;
            let until = Instant::now() + self.wait();
            self.alarm.as_mut().reset(until);
        }
        self.open = unfinished(self.open, &piece);
        match self.open > LARGEST {
            true => Err(Broken::TooLarge),
            false => Ok(piece),
        }
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        let since = *self.since.get_or_insert_with(Instant::now);
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let until = since + self.wait();
            if until <= Instant::now() {
                return Poll::Ready(Broken::TimedOut(self.patience, self.wait()));
            }
            self.alarm.as_mut().reset(until);
        }
    }
}

impl<S, E> Stream for Timed<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error + 'static,
{
    type Item = Result<Bytes, Broken>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        let next = match this.bytes.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(piece))) => Some(this.came(piece)),
            Poll::Ready(Some(Err(error))) => Some(Err(Broken::Cut(root(&error)))),
            Poll::Ready(None) => None,
            Poll::Pending => Some(Err(ready!(this.poll_late(cx)))),
        };
        this.over = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

/// How many bytes there are since the last empty line; lines that end in CR or CRLF count too.
fn unfinished(open: usize, piece: &[u8]) -> usize {
    let end = piece
        .windows(2)
        .rposition(|pair| matches!(pair, b"\n\n" | b"\r\r" | b"\n\r"));
    match end {
        Some(at) => piece.len() - at,
        // An event may also end between two pieces: only a bound is wanted, so start over then.
        None if matches!(piece.first(), Some(b'\n' | b'\r')) => piece.len(),
        None => open + piece.len(),
    }
}

/// The innermost reason: what wraps it says only that something failed.
pub(super) fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
