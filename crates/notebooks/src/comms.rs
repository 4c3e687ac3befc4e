//! Messages between a kernel and whoever shows its widgets, on their way through Ward. They are never
//! kept: to those who follow the notebook they are told as they pass; to a runtime they wait, within
//! limits, until it says that it has them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notebook::{BadComm, Comm, MAX_COMM, RuntimeSession, SessionId, Unkept};
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio::sync::{broadcast, watch};

use crate::book::{Book, lock};
use crate::wire::{NumberedComm, PostComms, TakenComms, ToldComm, ToldComms};

/// How many lots wait for one who is slow to hear them. Each has at most [`MAX_COMM`] bytes.
const LOTS: usize = 16;
/// How many messages of one lot.
const MAX_MESSAGES: usize = 1_024;
/// How many messages wait for a runtime, and how many bytes of them.
const MAX_WAITING: usize = 256;
const MAX_BYTES: usize = 4 << 20;
/// How long a runtime that asks for messages is kept waiting for the first.
const PATIENCE: Duration = Duration::from_secs(20);

/// What passes in one notebook.
pub(crate) struct Comms {
    told: broadcast::Sender<Arc<ToldComms>>,
    lines: Mutex<HashMap<SessionId, Line>>,
    /// Told when a line changes.
    moved: watch::Sender<u64>,
}

impl Default for Comms {
    fn default() -> Self {
        Self {
            told: broadcast::Sender::new(LOTS),
            lines: Mutex::default(),
            moved: watch::Sender::new(0),
        }
    }
}

/// What waits for one runtime session.
#[derive(Default)]
struct Line {
    /// The number of the last that was put here.
    last: u64,
    /// The number of the last that the runtime has.
    taken: u64,
    waiting: VecDeque<(u64, Comm)>,
    bytes: usize,
}

impl Line {
    fn put(&mut self, comm: Comm) -> Option<u64> {
        let size = comm.size();
        if self.waiting.len() >= MAX_WAITING || self.bytes + size > MAX_BYTES {
            return None;
        }
        self.last += 1;
        self.bytes += size;
        self.waiting.push_back((self.last, comm));
        Some(self.last)
    }

    fn remove(&mut self, gone: impl Fn(u64) -> bool) {
        self.waiting.retain(|(number, _)| !gone(*number));
        self.bytes = self.waiting.iter().map(|(_, comm)| comm.size()).sum();
    }

    /// The first that wait, as many as go at once.
    fn first(&self) -> Vec<NumberedComm> {
        let mut bytes = 0;
        let fit = self.waiting.iter().take_while(|(_, comm)| {
            bytes += comm.size();
            bytes <= MAX_COMM
        });
        let numbered = fit.map(|(number, message)| NumberedComm {
            number: *number,
            message: message.clone(),
        });
        numbered.collect()
    }
}

/// A message that is on its way to a runtime. Dropped, it is not sent where it was not yet.
struct OnItsWay<'a, S: Store> {
    book: &'a Book<S>,
    session: &'a SessionId,
    number: u64,
}

impl<S: Store> Drop for OnItsWay<'_, S> {
    fn drop(&mut self) {
        if let Some(line) = lock(&self.book.comms.lines).get_mut(self.session) {
            line.remove(|number| number == self.number);
        }
    }
}

impl<S: Store> Book<S> {
    /// Told of what runtimes say over their comms.
    #[must_use]
    pub fn comms(&self) -> broadcast::Receiver<Arc<ToldComms>> {
        self.comms.told.subscribe()
    }

