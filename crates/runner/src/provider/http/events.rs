//! The bytes of an answer as events, in whatever pieces they come, with limits on time and size.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sse_stream::{Sse, SseByteStream};

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
    let start = Some((bytes, 0, Patience::FirstByte));
    let bytes = futures_util::stream::unfold(start, move |state| async move {
        let (mut bytes, mut open, patience) = state?;
        let wait = match patience {
            Patience::FirstByte => timeouts.first_byte,
            Patience::BetweenBytes => timeouts.between_bytes,
        };
        match tokio::time::timeout(wait, bytes.next()).await {
            Err(_) => Some((Err(Broken::TimedOut(patience, wait)), None)),
            Ok(None) => None,
            Ok(Some(Err(error))) => Some((Err(Broken::Cut(root(&error))), None)),
            Ok(Some(Ok(piece))) => {
                open = unfinished(open, &piece);
                match open > LARGEST {
                    true => Some((Err(Broken::TooLarge), None)),
                    false => Some((Ok(piece), Some((bytes, open, Patience::BetweenBytes)))),
                }
            }
        }
    });
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
