//! Appends to the ledger beside raw rusqlite: the same rows in a table like the store's, by one
//! thread that puts all that wait into one transaction, with the same pragmas.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::future::try_join_all;
use gate::ledger::{EntryKind, Ledger, NewEntry};
use gate::redact::Redactor;
use serde_json::{Value, json};
use store::Millis;
use store_sqlite::{DataFolder, SqliteStore};
use tokio::sync::{mpsc, oneshot};

use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::stage::{Effort, Stage};

/// Appends under way at once.
const IN_FLIGHT: usize = 64;

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let folder = stage.scratch("ledger")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(compare(stage, &folder))
}

async fn compare(stage: &Stage, folder: &Path) -> anyhow::Result<Vec<Row>> {
    let candidates = [
        Candidate::Ledger(open(folder).await?),
        Candidate::Raw(Arc::new(Raw::start(&folder.join("raw.db"))?)),
    ];
    let turns = [(0, IN_FLIGHT), (1, IN_FLIGHT), (0, 1), (1, 1)];
    let mut figures: [Samples; 4] = Default::default();
    for round in 0..=stage.rounds(15) {
        for at in order(round, turns.len()) {
            let (candidate, in_flight) = turns[at];
            let took = load(&candidates[candidate], in_flight, time(stage)).await?;
            if round > 0 {
                figures[at].add(took);
            }
        }
    }
    let [ledger, raw, ledger_alone, raw_alone] = figures;
    let peer = "raw rusqlite, group commit";
    Ok(vec![
        Row::against(
            "(b) ledger, 64 appends in flight: time an append",
            Unit::Seconds,
            &ledger,
            peer,
            &raw,
            Target::AtMost(2.0),
        ),
        Row::against(
            "(b) ledger, one append at a time",
            Unit::Seconds,
            &ledger_alone,
            peer,
            &raw_alone,
            Target::None,
        ),
    ])
}

fn time(stage: &Stage) -> Duration {
    match stage.effort() {
        Effort::Full => Duration::from_millis(500),
        Effort::Quick => Duration::from_millis(100),
    }
}

/// Keeps so many appends under way; the time of one.
async fn load(candidate: &Candidate, in_flight: usize, time: Duration) -> anyhow::Result<f64> {
    let started = Instant::now();
    let appending = (0..in_flight).map(|_| {
        let candidate = candidate.clone();
        tokio::spawn(async move {
            let mut appended = 0_u32;
            while started.elapsed() < time {
                candidate.append().await?;
                appended += 1;
            }
            anyhow::Ok(appended)
        })
    });
    let mut appended = 0;
    for count in try_join_all(appending).await? {
        appended += count?;
    }
    Ok(started.elapsed().as_secs_f64() / f64::from(appended))
}

#[derive(Clone)]
enum Candidate {
    Ledger(Ledger<SqliteStore>),
    Raw(Arc<Raw>),
}

impl Candidate {
    async fn append(&self) -> anyhow::Result<()> {
        match self {
            Self::Ledger(ledger) => ledger.write(vec![entry()], vec![]).await.map(drop)?,
            Self::Raw(raw) => raw.append().await?,
        }
        Ok(())
    }
}

async fn open(folder: &Path) -> anyhow::Result<Ledger<SqliteStore>> {
    let data = DataFolder::own(&folder.join("data"), "bench")?;
    let store = Arc::new(SqliteStore::open(data)?);
    let secrets = [("API_TOKEN", "0f1e2d3c4b5a69788796")];
    let secrets = secrets.map(|(name, value)| (OsString::from(name), value.into()));
    let redactor = Arc::new(Redactor::new(secrets, [])?);
    let (ledger, _) = Ledger::open(store, folder.join("head"), redactor).await?;
    Ok(ledger)
}

/// A decision about a command, as the gate writes it.
fn entry() -> NewEntry {
    NewEntry {
        kind: EntryKind::Decision,
        at: Millis(1_700_000_000_000),
        actor: "agent:4f2a8c1e90ab4cde".to_owned(),
        role: Some("backend".to_owned()),
        session: Some("8f01234567".to_owned()),
        workspace: Some("/home/ada/src/shop".to_owned()),
        action_id: Some("4f2a8c1e-90ab-4cde-8f01-23456789abcd".to_owned()),
        data: data().into(),
    }
}

fn data() -> Value {
    json!({
        "decision": "allow",
        "rule": { "pattern": "terminal.run(cargo test *)", "file": "ward.toml", "line": 12 },
        "action": "terminal.run",
        "params": { "command": "RUST_LOG=debug cargo test -p cart 2>&1 | tee out/log", "cwd": "." },
        "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "mode": "sandbox",
    })
}

/// The row of such an entry.
fn row() -> String {
    let entry = entry();
    let hash = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let row: Value = json!({
        "seq": 100_000,
        "at": entry.at,
        "kind": entry.kind,
        "actor": entry.actor,
        "role": entry.role,
        "session": entry.session,
        "workspace": entry.workspace,
        "action_id": entry.action_id,
        "data": data(),
        "prev": hash,
        "hash": hash,
    });
    row.to_string()
}

type Job = (String, oneshot::Sender<()>);

/// One thread with one connection.
struct Raw {
    row: String,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<rusqlite::Result<()>>>,
}

impl Raw {
    fn start(path: &Path) -> anyhow::Result<Self> {
        let connection = rusqlite::Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(
            "CREATE TABLE events (
                stream INTEGER NOT NULL,
                seq    INTEGER NOT NULL,
                at     INTEGER NOT NULL,
                kind   TEXT NOT NULL,
                data   TEXT NOT NULL,
                PRIMARY KEY (stream, seq)
            ) STRICT, WITHOUT ROWID",
        )?;
        let (jobs, waiting) = mpsc::channel(1024);
        Ok(Self {
            row: row(),
            jobs: Some(jobs),
            thread: Some(std::thread::spawn(move || work(connection, waiting))),
        })
    }

    async fn append(&self) -> anyhow::Result<()> {
        let (told, written) = oneshot::channel();
        let jobs = self.jobs.as_ref().context("it has ended")?;
        jobs.send((self.row.clone(), told)).await?;
        Ok(written.await?)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Whoever waited for it was not told of success.
            let _ = thread.join();
        }
    }
}

fn work(
    mut connection: rusqlite::Connection,
    mut waiting: mpsc::Receiver<Job>,
) -> rusqlite::Result<()> {
    let mut seq = 0_i64;
    while let Some(first) = waiting.blocking_recv() {
        let mut jobs = vec![first];
        while let Ok(job) = waiting.try_recv() {
            jobs.push(job);
        }
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO events (stream, seq, at, kind, data) VALUES (1, ?1, ?2, ?3, ?4)",
        )?;
        for (row, _) in &jobs {
            seq += 1;
            insert.execute((seq, 1_700_000_000_000_i64, "decision", row))?;
        }
        drop(insert);
        transaction.commit()?;
        for (_, told) in jobs {
            // It may have been dropped at the end of the time.
            let _ = told.send(());
        }
    }
    Ok(())
}
