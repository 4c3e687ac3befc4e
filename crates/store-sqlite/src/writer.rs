//! The one writer: a thread that puts all appends that wait into one transaction.

use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension as _};
use store::{Append, Seq, StoreError, StreamName};
use tokio::sync::{mpsc, oneshot};

use crate::error::OpenError;
use crate::followers::Followers;

/// How many appends may wait; whoever comes then waits to hand theirs over.
const WAITING: usize = 1024;
/// How many are written in one transaction, so that the first is not told too late.
const TOGETHER: usize = 256;

type Answer = Result<Vec<Seq>, StoreError>;

/// A batch, and who is to be told.
#[derive(Debug)]
struct Job {
    batch: Vec<Append>,
    told: oneshot::Sender<Answer>,
}

/// The way to the writer's thread. Dropping it waits for what was handed over.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread with the connection that writes.
    pub(crate) fn start(
        connection: Connection,
        followers: Arc<Followers>,
    ) -> Result<Self, OpenError> {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || work(connection, waiting, &followers))
            .map_err(OpenError::Thread)?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Appends one batch; it is written when this returns.
    pub(crate) async fn append(&self, batch: Vec<Append>) -> Answer {
        let (told, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(Job { batch, told })
            .await
            .map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
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

fn work(mut connection: Connection, mut waiting: mpsc::Receiver<Job>, followers: &Followers) {
    while let Some(first) = waiting.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < TOGETHER
            && let Ok(job) = waiting.try_recv()
        {
            jobs.push(job);
        }
        let batches: Vec<&[Append]> = jobs.iter().map(|job| job.batch.as_slice()).collect();
        let answers = write_all(&mut connection, &batches)
            .unwrap_or_else(|error| jobs.iter().map(|_| Err(error.clone())).collect());
        for (job, answer) in jobs.into_iter().zip(answers) {
            if let Ok(heads) = &answer {
                followers.tell(job.batch.iter().map(|append| &append.stream).zip(heads));
            }
            // Whoever asked may have gone; it is written all the same.
            let _ = job.told.send(answer);
        }
    }
}

/// Writes all of them in one transaction; one that does not fit leaves the others as they are.
fn write_all(
    connection: &mut Connection,
    batches: &[&[Append]],
) -> Result<Vec<Answer>, StoreError> {
    let mut transaction = connection.transaction().map_err(failed)?;
    let mut answers = Vec::with_capacity(batches.len());
    for batch in batches {
        let savepoint = transaction.savepoint().map_err(failed)?;
        let answer = append(&savepoint, batch);
        match answer {
            Ok(_) => savepoint.commit().map_err(failed)?,
            // Dropped, the savepoint takes back what the batch had written.
            Err(_) => drop(savepoint),
        }
        answers.push(answer);
    }
    transaction.commit().map_err(failed)?;
    Ok(answers)
}

fn append(connection: &Connection, batch: &[Append]) -> Answer {
    let mut heads = Vec::with_capacity(batch.len());
    for append in batch {
        let (id, head) = stream(connection, &append.stream).map_err(failed)?;
        if let store::Expected::Head(expected) = append.expected
            && expected != head
        {
            return Err(StoreError::Conflict {
                stream: append.stream.clone(),
                expected,
                actual: head,
            });
        }
        heads.push(events(connection, id, head, append).map_err(failed)?);
    }
    Ok(heads)
}

/// The stream's row and head; a new one begins here.
fn stream(connection: &Connection, name: &StreamName) -> rusqlite::Result<(i64, Seq)> {
    let found = connection
        .prepare_cached("SELECT id, head FROM streams WHERE name = ?1")?
        .query_row([name.as_str()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?))
        })
        .optional()?;
    if let Some((id, head)) = found {
        return Ok((id, Seq::new(head.unsigned_abs())));
    }
    connection
        .prepare_cached("INSERT INTO streams (name, head) VALUES (?1, 0)")?
        .execute([name.as_str()])?;
    Ok((connection.last_insert_rowid(), Seq::START))
}

fn events(connection: &Connection, id: i64, head: Seq, append: &Append) -> rusqlite::Result<Seq> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (stream, seq, at, kind, data) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut head = head;
    for event in &append.events {
        head = head.next();
        insert.execute((
            id,
            head.get() as i64,
            event.at.0 as i64,
            &event.kind,
            event.data.as_str(),
        ))?;
    }
    connection
        .prepare_cached("UPDATE streams SET head = ?2 WHERE id = ?1")?
        .execute((id, head.get() as i64))?;
    Ok(head)
}

fn failed(error: rusqlite::Error) -> StoreError {
    tracing::error!(%error, "the store's writer failed");
    StoreError::Failed(error.to_string())
}
