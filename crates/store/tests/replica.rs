//! Replicas under random schedules: messages are lost, doubled and reordered, connections break,
//! replicas crash in mid-step. In the end all have the same, and nothing is lost or doubled.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

use std::collections::HashMap;

use store::Seq;
use store::replica::{Base, Effect, Entry, EventId, Fold, Input, Rebase, Replica};

/// An event that remembers what it was written for, so that a rebase can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Note {
    Add(u64),
    /// Loses its meaning once anybody has wiped.
    Mark(u64),
    Wipe,
}

impl Rebase for Note {
    fn rebase(&self, upstream: &[Self]) -> Option<Self> {
        match self {
            Self::Mark(_) if upstream.contains(&Self::Wipe) => None,
            other => Some(other.clone()),
        }
    }
}

/// A state that forgets nothing, so that everything can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
struct Log(Vec<Entry<Note>>);

impl Fold for Log {
    type Event = Note;

    fn apply(&mut self, entry: &Entry<Note>) {
        self.0.push(entry.clone());
    }

    fn has(&self, id: &EventId) -> bool {
        self.0.iter().any(|entry| entry.id == *id)
    }
}

/// Numbers that look random and are the same again for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// The one who orders.
#[derive(Default)]
struct Server {
    log: Vec<Entry<Note>>,
}

#[derive(Debug, Clone)]
enum Asked {
    Push(Seq, Vec<Entry<Note>>),
    Pull(Seq),
}

/// What comes back: what a replica takes, or a state to go on from.
#[derive(Debug, Clone)]
enum Answered {
    Input(Input<Note>),
    Base(Base<Log>),
}

impl Server {
    fn head(&self) -> Seq {
        Seq::new(self.log.len() as u64)
    }

    /// Sometimes only a state is to be had, as where the events before it are gone.
    fn answer(&mut self, asked: Asked, only_state: bool) -> Answered {
        Answered::Input(match asked {
            Asked::Push(expected, entries) if expected == self.head() => {
                self.log.extend(entries);
                Input::Accepted {
                    expected,
                    head: self.head(),
                }
            }
            Asked::Push(..) => Input::Behind { head: self.head() },
            Asked::Pull(_) if only_state => {
                return Answered::Base(Base {
                    seq: self.head(),
                    state: Log(self.log.clone()),
                });
            }
            Asked::Pull(after) => {
                let from = usize::try_from(after.get()).unwrap();
                // A page at a time, as a server would.
                let page = self.log.iter().skip(from).take(3).cloned();
                Input::Pulled {
                    after,
                    entries: page.collect(),
                }
            }
        })
    }
}

impl From<Input<Note>> for Answered {
    fn from(input: Input<Note>) -> Self {
        Self::Input(input)
    }
}

/// A replica, its disk, and whether the network lets anything through.
struct Place {
    replica: Replica<Log>,
    disk: (Base<Log>, Vec<Entry<Note>>, u64),
    connected: bool,
}

struct World {
    dice: Dice,
    server: Server,
    places: Vec<Place>,
    to_server: Vec<(usize, Asked)>,
    to_place: Vec<(usize, Answered)>,
    written: HashMap<EventId, Note>,
    next: u64,
}

impl World {
    fn new(seed: u64, count: usize) -> Self {
        let place = |number: usize| Place {
            replica: Replica::new(format!("r{number}")),
            disk: (Base::default(), Vec::new(), 0),
            connected: false,
        };
        Self {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            server: Server::default(),
            places: (0..count).map(place).collect(),
            to_server: Vec::new(),
            to_place: Vec::new(),
            written: HashMap::new(),
            next: 0,
        }
    }