    /// Tells whoever follows what a runtime says.
    pub(crate) fn tell_comms(&self, session: &SessionId, said: PostComms) -> Result<(), Failure> {
        let too_many = said.messages.len() > MAX_MESSAGES;
        let mut bytes = 0;
        for message in &said.messages {
            bytes += message.check().map_err(|bad| refused(&bad))?;
        }
        if too_many || bytes > MAX_COMM {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                format!(
                    "At most {MAX_MESSAGES} messages of comms go at once, and {MAX_COMM} bytes."
                ),
            ));
        }
        let told = |message| ToldComm {
            session_id: session.clone(),
            message,
        };
        // Nobody may be listening.
        let _ = self.comms.told.send(Arc::new(ToldComms {
            messages: said.messages.into_iter().map(told).collect(),
            dropped: said.dropped,
        }));
        Ok(())
    }

    /// Gives a message to a runtime, and waits until it has it.
    pub(crate) async fn give_comm(&self, session: &SessionId, comm: Comm) -> Result<(), Failure> {
        let mut heads = self.heads();
        let mut moved = self.comms.moved.subscribe();
        let number = {
            let mut lines = lock(&self.comms.lines);
            let line = lines.entry(session.clone()).or_default();
            line.put(comm)
        };
        let Some(number) = number else {
            return Err(Failure::new(
                ErrorKind::Busy,
                "The runtime does not keep up with the messages to its widgets. Try again.",
            ));
        };
        self.comms.moved.send_modify(|moves| *moves += 1);
        let on_its_way = OnItsWay {
            book: self,
            session,
            number,
        };
        loop {
            heads.borrow_and_update();
            moved.borrow_and_update();
            let taken = lock(&self.comms.lines).get(session).map(|line| line.taken);
            if taken.is_some_and(|taken| taken >= number) {
                return Ok(());
            }
            if !self.look(|notebook| {
                notebook
                    .session(session)
                    .is_some_and(RuntimeSession::is_active)
            }) {
                break;
            }
            tokio::select! {
                changed = heads.changed() => if changed.is_err() { break },
                changed = moved.changed() => if changed.is_err() { break },
            }
        }
        drop(on_its_way);
        Err(Failure::new(
            ErrorKind::RuntimeLost,
            "The runtime ended before it had the message.",
        ))
    }

    /// What waits for a runtime that has all up to `after`: at once where something does, else when
    /// it comes, or nothing after a while.
    pub(crate) async fn take_comms(&self, session: &SessionId, after: u64) -> TakenComms {
        let mut moved = self.comms.moved.subscribe();
        {
            let mut lines = lock(&self.comms.lines);
            let line = lines.entry(session.clone()).or_default();
            line.taken = line.taken.max(after.min(line.last));
            line.remove(|number| number <= after);
        }
        self.comms.moved.send_modify(|moves| *moves += 1);
        let first = async {
            loop {
                moved.borrow_and_update();
                let first = match lock(&self.comms.lines).get(session) {
                    Some(line) => line.first(),
                    // The session is over.
                    None => return Vec::new(),
                };
                if !first.is_empty() || moved.changed().await.is_err() {
                    return first;
                }
            }
        };
        let messages = tokio::time::timeout(PATIENCE, first).await;
        TakenComms {
            messages: messages.unwrap_or_default(),
        }
    }

    /// Lets go of what waits for sessions that are over.
    pub(crate) fn tidy_comms(&self, over: &[SessionId]) {
        lock(&self.comms.lines).retain(|session, _| !over.contains(session));
        self.comms.moved.send_modify(|moves| *moves += 1);
    }
}

pub(crate) fn refused(bad: &BadComm) -> Failure {
    let kind = match bad {
        BadComm::TooLarge(_) | BadComm::Unkept(Unkept::Deep) => ErrorKind::TooLarge,
        BadComm::Id | BadComm::Target | BadComm::Buffers | BadComm::Unkept(Unkept::Name) => {
            ErrorKind::InvalidParams
        }
    };
    Failure::new(kind, bad.to_string()).with("field", "comm")
}

#[cfg(test)]
mod tests {
    use notebook::CommKind;
    use serde_json::json;

    use super::*;

    fn comm(length: usize) -> Comm {
        let data = json!({"x": "a".repeat(length)});
        Comm {
            kind: CommKind::Message,
            comm_id: "c".into(),
            target_name: None,
            data: data.as_object().cloned().unwrap_or_default(),
            metadata: serde_json::Map::new(),
            buffers: Vec::new(),
        }
    }

    #[test]
    fn what_waits_for_a_runtime_has_a_limit_and_goes_when_the_runtime_has_it() {
        let mut line = Line::default();
        while line.put(comm(MAX_COMM / 2)).is_some() {}
        assert!(
            line.bytes <= MAX_BYTES && line.waiting.len() == 7,
            "{}",
            line.waiting.len()
        );
        let first: Vec<u64> = line.first().iter().map(|one| one.number).collect();
        assert_eq!(first, [1], "two of them are more than go at once");
        line.remove(|number| number <= 6);
        assert_eq!(line.put(comm(1)), Some(8));
        let first: Vec<u64> = line.first().iter().map(|one| one.number).collect();
        assert_eq!(first, [7, 8]);
        line.remove(|_| true);
        assert_eq!(line.bytes, 0);
        for _ in 0..MAX_WAITING {
            assert!(line.put(comm(1)).is_some());
        }
        assert_eq!(line.put(comm(1)), None);
    }
}
