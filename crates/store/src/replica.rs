//! A local copy of a stream that can be written at once and offline.
//!
//! A [`Replica`] holds what the server has confirmed and, on top of it, what was written here and is
//! still pending. It is a state machine: [`Input`]s go in, [`Effect`]s come out, and it does nothing
//! by itself, so that whoever drives it brings the transport, the disk and the clock.
//!
//! Of what is confirmed it holds what the events amount to ([`Fold`]), not the events: however long
//! the stream is, a replica is as large as its state. It can begin with a state that somebody else
//! folded ([`Base`]), and can be given a later one ([`Replica::jump`]).
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

use crate::event::Millis;
use crate::seq::Seq;

/// Which event this is, whoever has it: its writer, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventId {
    /// The replica that it was written to; no two replicas have one name.
    pub writer: String,
    /// Counted from 1 there.
    pub number: u64,
}

/// An event with its id, and the server's word on it once it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<E> {
    /// Which one.
    pub id: EventId,
    /// What happened.
    pub event: E,
    /// Who wrote it, as the server knows; nothing while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// When the server took it; nothing while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
}

impl<E> Entry<E> {
    /// An event that no server has seen yet.
    #[must_use]
    pub fn pending(id: EventId, event: E) -> Self {
        Self {
            id,
            event,
            actor: None,
            at: None,
        }
    }
}

/// What becomes of a pending event when others came before it.
pub trait Rebase: Clone {
    /// The event as it is meant on top of these; [`None`] where it has lost its meaning.
    #[must_use]
    fn rebase(&self, upstream: &[Self]) -> Option<Self>;

    /// The same for all that is pending, in order, where one depends on those before it.
    #[must_use]
    fn rebase_all(pending: &[Self], upstream: &[Self]) -> Vec<Option<Self>> {
        let rebased = pending.iter().map(|event| event.rebase(upstream));
        rebased.collect()
    }
}

/// What events amount to.
pub trait Fold: Clone {
    /// Its events.
    type Event: Rebase;

    /// Takes the next event in. One that does not fit changes nothing.
    fn apply(&mut self, entry: &Entry<Self::Event>);

    /// Whether an event was taken in.
    fn has(&self, id: &EventId) -> bool;
}

/// What a stream amounts to up to a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base<F> {
    /// Up to where.
    pub seq: Seq,
    /// What it amounts to.
    pub state: F,
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
pub struct Replica<F: Fold> {
    writer: String,
    /// How many events were written here.
    written: u64,
    confirmed: Base<F>,
    pending: VecDeque<Entry<F::Event>>,
    /// What is confirmed with what is pending on top, where anything is.
    seen: Option<F>,
    /// Where the server is known to be.
    known: Seq,
    connected: bool,
    /// The head that the push under way expects.
    pushing: Option<Seq>,
    pulling: bool,
}

impl<F: Fold> Replica<F> {
    /// A replica of a stream that nothing is known of. `writer` is no other replica's name.
    #[must_use]
    pub fn new(writer: impl Into<String>) -> Self
    where
        F: Default,
    {
        Self::restored(writer, Base::default(), Vec::new(), 0)
    }

    /// A replica as it was kept. `written` is the largest number that was ever given to an event
    /// written here, also of those that were dropped since.
    #[must_use]
    pub fn restored(
        writer: impl Into<String>,
        confirmed: Base<F>,
        pending: Vec<Entry<F::Event>>,
        written: u64,
    ) -> Self {
        let writer = writer.into();
        let own = pending.iter().filter(|entry| entry.id.writer == writer);
        let own = own.map(|entry| entry.id.number).max().unwrap_or(0);
        // What was confirmed by a state that was kept, before the rest was, is no longer pending.
        let pending = pending.into_iter();
        let pending = pending.filter(|entry| !confirmed.state.has(&entry.id));
        let pending = pending.collect();
        let mut replica = Self {
            known: confirmed.seq,
            written: own.max(written),
            writer,
            confirmed,
            pending,
            seen: None,
            connected: false,
            pushing: None,
            pulling: false,
        };
        replica.settle();
        replica
    }

    /// What is seen here: what is confirmed, and what is pending on top of it.
    #[must_use]
    pub fn state(&self) -> &F {
        self.seen.as_ref().unwrap_or(&self.confirmed.state)
    }

