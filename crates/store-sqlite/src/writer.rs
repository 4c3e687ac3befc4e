//! Who writes: every append goes to the desk at once, and a thread puts what lies there into the
//! database, all that came meanwhile in one transaction.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use store::{Append, Seq, StoreError, StreamName};
use tokio::sync::{Notify, oneshot};

use crate::desk::{Desk, Lately, Sheet};
use crate::error::OpenError;
use crate::followers::Followers;
use crate::journal::{Journal, Record};
use crate::known::Filter;
use crate::pad::FRONT;
use crate::rows::{self, Rows};

/// For how long it is waited for more.
const GATHER: Duration = Duration::from_millis(250);
/// With so much on the desk it is not waited any longer. In the journal it takes less, and what comes
/// until it is taken up fits beside it.
const MUCH: usize = FRONT;
/// With so much on the desk whoever appends waits.
const FULL: usize = 16 << 20;
/// How long until it is tried again where the database could not be written.
const AGAIN: Duration = Duration::from_secs(1);
/// A log of so many pages is tidied away, as SQLite would do it by itself.
const LONG: i32 = 1000;

type Answer = Result<Vec<Seq>, StoreError>;
/// Streams that are to go, and who is to be told.
type Removal = (Vec<StreamName>, oneshot::Sender<Result<(), StoreError>>);

/// The way to write. Dropping it waits until all is in the database.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told to the thread: there is something to do.
    work: Condvar,
    /// Told to those who wait to append: there is room again.
    room: Notify,
    followers: Arc<Followers>,
}

#[derive(Debug)]
struct State {
    desk: Desk,
    removals: Vec<Removal>,
    /// Why the database cannot be written at the moment.
    failing: Option<StoreError>,
    closed: bool,
}

impl Writer {
    /// Takes the connection that writes, puts what a Ward that was killed left in the journal into
    /// the database, and starts the thread.
    pub(crate) fn start(
        mut connection: Connection,
        lookup: Connection,
        folder: &Path,
        followers: Arc<Followers>,
    ) -> Result<Self, OpenError> {
        let path = connection.path().map(Into::into).unwrap_or_default();
        let sqlite = |why| OpenError::Sqlite { path, why };
        let (mut journal, found) = Journal::open(folder)?;
        let log = Log::of(&mut connection);
        let carried = log.and_then(|log| {
            carry_over(&mut connection, &found)?;
            Ok((log, rows::count(&connection)?))
        });
        let (log, count) = carried.map_err(sqlite)?;
        journal.clear().map_err(|why| OpenError::Folder {
            folder: folder.to_owned(),
            why,
        })?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                desk: Desk::new(journal, lookup, count),
                removals: Vec::new(),
                failing: None,
                closed: false,
            }),
            work: Condvar::new(),
            room: Notify::new(),
            followers,
        });
        let held = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || held.write_all(&mut connection, &log))
            .map_err(OpenError::Thread)?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Appends one batch; it is in the journal when this returns.
    pub(crate) async fn append(&self, batch: Vec<Append>) -> Answer {
        loop {
            // In line before the look, so that no room is missed.
            let room = self.shared.room.notified();
            {
                let mut state = self.shared.state();
                if state.desk.young().bytes() < FULL {
                    return self.shared.append(&mut state, batch);
                }
                if let Some(why) = &state.failing {
                    return Err(why.clone());
                }
            }
            room.await;
        }
    }

    /// Removes whole streams; they are gone when this returns.
    pub(crate) async fn remove(&self, streams: Vec<StreamName>) -> Result<(), StoreError> {
        let (told, answer) = oneshot::channel();
        self.shared.state().removals.push((streams, told));
        self.shared.work.notify_one();
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Where a stream is.
    pub(crate) fn head(&self, stream: &StreamName) -> Result<Seq, StoreError> {
        self.shared.state().desk.head(stream)
    }

    /// What is in memory of a stream, and its head where that is remembered.
    pub(crate) fn lately(&self, stream: &StreamName) -> (Lately, Option<Seq>) {
        self.shared.state().desk.lately(stream)
    }

    /// How many events were ever appended.
    pub(crate) fn count(&self) -> u64 {
        self.shared.state().desk.count()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // What a writer that panicked left is in the journal.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn append(&self, state: &mut State, batch: Vec<Append>) -> Answer {
        let before = state.desk.young().bytes();
        let placed = state.desk.append(batch)?;
        let now = state.desk.young().bytes();
        if (before == 0 && now > 0) || (before < MUCH && now >= MUCH) {
            self.work.notify_one();
        }
        let heads = placed.iter().map(|placed| (&placed.stream, placed.last()));
        self.followers.tell(heads);
        Ok(placed.iter().map(|placed| placed.last()).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: waits for something to do, and does it, to the end.
    fn write_all(&self, connection: &mut Connection, log: &Log) {
        let mut state = self.state();
        loop {
            state = self.wait(state, None, |state| {
                !state.closed && state.removals.is_empty() && state.desk.young().is_empty()
            });
            state = self.read_names(state, connection);
            state = self.wait(state, Some(GATHER), |state| {
                !state.closed && state.removals.is_empty() && state.desk.young().bytes() < MUCH
            });
            if !state.desk.young().is_empty() {
                state = self.put(state, connection);
            }
            // What could not be put there before Ward ends is not turned over: the journal keeps it.
            if !state.removals.is_empty() && state.failing.is_none() {
                state = self.remove(state, connection);
            }
            let ends = state.closed && (state.desk.young().is_empty() || state.failing.is_some());
            if ends {
                drop(state);
                log.tidy(connection, "TRUNCATE");
                return;
            }
            if log.is_long() {
                drop(state);
                log.tidy(connection, "PASSIVE");
                state = self.state();
            }
        }
    }

    /// Reads the names of a kind of streams, where they are wanted. Nothing is put into the database
    /// meanwhile.
    fn read_names<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        connection: &Connection,
    ) -> MutexGuard<'a, State> {
        let Some(kind) = state.desk.wanted().map(ToOwned::to_owned) else {
            return state;
        };
        drop(state);
        let names = Filter::read(connection, &kind);
        state = self.state();
        state.desk.names(&kind, names.map_err(failed).ok());
        state
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Option<Duration>,
        idle: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let idle = |state: &mut State| idle(state);
        match limit {
            None => self
                .work
                .wait_while(state, idle)
                .unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.work
                    .wait_timeout_while(state, limit, idle)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }

    /// Puts what is on the desk into the database.
    fn put<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        connection: &mut Connection,
    ) -> MutexGuard<'a, State> {
        let sheet = state.desk.turn();
        drop(state);
        let written = put(connection, &sheet);
        drop(self.settle(self.state(), connection, &sheet, written));
        // It is many small things to let go of; nobody has to wait for that.
        drop(sheet);
        self.state()
    }

    /// Removes streams, with nobody appending meanwhile: what is on the desk goes first.
    fn remove<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        connection: &mut Connection,
    ) -> MutexGuard<'a, State> {
        let removals = std::mem::take(&mut state.removals);
        let sheet = state.desk.turn();
        let written = put(connection, &sheet);
        let mut gone = Vec::with_capacity(removals.len());
        for (streams, told) in removals {
            let removed = match &written {
                Ok(()) => rows::remove(connection, &streams).map_err(failed),
                Err(error) => Err(StoreError::Failed(error.to_string())),
            };
            // Whoever asked may have gone.
            match removed {
                Ok(()) => {
                    state.desk.removed(&streams);
                    gone.push(told);
                }
                Err(error) => drop(told.send(Err(error))),
            }
        }
        let state = self.settle(state, connection, &sheet, written);
        // Only now is nothing of it in the journal, from where the next start would bring it back.
        for told in gone {
            let _ = told.send(Ok(()));
        }
        state
    }

    /// Ends a turn of the desk. While its sheet cannot be written, it is tried again and again; where
    /// Ward ends meanwhile, the journal keeps it for the next start.
    fn settle<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        connection: &mut Connection,
        sheet: &Sheet,
        mut written: rusqlite::Result<()>,
    ) -> MutexGuard<'a, State> {
        while let Err(error) = written {
            state.failing = Some(failed(error));
            self.room.notify_waiters();
            if state.closed {
                return state;
            }
            state = self.wait(state, Some(AGAIN), |state| !state.closed);
            drop(state);
            written = put(connection, sheet);
            state = self.state();
        }
        state.failing = None;
        if let Err(error) = state.desk.settled() {
            tracing::error!(%error, "the journal could not be emptied");
        }
        self.room.notify_waiters();
        state
    }
}

