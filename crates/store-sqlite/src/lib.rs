//! Streams of events on SQLite, in a data folder that one process owns.
//!
//! [`DataFolder::own`] takes the folder, [`SqliteStore::open`] opens the database in it. One
//! connection writes, and all that waits for it goes into one transaction (group commit); readers
//! read beside it.
//!
//! Invariants:
//! - A database that is damaged, newer than this Ward or not Ward's is refused with a sentence and
//!   left byte for byte as it was.
//! - An append is in the write-ahead log before its appender is told: it survives the death of this
//!   process at any moment. It reaches the disk itself a little later (`synchronous = NORMAL`), so
//!   that a loss of power can take the last moments, but never leaves half of something.
//! - There is no second way to write: no other connection of this crate is opened for writing.
//! - Whoever appends or looks up one event may do that on their own thread, in the time it takes to
//!   write to memory. What waits for the disk is done by threads of the store.

#![forbid(unsafe_code)]

mod error;
mod folder;
mod followers;
mod readers;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::{Append, Event, Seq, Store, StoreError, StreamName};

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

impl SqliteStore {
    /// Opens the database of a folder, and makes it where there is none.
    pub fn open(folder: DataFolder) -> Result<Self, OpenError> {
        let path = folder.path().join(FILE);
        let connection = schema::open(&path)?;
        let followers = Arc::new(followers::Followers::default());
        Ok(Self {
            writer: writer::Writer::start(connection, Arc::clone(&followers))?,
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
        self.readers.read(stream.clone(), after, limit).await
    }

    async fn tail(&self, stream: &StreamName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.readers.tail(stream.clone(), limit).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Seq, StoreError> {
        match self.writer.head(stream) {
            Some(head) => head,
            None => self.readers.head(stream.clone()).await,
        }
    }

    async fn beyond(&self, stream: &StreamName, after: Seq) -> Result<Seq, StoreError> {
        // First in line, then a look: what is appended in between is not missed.
        let mut heads = self.followers.follow(stream);
        let head = self.readers.head(stream.clone()).await?;
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
        self.readers.count().await
    }
}
