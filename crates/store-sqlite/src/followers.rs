//! Who waits for the next event of which stream.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::{Seq, StreamName};
use tokio::sync::watch;

/// How many streams are kept before those are looked for that nobody waits for any more.
const MANY: usize = 1024;

/// The streams that somebody waits for. One that nobody waits for any more is forgotten when its
/// next event comes, or when there are many.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<HashMap<StreamName, watch::Sender<Seq>>>);

impl Followers {
    /// The stream's head, from now on: [`Seq::START`] until something is appended.
    pub(crate) fn follow(&self, stream: &StreamName) -> watch::Receiver<Seq> {
        let mut streams = self.streams();
        match streams.get(stream) {
            Some(head) => head.subscribe(),
            None => {
                if streams.len() >= MANY {
                    streams.retain(|_, head| head.receiver_count() > 0);
                }
                let (head, heads) = watch::channel(Seq::START);
                streams.insert(stream.clone(), head);
                heads
            }
        }
    }

    /// Tells those who wait where these streams are now.
    pub(crate) fn tell<'a>(&self, heads: impl Iterator<Item = (&'a StreamName, Seq)>) {
        let mut streams = self.streams();
        if streams.is_empty() {
            return;
        }
        for (stream, now) in heads {
            if let Some(head) = streams.get(stream)
                && head.send(now).is_err()
            {
                streams.remove(stream);
            }
        }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamName, watch::Sender<Seq>>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
