//! A local copy of a stream that can be written at once and offline.
//!
//! A [`Replica`] holds what the server has confirmed and, on top of it, what was written here and is
//! still pending. It is a state machine: [`Input`]s go in, [`Effect`]s come out, and it does nothing
//! by itself, so that whoever drives it brings the transport, the disk and the clock.
//!
//! The server orders. It takes a push only where it expects the head that the server has, so a push
//! that arrives twice is taken once; a replica that was overtaken pulls what it missed, rebases what
//! is pending on it and pushes again.
//!
//! Invariants:
//! - What is confirmed is a prefix of the server's stream, here and everywhere.
//! - Every event has an [`EventId`]: one that comes back confirmed is no longer pending, however
//!   often it was pushed.
//! - At most one push and one pull are under way; [`Input::Retry`] gives both up and asks again, so
//!   that no lost message leaves a replica waiting for ever.
//! - After [`Effect::Keep`] is done, a crash loses nothing: [`Replica::restored`] goes on from what
//!   was kept.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::seq::Seq;

/// Which event this is, whoever has it: its writer, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// The replica that it was written to; no two replicas have one name.
    pub writer: String,
    /// Counted from 1 there.
    pub number: u64,
}

/// An event with its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<E> {
    /// Which one.
    pub id: EventId,
    /// What happened.
    pub event: E,
}

/// What becomes of a pending event when others came before it.
pub trait Rebase: Clone {
    /// The event as it is meant on top of these; [`None`] where it has lost its meaning.
    #[must_use]
    fn rebase(&self, upstream: &[Self]) -> Option<Self>;
}

/// What a replica is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<E> {
    /// Somebody writes here.
    Write(E),
    /// There is a connection.
    Connected,
    /// There is none any more.
    Disconnected,
    /// The server took a push, and is at `head` with it.
    Accepted {
        /// Which push, by the head it expected.
        expected: Seq,
        /// Where the server is.
        head: Seq,
    },
    /// The server has more than a push expected, or tells by itself that it is at `head`.
    Behind {
        /// Where the server is.
        head: Seq,
    },
    /// Events of the server's, after `after`.
    Pulled {
        /// What they come after.
        after: Seq,
        /// The events, in order.
        entries: Vec<Entry<E>>,
    },
    /// Nothing came for too long.
    Retry,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<E> {
    /// Keep this before anything else is done: the confirmed events that are new, and all that is
    /// pending.
    Keep {
        /// Events that were confirmed, behind those kept before.
        confirmed: Vec<Entry<E>>,
        /// All that is pending now.
        pending: Vec<Entry<E>>,
    },
    /// Ask the server to append.
    Push {
        /// Where it has to be.
        expected: Seq,
        /// What to append.
        entries: Vec<Entry<E>>,
    },
    /// Ask the server for what comes after this.
    Pull {
        /// After what.
        after: Seq,
    },
}

/// A local copy of a stream.
#[derive(Debug, Clone)]
pub struct Replica<E> {
    writer: String,
    /// How many events were written here.
    written: u64,
    confirmed: Vec<Entry<E>>,
    pending: VecDeque<Entry<E>>,
    /// Where the server is known to be.
    known: Seq,
    connected: bool,
    /// The head that the push under way expects.
    pushing: Option<Seq>,
    pulling: bool,
}

impl<E: Rebase> Replica<E> {
    /// A replica of a stream that nothing is known of. `writer` is no other replica's name.
    #[must_use]
    pub fn new(writer: impl Into<String>) -> Self {
        Self::restored(writer, Vec::new(), Vec::new(), 0)
    }

    /// A replica as it was kept. `written` is the largest number that was ever given to an event
    /// written here, also of those that were dropped since.
    #[must_use]
    pub fn restored(
        writer: impl Into<String>,
        confirmed: Vec<Entry<E>>,
        pending: Vec<Entry<E>>,
        written: u64,
    ) -> Self {
        let writer = writer.into();
        let own = confirmed.iter().chain(&pending);
        let own = own.filter(|entry| entry.id.writer == writer);
        let written = own
            .map(|entry| entry.id.number)
            .max()
            .unwrap_or(0)
            .max(written);
        Self {
            known: head_of(&confirmed),
            writer,
            written,
            confirmed,
            pending: pending.into(),
            connected: false,
            pushing: None,
            pulling: false,
        }
    }

