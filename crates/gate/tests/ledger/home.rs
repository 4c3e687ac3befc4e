//! A data folder and, outside it, the ledger's head.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::ledger::{Entry, EntryKind, Ledger, NewEntry, Opened, Problem, ProblemKind};
use gate::redact::Redactor;
use serde_json::{Value, json};
use store::{Append, Expected, Millis, NewEvent, Seq, StreamName};
use store_sqlite::{DataFolder, SqliteStore};

/// What is secret in the environment of these tests.
pub(crate) const SECRET: &str = "correct horse battery";

pub(crate) struct Home {
    data: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(DataFolder::own(self.data.path(), "a test").unwrap()).unwrap()
    }

    pub(crate) async fn open(&self) -> (Ledger<SqliteStore>, Opened) {
        Ledger::open(Arc::new(self.store()), self.head(), redactor())
            .await
            .unwrap()
    }

    /// A ledger with entries 2 to 7 after its beginning.
    pub(crate) async fn with_six(&self) -> Ledger<SqliteStore> {
        let (ledger, _) = self.open().await;
        for number in 2..=7 {
            ledger.write(vec![decision(number)], vec![]).await.unwrap();
        }
        ledger
    }

    /// The file outside.
    pub(crate) fn head(&self) -> PathBuf {
        self.state.path().join("ledger.head")
    }

    /// Past Ward, to the database, once everything that was appended is in it.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        // A journal begins with a word; what is not written behind it is zero.
        let is_empty = |name: &str| {
            let journal = std::fs::read(self.data.path().join(name)).unwrap_or_default();
            journal.iter().skip(64).all(|byte| *byte == 0)
        };
        let began = Instant::now();
        while !["ward.journal-a", "ward.journal-b"]
            .into_iter()
            .all(is_empty)
        {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
        rusqlite::Connection::open(self.data.path().join("ward.db")).unwrap()
    }

    /// Does something to the ledger's rows.
    pub(crate) fn tamper(&self, sql: &str) {
        let sql = sql.replace("LEDGER", "stream = 'ledger'");
        self.database().execute_batch(&sql).unwrap();
    }

    /// All bytes that Ward has written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let files = [self.data.path(), self.state.path()]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap());
        files
            .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect()
    }
}

pub(crate) fn redactor() -> Arc<Redactor> {
    let environment = [("MY_TOKEN", SECRET), ("HARMLESS", "just a sentence")];
    let environment = environment.map(|(name, value)| (OsString::from(name), value.into()));
    Arc::new(Redactor::new(environment, []).unwrap())
}

pub(crate) fn entry(kind: EntryKind, action: Option<&str>, data: Value) -> NewEntry {
    NewEntry {
        kind,
        at: Millis(1_000),
        actor: "agent:4f2a".into(),
        role: Some("backend".into()),
        session: Some("s1".into()),
        workspace: Some("/w".into()),
        action_id: action.map(Into::into),
        data: data.into(),
    }
}

pub(crate) fn decision(number: u64) -> NewEntry {
    entry(EntryKind::Decision, None, json!({ "number": number }))
}

/// An append to another stream, which must not have begun.
pub(crate) fn first_of(stream: &str) -> Append {
    Append {
        stream: StreamName::new(stream).unwrap(),
        expected: Expected::Head(Seq::START),
        events: vec![NewEvent {
            kind: "begun".into(),
            at: Millis(1_000),
            data: json!({ "stream": stream }).into(),
        }],
    }
}

/// What was written, as it should be read: place and hashes are the ledger's.
pub(crate) fn same(entry: &Entry, new: &NewEntry) -> bool {
    let Entry {
        seq: _,
        at,
        kind,
        actor,
        role,
        session,
        workspace,
        action_id,
        data,
        prev: _,
        hash: _,
    } = entry.clone();
    let read = NewEntry {
        kind,
        at,
        actor,
        role,
        session,
        workspace,
        action_id,
        data: data.into(),
    };
    read == *new
}

pub(crate) fn problem(seq: u64, kind: ProblemKind, what: &str) -> Problem {
    Problem {
        seq,
        kind,
        what: what.into(),
    }
}
