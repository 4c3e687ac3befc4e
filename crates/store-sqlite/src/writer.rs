//! The one connection that writes.
//!
//! Where nobody else writes, whoever brings an append writes it at once: to wake a thread and to be
//! woken by it takes longer than to write. What comes meanwhile waits for a thread, which puts all of
//! it into one transaction. It also tidies the log away, which waits for the disk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use store::{Append, Seq, StoreError, StreamName};
use tokio::sync::{mpsc, oneshot};

use crate::error::OpenError;
use crate::followers::Followers;

/// How many appends may wait; whoever comes then waits to hand theirs over.
const WAITING: usize = 1024;
/// How many are written in one transaction, so that the first is not told too late.
const TOGETHER: usize = 256;
/// A log of so many pages is tidied away, as SQLite would do it by itself.
const LONG: i32 = 1000;

type Answer = Result<Vec<Seq>, StoreError>;

/// What is to be done by the thread.
#[derive(Debug)]
enum Job {
    /// A batch, and who is to be told.
    Append(Vec<Append>, oneshot::Sender<Answer>),
    /// Streams that are to go, and who is to be told.
    Remove(Vec<StreamName>, oneshot::Sender<Result<(), StoreError>>),
    /// The log has become long.
    Tidy,
}

/// The way to write. Dropping it waits for what was handed over.
#[derive(Debug)]
pub(crate) struct Writer {
    pen: Arc<Pen>,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Takes the connection that writes, and starts the thread.
    pub(crate) fn start(
        connection: Connection,
        followers: Arc<Followers>,
    ) -> Result<Self, OpenError> {
        let path = connection.path().map(PathBuf::from).unwrap_or_default();
        let pen = Pen::new(connection, followers);
        let pen = Arc::new(pen.map_err(|why| OpenError::Sqlite { path, why })?);
        let (jobs, waiting) = mpsc::channel(WAITING);
        let held = Arc::clone(&pen);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || work(&held, waiting))
            .map_err(OpenError::Thread)?;
        Ok(Self {
            pen,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Appends one batch; it is written when this returns.
    pub(crate) async fn append(&self, batch: Vec<Append>) -> Answer {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        if let Some(answer) = self.pen.write_at_once(&batch) {
            if self.pen.is_log_long() {
                // Where the thread has much to do, it looks by itself.
                let _ = jobs.try_send(Job::Tidy);
            }
            return answer;
        }
        let (told, answer) = oneshot::channel();
        let waiting = Waiting::new(&self.pen.waiting);
        jobs.send(Job::Append(batch, told))
            .await
            .map_err(|_| StoreError::Closed)?;
        let answer = answer.await.map_err(|_| StoreError::Closed)?;
        drop(waiting);
        answer
    }

    /// Removes whole streams; they are gone when this returns.
    pub(crate) async fn remove(&self, streams: Vec<StreamName>) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        let (told, answer) = oneshot::channel();
        jobs.send(Job::Remove(streams, told))
            .await
            .map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Where a stream is, where nobody writes. The connection that writes has the newest pages at
    /// hand; a reader would have to fetch them again after every append.
    pub(crate) fn head(&self, stream: &StreamName) -> Option<Result<Seq, StoreError>> {
        let connection = self.pen.try_connection()?;
        Some(head(&connection, stream).map_err(failed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has told nobody of success.
            let _ = thread.join();
        }
    }
}

/// One who waits for the thread.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection, and what there is to know about it.
#[derive(Debug)]
struct Pen {
    connection: Mutex<Connection>,
    followers: Arc<Followers>,
    /// How many wait for the thread: nobody goes ahead of them.
    waiting: AtomicUsize,
    /// Pages in the log after the last commit.
    log: Arc<AtomicI32>,
}

impl Pen {
    fn new(mut connection: Connection, followers: Arc<Followers>) -> rusqlite::Result<Self> {
        let log = Arc::new(AtomicI32::new(0));
        let pages = Arc::clone(&log);
        // In the place of SQLite's own, which tidies within the commit.
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, now| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            connection: Mutex::new(connection),
            followers,
            waiting: AtomicUsize::new(0),
            log,
        })
    }

    /// Writes where nobody else does; none where somebody does, or waits to.
    fn write_at_once(&self, batch: &[Append]) -> Option<Answer> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let mut connection = self.try_connection()?;
        let answer = write_all(&mut connection, &[batch]).map_or_else(Err, |mut answers| {
            answers.pop().unwrap_or(Err(StoreError::Closed))
        });
        drop(connection);
        self.tell(batch, &answer);
        Some(answer)
    }

    fn tell(&self, batch: &[Append], answer: &Answer) {
        if let Ok(heads) = answer {
            let streams = batch.iter().map(|append| &append.stream);
            self.followers.tell(streams.zip(heads));
        }
    }

    fn is_log_long(&self) -> bool {
        self.log.load(Ordering::Relaxed) >= LONG
    }