    /// Hands something to a replica, and does what it says; a crash may come between any two steps.
    fn give(&mut self, at: usize, input: impl Into<Answered>, may_crash: bool) {
        let place = &mut self.places[at];
        let effects = match input.into() {
            Answered::Input(input) => place.replica.take(input),
            Answered::Base(base) => {
                let effects = place.replica.jump(base);
                place.disk.0 = place.replica.confirmed().clone();
                effects
            }
        };
        for effect in effects {
            if may_crash && self.dice.roll(40) == 0 {
                self.crash(at);
                return;
            }
            let place = &mut self.places[at];
            match effect {
                Effect::Keep { confirmed, pending } => {
                    let kept = &mut place.disk.0;
                    kept.seq = Seq::new(kept.seq.get() + confirmed.len() as u64);
                    kept.state.0.extend(confirmed);
                    place.disk.1 = pending;
                    place.disk.2 = place.replica.written();
                    // What is kept counts as written.
                    let own = place.disk.1.iter();
                    let own = own.map(|entry| (entry.id.clone(), entry.event.clone()));
                    self.written.extend(own);
                }
                Effect::Push { expected, entries } if place.connected => {
                    self.to_server.push((at, Asked::Push(expected, entries)));
                }
                Effect::Pull { after } if place.connected => {
                    self.to_server.push((at, Asked::Pull(after)));
                }
                Effect::Push { .. } | Effect::Pull { .. } => {}
            }
        }
    }

    fn crash(&mut self, at: usize) {
        let place = &mut self.places[at];
        let (confirmed, pending, written) = place.disk.clone();
        place.replica = Replica::restored(format!("r{at}"), confirmed, pending, written);
        place.connected = false;
    }

    fn connect(&mut self, at: usize, connected: bool) {
        self.places[at].connected = connected;
        let input = match connected {
            true => Input::Connected,
            false => Input::Disconnected,
        };
        self.give(at, input, false);
    }

    /// One step of a hostile network.
    fn step(&mut self) {
        let at = self.dice.roll(self.places.len());
        match self.dice.roll(12) {
            0..=2 => {
                self.next += 1;
                let note = match self.dice.roll(6) {
                    0 => Note::Wipe,
                    1 => Note::Mark(self.next),
                    _ => Note::Add(self.next),
                };
                self.give(at, Input::Write(note), true);
            }
            3 => {
                let connected = self.places[at].connected;
                self.connect(at, !connected);
            }
            4 => self.give(at, Input::Retry, true),
            5..=7 => self.deliver_to_server(),
            8..=10 => self.deliver_to_place(),
            _ => {
                let head = self.server.head();
                self.to_place.push((at, Input::Behind { head }.into()));
            }
        }
    }

    fn deliver_to_server(&mut self) {
        if self.to_server.is_empty() {
            return;
        }
        let index = self.dice.roll(self.to_server.len());
        // Lost, doubled, or out of turn.
        let (at, asked) = match self.dice.roll(6) {
            0 => return drop(self.to_server.swap_remove(index)),
            1 => self.to_server[index].clone(),
            _ => self.to_server.swap_remove(index),
        };
        let only_state = self.dice.roll(6) == 0;
        let answer = self.server.answer(asked, only_state);
        self.to_place.push((at, answer));
    }

    fn deliver_to_place(&mut self) {
        if self.to_place.is_empty() {
            return;
        }
        let index = self.dice.roll(self.to_place.len());
        let (at, input) = match self.dice.roll(6) {
            0 => return drop(self.to_place.swap_remove(index)),
            1 => self.to_place[index].clone(),
            _ => self.to_place.swap_remove(index),
        };
        if self.places[at].connected {
            self.give(at, input, true);
        }
    }