    /// What the server has confirmed.
    #[must_use]
    pub fn confirmed(&self) -> &[Entry<E>] {
        &self.confirmed
    }

    /// What is only here so far, in order.
    pub fn pending(&self) -> impl Iterator<Item = &Entry<E>> {
        self.pending.iter()
    }

    /// Everything, as it is seen here.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        let all = self.confirmed.iter().chain(&self.pending);
        all.map(|entry| &entry.event)
    }

    /// Up to where the server has confirmed.
    #[must_use]
    pub fn head(&self) -> Seq {
        head_of(&self.confirmed)
    }

    /// How many events were written here: for [`Replica::restored`].
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes something in, and says what is to be done, in order.
    pub fn take(&mut self, input: Input<E>) -> Vec<Effect<E>> {
        let mut effects = Vec::new();
        match input {
            Input::Write(event) => {
                self.written += 1;
                let id = EventId {
                    writer: self.writer.clone(),
                    number: self.written,
                };
                self.pending.push_back(Entry { id, event });
                effects.push(self.keep(Vec::new()));
            }
            Input::Connected => self.connected = true,
            Input::Disconnected => {
                self.connected = false;
                self.pushing = None;
                self.pulling = false;
            }
            Input::Accepted { expected, head } => {
                self.learn(head);
                if self.pushing == Some(expected) {
                    self.pushing = None;
                }
            }
            Input::Behind { head } => {
                self.learn(head);
                self.pushing = None;
            }
            Input::Pulled { after, entries } => {
                self.pulling = false;
                effects.extend(self.pulled(after, entries));
            }
            Input::Retry => {
                self.pushing = None;
                self.pulling = false;
                // What is not known is asked for, also where nothing seems to be missing.
                if self.connected && self.pending.is_empty() {
                    self.pulling = true;
                    effects.push(Effect::Pull { after: self.head() });
                }
            }
        }
        effects.extend(self.next());
        effects
    }

    /// Events of the server's. What is known already is passed over; a gap is asked for again.
    fn pulled(&mut self, after: Seq, entries: Vec<Entry<E>>) -> Option<Effect<E>> {
        let head = self.head();
        if after > head {
            self.learn(after);
            return None;
        }
        let known = usize::try_from(head.get() - after.get()).unwrap_or(usize::MAX);
        let new: Vec<Entry<E>> = entries.into_iter().skip(known).collect();
        if new.is_empty() {
            return None;
        }
        self.pending
            .retain(|pending| new.iter().all(|entry| entry.id != pending.id));
        let upstream: Vec<E> = new
            .iter()
            .filter(|entry| entry.id.writer != self.writer)
            .map(|entry| entry.event.clone())
            .collect();
        if !upstream.is_empty() {
            let pending = std::mem::take(&mut self.pending).into_iter();
            let rebased = pending.filter_map(|entry| {
                let event = entry.event.rebase(&upstream)?;
                Some(Entry {
                    id: entry.id,
                    event,
                })
            });
            self.pending = rebased.collect();
        }
        self.confirmed.extend(new.iter().cloned());
        self.learn(self.head());
        // A push that expected less than this is settled: what it brought is here, or was refused.
        if self.pushing.is_some_and(|expected| expected < self.head()) {
            self.pushing = None;
        }
        Some(self.keep(new))
    }

    /// Asks for what is needed next: first what is missing, then to push what is pending.
    fn next(&mut self) -> Option<Effect<E>> {
        if !self.connected || self.pulling {
            return None;
        }
        if self.known > self.head() {
            self.pulling = true;
            return Some(Effect::Pull { after: self.head() });
        }
        if self.pushing.is_some() || self.pending.is_empty() {
            return None;
        }
        self.pushing = Some(self.head());
        Some(Effect::Push {
            expected: self.head(),
            entries: self.pending.iter().cloned().collect(),
        })
    }

    fn learn(&mut self, head: Seq) {
        self.known = self.known.max(head);
    }

    fn keep(&self, confirmed: Vec<Entry<E>>) -> Effect<E> {
        Effect::Keep {
            confirmed,
            pending: self.pending.iter().cloned().collect(),
        }
    }
}

fn head_of<E>(confirmed: &[Entry<E>]) -> Seq {
    Seq::new(confirmed.len() as u64)
}