    /// Puts the log's pages in their places, as far as no reader is in the way. The log begins anew
    /// with the next commit.
    fn tidy(&self, connection: &Connection) {
        self.log.store(0, Ordering::Relaxed);
        let tidied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = tidied {
            tracing::warn!(%error, "the store's log could not be tidied away; it grows until it can");
        }
    }

    /// None where somebody holds it.
    fn try_connection(&self) -> Option<MutexGuard<'_, Connection>> {
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic left behind is taken back when it is dropped.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(pen: &Pen, mut waiting: mpsc::Receiver<Job>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut jobs = Vec::new();
        let mut removed = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Append(batch, told) => jobs.push((batch, told)),
                Job::Remove(streams, told) => removed.push((streams, told)),
                Job::Tidy => {}
            }
            // What is to be removed is removed after what came before it and before what comes next.
            next = (jobs.len() < TOGETHER && removed.is_empty())
                .then(|| waiting.try_recv().ok())
                .flatten();
        }
        let mut connection = pen.connection();
        let answers = if jobs.is_empty() {
            Vec::new()
        } else {
            let batches: Vec<&[Append]> = jobs.iter().map(|(batch, _)| &**batch).collect();
            write_all(&mut connection, &batches)
                .unwrap_or_else(|error| jobs.iter().map(|_| Err(error.clone())).collect())
        };
        for ((batch, told), answer) in jobs.into_iter().zip(answers) {
            pen.tell(&batch, &answer);
            // Whoever asked may have gone; it is written all the same.
            let _ = told.send(answer);
        }
        for (streams, told) in removed {
            let _ = told.send(remove(&mut connection, &streams).map_err(failed));
        }
        if pen.is_log_long() {
            pen.tidy(&connection);
        }
    }
}

/// Removes whole streams, and what they held from the file as well.
fn remove(connection: &mut Connection, streams: &[StreamName]) -> rusqlite::Result<()> {
    connection.pragma_update(None, "secure_delete", true)?;
    let transaction = connection.transaction()?;
    for stream in streams {
        transaction.execute("DELETE FROM events WHERE stream = ?1", [stream.as_str()])?;
    }
    transaction.commit()
}

/// Writes all of them in one transaction; one that does not fit leaves the others as they are.
fn write_all(
    connection: &mut Connection,
    batches: &[&[Append]],
) -> Result<Vec<Answer>, StoreError> {
    if let [batch] = batches {
        return Ok(vec![write_one(connection, batch)]);
    }
    let mut transaction = connection.transaction().map_err(failed)?;
    let mut answers = Vec::with_capacity(batches.len());
    for batch in batches {
        let savepoint = transaction.savepoint().map_err(failed)?;
        let answer = append(&savepoint, batch);
        match answer {
            Ok(_) => savepoint.commit().map_err(failed)?,
            // The same of the savepoint.
            Err(_) => drop(savepoint),
        }
        answers.push(answer);
    }
    transaction.commit().map_err(failed)?;
    Ok(answers)
}

/// Writes one, which is what nearly always happens: its statements are not read anew each time.
fn write_one(connection: &Connection, batch: &[Append]) -> Answer {
    let open = Open::begin(connection).map_err(failed)?;
    let heads = append(connection, batch)?;
    open.commit().map_err(failed)?;
    Ok(heads)
}

/// A transaction; dropped, it takes back what was written in it.
struct Open<'a>(&'a Connection);

impl<'a> Open<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // After a commit there is none.
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "what was half-written could not be taken back");
        }
    }
}

fn append(connection: &Connection, batch: &[Append]) -> Answer {
    let mut heads = Vec::with_capacity(batch.len());
    for append in batch {
        let head = head(connection, &append.stream).map_err(failed)?;
        if let store::Expected::Head(expected) = append.expected
            && expected != head
        {
            return Err(StoreError::Conflict {
                stream: append.stream.clone(),
                expected,
                actual: head,
            });
        }
        heads.push(events(connection, head, append).map_err(failed)?);
    }
    Ok(heads)
}

/// Where a stream is; one that nobody knows is at its start.
pub(crate) fn head(connection: &Connection, stream: &StreamName) -> rusqlite::Result<Seq> {
    let head: Option<i64> = connection
        .prepare_cached("SELECT max(seq) FROM events WHERE stream = ?1")?
        .query_row([stream.as_str()], |row| row.get(0))?;
    Ok(Seq::new(head.unwrap_or_default().unsigned_abs()))
}

fn events(connection: &Connection, mut head: Seq, append: &Append) -> rusqlite::Result<Seq> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (stream, seq, at, kind, data) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for event in &append.events {
        head = head.next();
        insert.execute((
            append.stream.as_str(),
            head.get() as i64,
            event.at.0 as i64,
            &event.kind,
            event.data.as_str(),
        ))?;
    }
    Ok(head)
}

fn failed(error: rusqlite::Error) -> StoreError {
    tracing::error!(%error, "the store's writer failed");
    StoreError::Failed(error.to_string())
}
