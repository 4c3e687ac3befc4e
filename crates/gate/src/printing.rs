//! Writes what an action prints to its stream: coalesced, capped, and what was dropped is said.

use std::sync::{Arc, Weak};
use std::time::Duration;

use protocol::Encoding;
use protocol::method::OutputStream;
use serde_json::{Value, json};
use store::{Append, Expected, NewEvent, Store, StoreError, StreamName};
use tokio::sync::{mpsc, oneshot};

use crate::clock::now;
use crate::gate::Inner;
use crate::job::Job;
use crate::live::Live;
use crate::record::{events, stream_of};
use crate::redact::{Redactor, hide};
use crate::runtime::{Output, Piece};

/// How long pieces are collected before they are written as one.
const COLLECT: Duration = Duration::from_millis(15);
/// How much one event holds.
const EVENT: usize = 64 * 1024;
/// How much of one action's output is kept.
const CAP: usize = 8 * 1024 * 1024;

/// Waits until all that was printed is written.
pub(crate) struct Printed(mpsc::UnboundedReceiver<oneshot::Receiver<()>>);

impl Printed {
    /// Everything that was handed over so far is written when this returns.
    pub(crate) async fn all(mut self) {
        self.0.close();
        while let Some(written) = self.0.recv().await {
            let _ = written.await;
        }
    }
}

/// The way for the output of this job. Nothing is started before something is printed.
pub(crate) fn start<S: Store>(
    gate: &Inner<S>,
    job: &Job,
    live: &Arc<Live>,
) -> Result<(Output, Printed), StoreError> {
    let stream = stream_of(&job.id)?;
    let store = Arc::clone(&gate.store);
    let redactor = Arc::clone(&gate.redactor);
    let secrets = Arc::clone(&job.secrets);
    let live = Arc::clone(live);
    let opened = job.lasts().then(|| Opened {
        gate: Weak::clone(&gate.me),
        id: job.id.clone(),
    });
    let opened = Arc::new(opened);
    let (begun, printed) = mpsc::unbounded_channel();
    let output = Output::new(move |pieces| {
        let (written, wait) = oneshot::channel();
        let _ = begun.send(wait);
        let writer = Writer {
            store: Arc::clone(&store),
            redactor: Arc::clone(&redactor),
            secrets: Arc::clone(&secrets),
            stream: stream.clone(),
            live: Arc::clone(&live),
            kept: 0,
            dropped: 0,
        };
        let opened = Arc::clone(&opened);
        tokio::spawn(async move {
            writer.run(pieces).await;
            drop(opened);
            let _ = written.send(());
        });
    });
    Ok((output, Printed(printed)))
}

/// A terminal or background command that goes on after its action. When nothing can come of it any
/// more, because it has ended or its runtime has, and all that it printed is written, its job ends.
struct Opened<S: Store> {
    gate: Weak<Inner<S>>,
    id: String,
}

impl<S: Store> Drop for Opened<S> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.upgrade() {
            gate.jobs.end(&self.id);
        }
    }
}

struct Writer<S> {
    store: Arc<S>,
    redactor: Arc<Redactor>,
    secrets: Arc<[String]>,
    stream: StreamName,
    live: Arc<Live>,
    kept: usize,
    dropped: usize,
}

impl<S: Store> Writer<S> {
    async fn run(mut self, mut pieces: mpsc::Receiver<Piece>) {
        while let Some(first) = pieces.recv().await {
            let mut together = Together::default();
            self.add(&mut together, first);
            let collected = tokio::time::sleep(COLLECT);
            tokio::pin!(collected);
            while together.size < EVENT {
                tokio::select! {
                    piece = pieces.recv() => match piece {
                        Some(piece) => self.add(&mut together, piece),
                        None => break,
                    },
                    () = &mut collected => break,
                }
            }
            self.write(together).await;
        }
        if self.dropped > 0 {
            let mut last = Together::default();
            last.events
                .push((events::DROPPED, json!({"bytes": self.dropped})));
            self.write(last).await;
        }
    }

    fn add(&mut self, together: &mut Together, piece: Piece) {
        let (stream, data, encoding) = match piece {
            Piece::Exited(exited) => {
                together.events.push((events::EXITED, json!(exited)));
                return;
            }
            Piece::Printed {
                stream: OutputStream::Dropped,
                data,
                ..
            } => {
                self.dropped = self.dropped.saturating_add(data.parse().unwrap_or(0));
                return;
            }
            Piece::Printed {
                stream,
                data,
                encoding,
            } => (stream, data, encoding),
        };
        // Once something is dropped everything is, so that there is one gap and not many.
        if self.dropped > 0 || self.kept + data.len() > CAP {
            self.dropped = self.dropped.saturating_add(data.len());
            return;
        }
        self.kept += data.len();
        together.add(stream, data, encoding);
    }

    async fn write(&self, together: Together) {
        let at = now();
        let events = together.events.into_iter().map(|(kind, mut data)| {
            self.redactor.redact(&mut data);
            hide(&self.secrets, &mut data);
            NewEvent {
                kind: kind.into(),
                at,
                data: data.into(),
            }
        });
        let events: Vec<NewEvent> = events.collect();
        if events.is_empty() {
            return;
        }
        let append = Append {
            stream: self.stream.clone(),
            expected: Expected::Any,
            events,
        };
        match self.store.append(vec![append]).await {
            Ok(heads) => {
                if let Some(head) = heads.first() {
                    self.live.has_printed(*head);
                }
            }
            Err(error) => tracing::error!(%error, "output could not be written"),
        }
    }
}

/// Pieces on their way to be written at once.
#[derive(Default)]
struct Together {
    events: Vec<(&'static str, Value)>,
    last: Option<(OutputStream, Encoding)>,
    size: usize,
}

impl Together {
    /// Joins text to the text before it, where both are of one stream.
    fn add(&mut self, stream: OutputStream, data: String, encoding: Encoding) {
        self.size += data.len();
        let joins = self.last == Some((stream, encoding)) && encoding == Encoding::Utf8;
        if joins
            && let Some((events::OUTPUT, event)) = self.events.last_mut()
            && let Some(Value::String(text)) = event.get_mut("data")
        {
            text.push_str(&data);
            return;
        }
        self.last = Some((stream, encoding));
        let mut event = json!({"stream": stream, "data": data});
        if encoding != Encoding::Utf8 {
            event["encoding"] = json!(encoding);
        }
        self.events.push((events::OUTPUT, event));
    }
}