/// SQLite's own log of what is not in its file yet.
#[derive(Debug)]
struct Log(Arc<AtomicI32>);

impl Log {
    /// Follows how long it is, in the place of SQLite's own hook, which tidies within the commit.
    fn of(connection: &mut Connection) -> rusqlite::Result<Self> {
        let log = Arc::new(AtomicI32::new(0));
        let pages = Arc::clone(&log);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, now| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self(log))
    }

    fn is_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= LONG
    }

    /// Puts its pages in their places. `PASSIVE`: as far as no reader is in the way; it begins anew
    /// with the next commit. `TRUNCATE`: all of them, and nothing is left of it.
    fn tidy(&self, connection: &Connection, how: &str) {
        self.0.store(0, Ordering::Relaxed);
        let tidy = format!("PRAGMA wal_checkpoint({how})");
        let tidied = connection.query_row(&tidy, [], |_| Ok(()));
        if let Err(error) = tidied {
            tracing::warn!(%error, "the store's log could not be tidied away; it grows until it can");
        }
    }
}

/// Puts a sheet into the database, all of it or nothing.
fn put(connection: &mut Connection, sheet: &Sheet) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    sheet.put_into(&mut Rows::of(&transaction)?)?;
    transaction.commit()
}

/// Puts what was found in the journal into the database: what is not there yet. After a loss of
/// power the database may lack more than the journal holds; then what does not join on is given up.
fn carry_over(connection: &mut Connection, found: &[Record]) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction()?;
    for record in found {
        let savepoint = transaction.savepoint()?;
        for placed in &record.batch {
            let head = rows::head(&savepoint, &placed.stream)?;
            if placed.last() <= head {
                continue;
            }
            if placed.first != head.next() {
                tracing::warn!(stream = %placed.stream, "the database lacks events that the journal goes on from; what came after them is lost");
                drop(savepoint);
                return transaction.commit();
            }
            Rows::of(&savepoint)?.add(&placed.stream, placed.first, placed.events.iter())?;
        }
        savepoint.commit()?;
    }
    transaction.commit()
}

pub(crate) fn failed(error: rusqlite::Error) -> StoreError {
    tracing::error!(%error, "the store's writer failed");
    StoreError::Failed(error.to_string())
}
