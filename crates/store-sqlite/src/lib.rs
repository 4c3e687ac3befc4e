//! Streams of events on SQLite, in a data folder that one process owns.
//!
//! [`DataFolder::own`] takes the folder, [`SqliteStore::open`] opens the database in it. An append is
//! written to a journal with one call of the system and kept in memory; a thread puts what came
//! meanwhile into the database in one transaction (group commit), a moment later. Readers read
//! beside it, and find what is not in the database yet in memory.
//!
//! Invariants:
//! - A database that is damaged, newer than this Ward or not Ward's is refused with a sentence and
//!   left byte for byte as it was.
//! - An append is in the journal before its appender is told: it survives the death of this process
//!   at any moment. It reaches the disk itself a little later, so that a loss of power can take the
//!   last moments, but never leaves half of something.
//! - The database is a prefix of what was appended, the journal goes on from there, and both
//!   together are everything.
//! - There is no second way to write: no other connection of this crate is opened for writing.
//! - Whoever appends or looks up one event may do that on their own thread, in the time it takes to
//!   write to memory. What waits for the disk is done by threads of the store.

#![forbid(unsafe_code)]

mod desk;
mod error;
mod folder;
mod followers;
mod found;
mod journal;
mod json;
mod known;
mod pad;
mod readers;
mod rows;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::{Append, Event, Json, Seq, Store, StoreError, StreamName};

use found::Found;

pub use error::OpenError;
pub use folder::DataFolder;

/// The database's file in the data folder.
const FILE: &str = "ward.db";

/// Streams in a SQLite database. Dropping it ends the writer after what was handed to it.
#[derive(Debug)]
pub struct SqliteStore {
    // The order is the order of the end: the writer first, the owner's lock last.
    writer: writer::Writer,
    readers: readers::Readers,
    followers: Arc<followers::Followers>,
    path: PathBuf,
    _folder: DataFolder,
}

/// Whether a store was ever made in this folder.
#[must_use]
pub fn is_in(folder: &Path) -> bool {
    folder.join(FILE).exists()
}

impl SqliteStore {
    /// Opens the database of a folder, and makes it where there is none.
    pub fn open(folder: DataFolder) -> Result<Self, OpenError> {
        let path = folder.path().join(FILE);
        let connection = schema::open(&path)?;
        let lookup = readers::connect(&path).map_err(|why| OpenError::Sqlite {
            path: path.clone(),
            why,
        })?;
        let followers = Arc::new(followers::Followers::default());
        let told = Arc::clone(&followers);
        Ok(Self {
            writer: writer::Writer::start(connection, lookup, folder.path(), told)?,
            followers,
            readers: readers::Readers::new(path.clone()),
            path,
            _folder: folder,
        })
    }

    /// The database's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn find<T: Found>(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        // First what is in memory, then the database: what is put there in between is found twice.
        let (lately, head) = self.writer.lately(stream);
        if head.is_some_and(|head| head <= after) {
            return Ok(Vec::new());
        }
        let mut events = match lately.first() {
            Some(first) if first <= after.next() => Vec::new(),
            Some(_) | None => self.readers.read(stream.clone(), after, limit).await?,
        };
        join(&mut events, &lately, after, limit)?;
        Ok(events)
    }
}

impl Store for SqliteStore {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Seq>, StoreError> {
        self.writer.append(batch).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.find(stream, after, limit).await
    }

    async fn read_texts(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Event, Json)>, StoreError> {
        self.find(stream, after, limit).await
    }

    async fn tail(&self, stream: &StreamName, limit: usize) -> Result<Vec<Event>, StoreError> {
        let (lately, _) = self.writer.lately(stream);
        let mut events = Vec::new();
        let mut after = Seq::START;
        match lately.first() {
            Some(first) if lately.len() >= limit => {
                let passed = first.get() + (lately.len() - limit) as u64;
                after = Seq::new(passed.saturating_sub(1));
            }
            Some(_) | None => events = self.readers.tail(stream.clone(), limit).await?,
        }
        join(&mut events, &lately, after, usize::MAX)?;
        events.drain(..events.len().saturating_sub(limit));
        Ok(events)
    }

    async fn head(&self, stream: &StreamName) -> Result<Seq, StoreError> {
        self.writer.head(stream)
    }

    async fn beyond(&self, stream: &StreamName, after: Seq) -> Result<Seq, StoreError> {
        // First in line, then a look: what is appended in between is not missed.
        let mut heads = self.followers.follow(stream);
        let head = self.writer.head(stream)?;
        if head > after {
            return Ok(head);
        }
        match heads.wait_for(|head| *head > after).await {
            Ok(head) => Ok(*head),
            Err(_) => Err(StoreError::Closed),
        }
    }

    async fn remove(&self, streams: Vec<StreamName>) -> Result<(), StoreError> {
        self.writer.remove(streams).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        Ok(self.writer.count())
    }
}

/// Adds what is in memory to what was found in the database after `after`, as far as it joins on.
fn join<T: Found>(
    events: &mut Vec<T>,
    lately: &desk::Lately,
    after: Seq,
    limit: usize,
) -> Result<(), StoreError> {
    let mut last = events.last().map_or(after, Found::seq);
    for event in lately.after::<T>(last) {
        let event = event?;
        if events.len() >= limit || event.seq() != last.next() {
            break;
        }
        last = event.seq();
        events.push(event);
    }
    Ok(())
}