    /// What the server has confirmed, to be kept so that a start does not need all events.
    #[must_use]
    pub fn confirmed(&self) -> &Base<F> {
        &self.confirmed
    }

    /// What is only here so far, in order.
    pub fn pending(&self) -> impl Iterator<Item = &Entry<F::Event>> {
        self.pending.iter()
    }

    /// Up to where the server has confirmed.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.confirmed.seq
    }

    /// How many events were written here: for [`Replica::restored`].
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes something in, and says what is to be done, in order.
    pub fn take(&mut self, input: Input<F::Event>) -> Vec<Effect<F::Event>> {
        let mut effects = Vec::new();
        match input {
            Input::Write(event) => {
                self.written += 1;
                let id = EventId {
                    writer: self.writer.clone(),
                    number: self.written,
                };
                let entry = Entry::pending(id, event);
                let confirmed = &self.confirmed.state;
                self.seen
                    .get_or_insert_with(|| confirmed.clone())
                    .apply(&entry);
                self.pending.push_back(entry);
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

    /// Goes on from a later state of the server's, where the events up to it are not to be had or
    /// are too many. One that is not later changes nothing. The state is to be kept, as
    /// [`Replica::confirmed`] has it then, before what is answered is done. What is pending is not
    /// rebased: nobody knows on what.
    pub fn jump(&mut self, base: Base<F>) -> Vec<Effect<F::Event>> {
        self.pulling = false;
        let mut effects = Vec::new();
        if base.seq > self.head() {
            self.confirmed = base;
            self.learn(self.head());
            let state = &self.confirmed.state;
            self.pending.retain(|entry| !state.has(&entry.id));
            self.pushing = None;
            self.settle();
            effects.push(self.keep(Vec::new()));
        }
        effects.extend(self.next());
        effects
    }

    /// Events of the server's. What is known already is passed over; a gap is asked for again.
    fn pulled(&mut self, after: Seq, entries: Vec<Entry<F::Event>>) -> Option<Effect<F::Event>> {
        let head = self.head();
        if after > head {
            self.learn(after);
            return None;
        }
        let known = usize::try_from(head.get() - after.get()).unwrap_or(usize::MAX);
        let new: Vec<Entry<F::Event>> = entries.into_iter().skip(known).collect();
        if new.is_empty() {
            return None;
        }
        self.pending
            .retain(|pending| new.iter().all(|entry| entry.id != pending.id));
        let upstream: Vec<F::Event> = new
            .iter()
            .filter(|entry| entry.id.writer != self.writer)
            .map(|entry| entry.event.clone())
            .collect();
        if !upstream.is_empty() && !self.pending.is_empty() {
            self.rebase(&upstream);
        }
        for entry in &new {
            self.confirmed.state.apply(entry);
            self.confirmed.seq = self.confirmed.seq.next();
        }
        self.settle();
        self.learn(self.head());
        // A push that expected less than this is settled: what it brought is here, or was refused.
        if self.pushing.is_some_and(|expected| expected < self.head()) {
            self.pushing = None;
        }
        Some(self.keep(new))
    }

    fn rebase(&mut self, upstream: &[F::Event]) {
        let (ids, events): (Vec<EventId>, Vec<F::Event>) = std::mem::take(&mut self.pending)
            .into_iter()
            .map(|entry| (entry.id, entry.event))
            .unzip();
        let rebased = F::Event::rebase_all(&events, upstream).into_iter();
        let rebased = ids.into_iter().zip(rebased);
        self.pending = rebased
            .filter_map(|(id, event)| Some(Entry::pending(id, event?)))
            .collect();
    }

    /// Works out anew what is seen here.
    fn settle(&mut self) {
        self.seen = (!self.pending.is_empty()).then(|| {
            let mut state = self.confirmed.state.clone();
            for entry in &self.pending {
                state.apply(entry);
            }
            state
        });
    }

    /// Asks for what is needed next: first what is missing, then to push what is pending.
    fn next(&mut self) -> Option<Effect<F::Event>> {
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

    fn keep(&self, confirmed: Vec<Entry<F::Event>>) -> Effect<F::Event> {
        Effect::Keep {
            confirmed,
            pending: self.pending.iter().cloned().collect(),
        }
    }
}
