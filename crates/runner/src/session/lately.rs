//! The last events of a session, as they were written: whoever follows it closely is told from here,
//! and only who is further behind asks the store.
//!
//! It has a bound, and nobody is waited for: what a slow reader has not taken by then it finds in the
//! store.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::{Append, Seq};
use tokio::sync::watch;

use super::Session;

/// How many events are kept, and how many bytes of their data.
const EVENTS: usize = 256;
const BYTES: usize = 32 * 1024;
/// How many bytes are handed out at a time.
const PIECE: usize = 8 * 1024;

/// An event that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its number.
    pub seq: Seq,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// What is to be known about it, as JSON of one line.
    pub data: Arc<str>,
}

/// The last events, and who waits for the next.
#[derive(Debug)]
pub(crate) struct Lately {
    kept: Mutex<Kept>,
    head: watch::Sender<Seq>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Written>,
    bytes: usize,
    /// The last that was written, as far as is known here.
    head: Option<Seq>,
}

/// What is to be kept of an append, once it is written.
pub(crate) struct Fresh(Vec<(Cow<'static, str>, Arc<str>)>);

impl Fresh {
    pub(crate) fn of(append: &Append) -> Self {
        let events = append.events.iter();
        let fresh = events.map(|event| (event.kind.clone(), event.data.text()));
        Self(fresh.collect())
    }
}

impl Lately {
    pub(crate) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            head: watch::Sender::new(Seq::START),
        }
    }

    /// Events were written, and `head` is the number of the last of them.
    pub(crate) fn written(&self, fresh: Fresh, head: Seq) {
        if fresh.0.is_empty() {
            return;
        }
        self.kept().add(fresh, head);
        self.head.send_modify(|known| *known = head.max(*known));
    }

    /// Nothing runs: where nobody follows either, nothing is kept.
    pub(crate) fn rest(&self) {
        if self.head.receiver_count() == 0 {
            self.kept().clear();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, fresh: Fresh, head: Seq) {
        let before = head.get().saturating_sub(fresh.0.len() as u64);
        // Two who write at once may come here in the other order. Nothing is kept with a hole in it:
        // the store has no hole.
        match self.head {
            Some(known) if known >= head => return,
            Some(known) if known.get() == before => {}
            Some(_) | None => self.clear(),
        }
        for (seq, (kind, data)) in (before + 1..).map(Seq::new).zip(fresh.0) {
            self.bytes += data.len();
            self.events.push_back(Written { seq, kind, data });
        }
        self.head = Some(head);
        while self.bytes > BYTES || self.events.len() > EVENTS {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.data.len();
        }
    }

    fn clear(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
    }

    fn after(&self, after: Seq) -> Option<Vec<Written>> {
        let head = self.head?;
        let first = head.get() - self.events.len() as u64;
        let known = after.get().checked_sub(first)?;
        if after > head {
            return None;
        }
        let mut room = PIECE;
        let fits = |event: &&Written| {
            let fits = room > 0;
            room = room.saturating_sub(event.data.len());
            fits
        };
        let new = self.events.iter().skip(known as usize);
        Some(new.take_while(fits).cloned().collect())
    }
}

/// One who follows a session.
#[derive(Debug)]
pub struct Listener {
    session: Arc<Session>,
    head: watch::Receiver<Seq>,
}

impl Listener {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        Self {
            session: Arc::clone(session),
            head: session.lately.head.subscribe(),
        }
    }

    /// The events after this one, as many as are handed out at a time; an empty list where it is the
    /// last. None where only the store knows.
    pub fn after(&mut self, after: Seq) -> Option<Vec<Written>> {
        // First in line, then a look: what is written in between is not missed.
        self.head.mark_unchanged();
        self.session.lately.kept().after(after)
    }

    /// Waits until more was written than at the last look.
    pub async fn more(&mut self) {
        // The sender lives in the session.
        let _ = self.head.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let lately = &self.session.lately;
        if lately.head.receiver_count() <= 1 && !self.session.runs() {
            lately.kept().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{Expected, Json, Millis, NewEvent, StreamName};

    use super::*;

    fn fresh(data: &[&str]) -> Fresh {
        let new = |data: &&str| NewEvent {
            kind: "text.delta".into(),
            at: Millis(0),
            data: Json::from_text(*data),
        };
        Fresh::of(&Append {
            stream: StreamName::new("session/1").unwrap(),
            expected: Expected::Any,
            events: data.iter().map(new).collect(),
        })
    }

    fn numbers(lately: &Lately, after: u64) -> Option<Vec<u64>> {
        let events = lately.kept().after(Seq::new(after))?;
        Some(events.iter().map(|event| event.seq.get()).collect())
    }

    #[test]
    fn what_is_at_hand_is_told_from_memory_and_the_rest_is_the_stores() {
        let lately = Lately::new();
        assert_eq!(numbers(&lately, 0), None);
        lately.written(fresh(&["1", "2"]), Seq::new(12));
        lately.written(fresh(&["3"]), Seq::new(13));
        assert_eq!(numbers(&lately, 9), None);
        assert_eq!(numbers(&lately, 10), Some(vec![11, 12, 13]));
        assert_eq!(numbers(&lately, 12), Some(vec![13]));
        assert_eq!(numbers(&lately, 13), Some(vec![]));
        assert_eq!(numbers(&lately, 14), None);
    }

    #[test]
    fn what_comes_in_another_order_leaves_no_hole() {
        let lately = Lately::new();
        lately.written(fresh(&["1"]), Seq::new(1));
        lately.written(fresh(&["3"]), Seq::new(3));
        lately.written(fresh(&["2"]), Seq::new(2));
        assert_eq!(numbers(&lately, 1), None);
        assert_eq!(numbers(&lately, 2), Some(vec![3]));
        assert_eq!(*lately.head.subscribe().borrow(), Seq::new(3));
    }

    #[test]
    fn only_so_much_is_kept_and_handed_out_at_a_time() {
        let lately = Lately::new();
        let long = "x".repeat(5000);
        for seq in 1..=10 {
            lately.written(fresh(&[&long]), Seq::new(seq));
        }
        assert_eq!(numbers(&lately, 3), None);
        assert_eq!(numbers(&lately, 4), Some(vec![5, 6]));
        lately.written(fresh(&[&"x".repeat(BYTES + 1)]), Seq::new(11));
        assert_eq!(
            (numbers(&lately, 10), numbers(&lately, 11)),
            (None, Some(vec![]))
        );
    }
}
