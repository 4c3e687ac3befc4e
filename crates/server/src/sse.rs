//! Events as they are told over HTTP (server-sent events): each with its number, without a gap.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::Stream;
use gate::ledger::Ledger;
use protocol::{ErrorKind, Failure};
use runner::{Listener, Session, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Event, Seq, Store, StoreError, StreamName};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use crate::app::{App, Hold};
use crate::auth::Caller;
use crate::connection::Connection;
use crate::failure::HttpFailure;

/// How many events are read at a time, and how many wait for a slow client.
const PAGE: usize = 32;
const AHEAD: usize = 8;
/// How often a comment shows that the connection is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub(crate) const LAST: HeaderName = HeaderName::from_static("last-event-id");

/// Query of every operation that tells events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    /// The number of the last event that is known: those after it are told. 0 is from the first.
    /// The header `Last-Event-ID` says the same, and comes before it.
    pub(crate) from: Option<u64>,
}

/// Where a client goes on: behind what it says it knows.
pub(crate) fn after(headers: &HeaderMap, from: Option<u64>) -> Result<Option<Seq>, HttpFailure> {
    let Some(last) = headers.get(LAST) else {
        return Ok(from.map(Seq::new));
    };
    let number = last.to_str().ok().and_then(|text| text.parse().ok());
    match number {
        Some(number) => Ok(Some(Seq::new(number))),
        None => Err(Failure::new(
            ErrorKind::InvalidParams,
            "`Last-Event-ID` is the number of an event.",
        )
        .into()),
    }
}

/// Where events come from.
pub(crate) enum Source<S: Store> {
    Stream(Arc<S>, StreamName),
    Ledger(Ledger<S>),
}

impl<S: Store> Source<S> {
    pub(crate) async fn read(&self, after: Seq) -> Result<Vec<Event>, StoreError> {
        match self {
            Self::Stream(store, name) => store.read(name, after, PAGE).await,
            Self::Ledger(ledger) => {
                let entries = ledger.read(after, PAGE).await?;
                let events = entries.into_iter().map(|entry| {
                    let data = serde_json::to_value(&entry);
                    Ok(Event {
                        seq: entry.seq,
                        at: entry.at,
                        kind: entry.kind.as_str().to_owned(),
                        data: data.map_err(|error| StoreError::Failed(error.to_string()))?,
                    })
                });
                events.collect()
            }
        }
    }

    /// Where it ends now.
    pub(crate) async fn head(&self) -> Result<Seq, StoreError> {
        match self {
            Self::Stream(store, name) => {
                let last = store.tail(name, 1).await?;
                Ok(last.last().map_or(Seq::START, |event| event.seq))
            }
            Self::Ledger(ledger) => Ok(ledger.head().seq),
        }
    }

    pub(crate) async fn beyond(&self, after: Seq) -> Result<Seq, StoreError> {
        match self {
            Self::Stream(store, name) => store.beyond(name, after).await,
            Self::Ledger(ledger) => ledger.beyond(after).await,
        }
    }
}

/// The way to a client.
pub(crate) struct Out(mpsc::Sender<Bytes>);

/// The client has gone, or what is told cannot be read.
pub(crate) struct Over;

impl Out {
    /// An event of a stream.
    pub(crate) async fn event(&self, event: &Event) -> Result<(), Over> {
        self.say(Some(event.seq), &event.kind, &event.data).await
    }

    /// Something that is true only now: it has no number.
    pub(crate) async fn passing(&self, kind: &str, data: &impl Serialize) -> Result<(), Over> {
        self.say(None, kind, data).await
    }

    /// Shows that the connection is alive.
    pub(crate) async fn alive(&self) -> Result<(), Over> {
        let comment = Bytes::from_static(b":\n\n");
        self.0.send(comment).await.map_err(|_| Over)
    }

    /// Events of a session, in one piece.
    async fn written(&self, events: &[Written]) -> Result<(), Over> {
        let length = |event: &Written| event.data.len() + event.kind.len() + 40;
        let mut text = String::with_capacity(events.iter().map(length).sum());
        for Written { seq, kind, data } in events {
            // Writing to a String cannot fail.
            let _ = write!(text, "id: {seq}\nevent: {kind}\ndata: {data}\n\n");
        }
        self.0.send(text.into()).await.map_err(|_| Over)
    }

