//! Readers: connections that cannot write, beside the one that does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use store::{Event, Seq, StoreError, StreamName};

use crate::found::Found;
use crate::rows;
use crate::schema::plan_once;

/// How many connections are kept for the next readers.
const KEPT: usize = 4;

/// So many events are looked up without a thread of its own, which would take longer to wake.
const FEW: usize = 1;

/// Connections for reading; one is opened where none is free.
#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: PathBuf,
    free: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            free: Arc::default(),
        }
    }

    pub(crate) async fn read<T: Found>(
        &self,
        stream: StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let few = limit <= FEW;
        let read = move |connection: &Connection| rows::read(connection, &stream, after, limit);
        if few {
            return self.here(read);
        }
        self.with(read).await
    }

    pub(crate) async fn tail(
        &self,
        stream: StreamName,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.with(move |connection| rows::tail(connection, &stream, limit))
            .await
    }

    /// Does it at once.
    fn here<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let read = || {
            let connection = self.take()?;
            let result = work(&connection)?;
            self.put_back(connection);
            Ok(result)
        };
        read().map_err(|error: rusqlite::Error| StoreError::Failed(error.to_string()))
    }

    /// Does it on a thread that may block, with a connection of its own for as long.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.clone();
        match tokio::task::spawn_blocking(move || readers.here(work)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Closed),
        }
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(connection) = free {
            return Ok(connection);
        }
        connect(&self.path)
    }

    fn put_back(&self, connection: Connection) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(connection);
        }
    }
}

/// A connection that cannot write.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(Duration::from_secs(5))?;
    plan_once(&connection)?;
    Ok(connection)
}
