//! The ledger: the record of requests, decisions, approvals and outcomes that nobody can quietly
//! change.
//!
//! Its entries are a stream of the store, each with a hash over itself and over the hash of the one
//! before. Where the chain ends is also kept outside the store, in a file of its own ([`Head`]), so
//! that whoever can write to the database alone can neither cut off its end nor write it anew.
//!
//! Invariants:
//! - When [`Ledger::write`] returns, the entries are written, together with what was to be written
//!   beside them, or nothing is.
//! - Secrets are taken out before anything is hashed or written, whoever wrote the entry.
//! - What does not fit when a ledger is opened is never healed: an entry says so from then on.

mod chain;
mod entry;
mod export;
mod head;
mod open;
mod verify;
mod walk;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::{Event, Seq, Store, StoreError, StreamName};

pub use entry::{Data, Entry, EntryKind, NewEntry};
pub use export::Export;
pub use head::Head;
pub use open::{LedgerError, Opened, Standing, Unfinished};
pub use verify::{Problem, ProblemKind, Verdict};
pub use write::Written;

use crate::redact::Redactor;

/// The record. Cloning it is cheap and makes no second record.
pub struct Ledger<S: Store> {
    shared: Arc<Shared<S>>,
}

/// What all clones share.
struct Shared<S: Store> {
    store: Arc<S>,
    stream: StreamName,
    redactor: Arc<Redactor>,
    file: head::HeadFile,
    /// Where the chain is, and what has begun and not ended.
    state: Mutex<chain::State>,
    /// Who waits to be written.
    waiting: Mutex<write::Waiting>,
    /// The round under way; whoever holds the lock leads.
    turn: tokio::sync::Mutex<Option<write::Round>>,
}

impl<S: Store> Ledger<S> {
    /// The entries after `after`, in order, at most `limit`.
    pub async fn read(&self, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let shared = &self.shared;
        entries(shared.store.read(&shared.stream, after, limit).await?)
    }

    /// The last entries, in order, at most `limit`.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let shared = &self.shared;
        entries(shared.store.tail(&shared.stream, limit).await?)
    }

    /// Waits for an entry after `after`, and answers the last one's place.
    pub async fn beyond(&self, after: Seq) -> Result<Seq, StoreError> {
        let shared = &self.shared;
        shared.store.beyond(&shared.stream, after).await
    }

    /// The last entry that was written.
    #[must_use]
    pub fn head(&self) -> Head {
        lock(&self.shared.state).head().clone()
    }
}

impl<S: Store> Clone for Ledger<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Store> std::fmt::Debug for Ledger<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

fn entries(events: Vec<Event>) -> Result<Vec<Entry>, StoreError> {
    events
        .into_iter()
        .map(|event| {
            let seq = event.seq;
            Entry::of(event).map_err(|why| {
                StoreError::Failed(format!(
                    "entry {seq} of the ledger is not as it was written ({why}); `ward ledger verify` tells more"
                ))
            })
        })
        .collect()
}

/// Nothing panics while one of these is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
