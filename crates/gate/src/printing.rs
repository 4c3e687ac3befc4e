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
/// How much longer it is waited where what came ends in the middle of a word: of half a secret nobody
/// could tell what it is.
const WORD: Duration = Duration::from_millis(200);
/// A word that is shorter is not waited for: somebody types.
const SHORT: usize = 4;
/// How much one event holds, and how much where its last word does not end.
const EVENT: usize = 64 * 1024;
const LARGEST: usize = 4 * EVENT;
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
            key: Key::default(),
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
    key: Key,
    kept: usize,
    dropped: usize,
}

impl<S: Store> Writer<S> {
    async fn run(mut self, mut pieces: mpsc::Receiver<Piece>) {
        while let Some(first) = pieces.recv().await {
            let mut together = Together::default();
            self.add(&mut together, first);
            self.collect(&mut pieces, &mut together, COLLECT, |so_far| {
                so_far.size < EVENT
            })
            .await;
            self.collect(&mut pieces, &mut together, WORD, |so_far| {
                so_far.size < LARGEST && so_far.ends_in_a_word()
            })
            .await;
            self.write(together).await;
        }
        if self.dropped > 0 {
            let mut last = Together::default();
            last.events
                .push((events::DROPPED, json!({"bytes": self.dropped})));
            self.write(last).await;
        }
    }

    /// Adds what comes within this time, for as long as more is wanted.
    async fn collect(
        &mut self,
        pieces: &mut mpsc::Receiver<Piece>,
        together: &mut Together,
        time: Duration,
        wants_more: impl Fn(&Together) -> bool,
    ) {
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        while wants_more(together) {
            tokio::select! {
                piece = pieces.recv() => match piece {
                    Some(piece) => self.add(together, piece),
                    None => break,
                },
                () = &mut over => break,
            }
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

    async fn write(&mut self, together: Together) {
        let at = now();
        let mut events = Vec::with_capacity(together.events.len());
        for (kind, mut data) in together.events {
            if kind == events::OUTPUT
                && let Some(Value::String(text)) = data.get_mut("data")
                && self.key.leave_out(text)
            {
                continue;
            }
            self.redactor.redact(&mut data);
            hide(&self.secrets, &mut data);
            events.push(NewEvent {
                kind: kind.into(),
                at,
                data: data.into(),
            });
        }
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

/// A private key that has begun to be printed and goes on in the next event. What begins it is told to
/// be one there; no more is taken for it than such a key has.
#[derive(Debug, Default)]
struct Key {
    left: usize,
}

impl Key {
    const MOST: usize = 16 * 1024;

    /// Takes out of a text what goes on with the key; answers whether nothing else was in it.
    fn leave_out(&mut self, text: &mut String) -> bool {
        let is_within = self.left > 0;
        if is_within {
            let end = end_of_key(text);
            let out = end.unwrap_or(text.len()).min(self.left);
            let out = text.ceil_char_boundary(out);
            self.left = match end {
                Some(_) => 0,
                None => self.left - out.min(self.left),
            };
            text.drain(..out);
        }
        if let Some(at) = text.rfind("-----BEGIN ")
            && let Some(begun) = text.get(at..)
            && begun
                .lines()
                .next()
                .is_some_and(|line| line.contains("PRIVATE KEY"))
            && end_of_key(begun).is_none()
        {
            self.left = Self::MOST;
        }
        is_within && text.is_empty()
    }
}

fn end_of_key(text: &str) -> Option<usize> {
    const END: &str = "-----END ";
    let at = text.find(END)? + END.len();
    let dashes = "-----";
    Some(at + text.get(at..)?.find(dashes)? + dashes.len())
}

/// Pieces on their way to be written at once.
#[derive(Default)]
struct Together {
    events: Vec<(&'static str, Value)>,
    last: Option<(OutputStream, Encoding)>,
    size: usize,
}

impl Together {
    /// Whether the text that came last does, and more of the word may come.
    fn ends_in_a_word(&self) -> bool {
        let Some((events::OUTPUT, event)) = self.events.last() else {
            return false;
        };
        let text = event
            .get("data")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let end = text.len().saturating_sub(SHORT);
        let end = text.get(end..).unwrap_or(text);
        end.len() >= SHORT && !end.contains(char::is_whitespace)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_printed_in_pieces_is_left_out_to_its_end_and_no_further() {
        let mut key = Key::default();
        let mut told = |text: &str| {
            let mut text = text.to_owned();
            let is_over = key.leave_out(&mut text);
            (text, is_over)
        };
        let kept = |text: &str| (text.to_owned(), false);
        let begun = "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n";
        assert_eq!(
            told("-----BEGIN CERTIFICATE-----\n"),
            kept("-----BEGIN CERTIFICATE-----\n")
        );
        assert_eq!(told("MII\n"), kept("MII\n"));
        assert_eq!(told(begun), kept(begun));
        assert_eq!(told("MIIE\nEEE"), (String::new(), true));
        assert_eq!(told("E\n-----END RSA PRIVATE KEY-----\nb\n"), kept("\nb\n"));
        assert_eq!(told("c"), kept("c"));
        // Whoever only says that a key begins does not hide for ever what comes.
        told("-----BEGIN PRIVATE KEY-----");
        assert_eq!(told(&"é".repeat(Key::MOST / 2 + 1)), kept("é"));
        assert_eq!(told("d"), kept("d"));
    }

    #[test]
    fn a_word_is_waited_for_where_it_is_long_enough_to_be_more_than_typed() {
        let ends = |text: &str, encoding| {
            let mut together = Together::default();
            together.add(OutputStream::Stdout, text.to_owned(), encoding);
            together.ends_in_a_word()
        };
        for (text, waits) in [
            ("ghp_", true),
            ("a ghp_BB", true),
            ("ghp", false),
            ("ls -la", false),
            ("done\n", false),
            ("ééé", true),
        ] {
            assert_eq!(ends(text, Encoding::Utf8), waits, "{text}");
        }
    }
}