    /// The network is well from now on: everything is said until nobody has anything to say.
    fn heal(&mut self) {
        self.to_server.clear();
        self.to_place.clear();
        for at in 0..self.places.len() {
            self.connect(at, false);
            self.connect(at, true);
            self.give(at, Input::Retry, false);
        }
        for _ in 0..10_000 {
            if let Some((at, asked)) =
                (!self.to_server.is_empty()).then(|| self.to_server.remove(0))
            {
                let answer = self.server.answer(asked, false);
                self.give(at, answer, false);
                // A server tells everybody when it has something new.
                let head = self.server.head();
                for other in 0..self.places.len() {
                    self.give(other, Input::Behind { head }, false);
                }
                continue;
            }
            if self.is_settled() {
                return;
            }
            for at in 0..self.places.len() {
                self.give(at, Input::Retry, false);
            }
        }
        panic!("somebody waits for ever");
    }

    fn is_settled(&self) -> bool {
        let settled = |place: &Place| {
            place.replica.pending().count() == 0 && place.replica.head() == self.server.head()
        };
        self.places.iter().all(settled)
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed, 2 + usize::try_from(seed % 4).unwrap());
    for _ in 0..300 {
        world.step();
        for place in &world.places {
            let Base { seq, state } = place.replica.confirmed();
            let confirmed = &state.0;
            assert_eq!(seq.get(), confirmed.len() as u64);
            assert_eq!(
                confirmed,
                &world.server.log[..confirmed.len()],
                "what is confirmed is what the server has"
            );
        }
    }
    world.heal();
    for place in &world.places {
        assert_eq!(place.replica.confirmed().state.0, world.server.log);
        assert_eq!(place.replica.state().0, world.server.log);
        assert_eq!(
            place.disk.0.state.0, world.server.log,
            "and so is what was kept"
        );
    }
    let mut seen = HashMap::new();
    for entry in &world.server.log {
        *seen.entry(entry.id.clone()).or_insert(0) += 1;
    }
    assert!(seen.values().all(|count| *count == 1), "nothing is doubled");
    // Whatever was kept is there, but for marks that lost their meaning.
    for (id, note) in &world.written {
        let lost = !seen.contains_key(id) && !matches!(note, Note::Mark(_));
        assert!(!lost, "{id:?} was lost");
    }
    // Each writer's events are in the order in which they were written.
    let mut last: HashMap<&str, u64> = HashMap::new();
    for entry in &world.server.log {
        let before = last.insert(&entry.id.writer, entry.id.number).unwrap_or(0);
        assert!(before < entry.id.number, "out of order: {:?}", entry.id);
    }
}

#[test]
fn all_replicas_converge_whatever_the_network_does() {
    for seed in 1..=2_000 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

fn events(replica: &Replica<Log>) -> Vec<Note> {
    let seen = replica.state().0.iter();
    seen.map(|entry| entry.event.clone()).collect()
}

fn entry(writer: &str, number: u64, event: Note) -> Entry<Note> {
    let writer = writer.to_owned();
    Entry::pending(EventId { writer, number }, event)
}

#[test]
fn what_is_written_offline_is_seen_at_once_and_rebased_on_what_came_before_it() {
    let mut replica: Replica<Log> = Replica::new("r0");
    replica.take(Input::Write(Note::Add(1)));
    replica.take(Input::Write(Note::Mark(2)));
    assert_eq!(events(&replica), [Note::Add(1), Note::Mark(2)]);
    let effects = replica.take(Input::Connected);
    assert!(
        matches!(&effects[..], [Effect::Push { expected, entries }] if *expected == Seq::START && entries.len() == 2)
    );
    // Another was first.
    let effects = replica.take(Input::Behind { head: Seq::new(1) });
    assert_eq!(effects, [Effect::Pull { after: Seq::START }]);
    let wipe = entry("r1", 1, Note::Wipe);
    let effects = replica.take(Input::Pulled {
        after: Seq::START,
        entries: vec![wipe.clone()],
    });
    let left = entry("r0", 1, Note::Add(1));
    assert_eq!(
        effects,
        [
            Effect::Keep {
                confirmed: vec![wipe],
                pending: vec![left.clone()],
            },
            Effect::Push {
                expected: Seq::new(1),
                entries: vec![left],
            },
        ]
    );
}