    async fn say(&self, seq: Option<Seq>, kind: &str, data: &impl Serialize) -> Result<(), Over> {
        // JSON of one line: no line break can end an event early.
        let data = serde_json::to_string(data).map_err(|_| Over)?;
        let mut text = String::with_capacity(data.len() + kind.len() + 40);
        if let Some(seq) = seq {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "id: {seq}");
        }
        let _ = write!(text, "event: {kind}\ndata: {data}\n\n");
        self.0.send(text.into()).await.map_err(|_| Over)
    }
}

/// Answers with events for as long as the client listens, is let in and Ward runs; `tell` may end
/// before.
pub(crate) fn answer<S, F>(
    app: &Arc<App<S>>,
    caller: Caller,
    connection: Connection,
    hold: Hold,
    tell: impl FnOnce(Out) -> F,
) -> Response
where
    S: Store,
    F: Future<Output = Result<(), Over>> + Send + 'static,
{
    let (sender, pieces) = mpsc::channel(AHEAD);
    let told = tell(Out(sender));
    let tokens = Arc::clone(&app.tokens);
    let telling = async move {
        tokio::select! {
            // In this order: who came back to what it left lying for long may not be let in any more.
            biased;
            () = caller.gone(&tokens) => {}
            () = connection.stop.cancelled() => {}
            // The connection ends in any case.
            _ = told => {}
        }
        drop(hold);
    };
    let pieces = Pieces {
        telling: Some(Box::pin(telling)),
        pieces,
    };
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-store, no-transform"),
    );
    response
}

/// What is told, piece by piece. It is made when the connection asks for it, by the connection's own
/// task, and is over when the connection is.
struct Pieces<F> {
    /// None once all is told.
    telling: Option<Pin<Box<F>>>,
    pieces: mpsc::Receiver<Bytes>,
}

impl<F: Future<Output = ()>> Stream for Pieces<F> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(piece) = self.pieces.poll_recv(cx) {
            return Poll::Ready(piece.map(Ok));
        }
        if let Some(telling) = &mut self.telling
            && telling.as_mut().poll(cx).is_ready()
        {
            self.telling = None;
        }
        self.pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

/// Says that there is nothing more, now and later: a browser then does not come again.
pub(crate) fn nothing_more() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Tells all events after `after`, and those that come, until `ends` is ready and all are told.
pub(crate) async fn follow<S: Store>(
    out: &Out,
    source: &Source<S>,
    mut after: Seq,
    ends: impl Future<Output = ()>,
) -> Result<(), Over> {
    tokio::pin!(ends);
    let mut ended = false;
    loop {
        let events = source.read(after).await.map_err(unreadable)?;
        if !events.is_empty() {
            for event in events {
                out.event(&event).await?;
                after = event.seq;
            }
            continue;
        }
        // Ready before the last look: nothing has come since.
        if ended {
            return Ok(());
        }
        tokio::select! {
            head = source.beyond(after) => drop(head.map_err(unreadable)?),
            () = &mut ends, if !ended => ended = true,
            () = tokio::time::sleep(KEEP_ALIVE) => out.alive().await?,
        }
    }
}

/// Tells a session's events, as [`follow`] does: those at hand from memory, older ones from the store.
pub(crate) async fn follow_session<S: Store>(
    out: &Out,
    store: &S,
    session: &Arc<Session>,
    mut after: Seq,
    ends: impl Future<Output = ()>,
) -> Result<(), Over> {
    let mut listener: Listener = session.listen();
    let mut alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    tokio::pin!(ends);
    let mut ended = false;
    loop {
        match listener.after(after) {
            Some(events) => {
                if let Some(last) = events.last() {
                    after = last.seq;
                    out.written(&events).await?;
                    continue;
                }
            }
            None => {
                let events = store.read(session.stream(), after, PAGE).await;
                let events = events.map_err(unreadable)?;
                if let Some(last) = events.last() {
                    after = last.seq;
                    for event in &events {
                        out.event(event).await?;
                    }
                    continue;
                }
            }
        }
        // Ready before the last look: nothing has come since.
        if ended {
            return Ok(());
        }
        tokio::select! {
            () = listener.more() => {}
            () = &mut ends, if !ended => ended = true,
            _ = alive.tick() => out.alive().await?,
        }
    }
}

pub(crate) fn unreadable(error: StoreError) -> Over {
    tracing::error!(%error, "events could not be read");
    Over
}
