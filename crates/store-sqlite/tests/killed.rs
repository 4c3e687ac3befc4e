//! What a store holds after its process was killed, at any moment: all that somebody was told of.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use store::{Append, Expected, Millis, NewEvent, Seq, Store, StoreError, StreamName};
use store_sqlite::{DataFolder, SqliteStore};
use tempfile::TempDir;

const STREAMS: [&str; 3] = ["a", "b/c", "d"];

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(DataFolder::own(folder, "a test").unwrap()).unwrap()
}

fn name(number: usize) -> StreamName {
    StreamName::new(STREAMS[number]).unwrap()
}

/// The files as a killed process leaves them. The journal first: what is put into the database
/// meanwhile is then in both.
fn as_if_killed(folder: &Path) -> TempDir {
    let left = tempfile::tempdir().unwrap();
    for file in [
        "ward.journal-a",
        "ward.journal-b",
        "ward.db",
        "ward.db-wal",
        "ward.lock",
    ] {
        let from = folder.join(file);
        if from.exists() {
            std::fs::copy(from, left.path().join(file)).unwrap();
        }
    }
    left
}

/// What can happen to a store.
#[derive(Debug, Clone)]
enum Step {
    /// A batch of so many events for each of these streams.
    Append(Vec<(usize, u64)>),
    /// A batch whose last stream is elsewhere.
    Conflict(usize),
    /// A stream goes; all that was appended before is in the database then.
    Remove(usize),
    /// A start after an end.
    Reopen,
    /// A start after a kill.
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let part = (0..STREAMS.len(), 0_u64..4);
    let step = prop_oneof![
        6 => proptest::collection::vec(part, 1..4).prop_map(Step::Append),
        1 => (0..STREAMS.len()).prop_map(Step::Conflict),
        1 => (0..STREAMS.len()).prop_map(Step::Remove),
        1 => Just(Step::Reopen),
        2 => Just(Step::Kill),
    ];
    proptest::collection::vec(step, 1..20)
}

fn happened(value: u64) -> NewEvent {
    NewEvent {
        kind: "happened".into(),
        at: Millis(value),
        data: json!(value).into(),
    }
}

type Model = HashMap<usize, Vec<u64>>;

async fn same(store: &SqliteStore, model: &Model) {
    for number in 0..STREAMS.len() {
        let stream = name(number);
        let held = model.get(&number).cloned().unwrap_or_default();
        let numbered: Vec<(u64, Value)> = (1..).zip(held.iter().map(|v| json!(v))).collect();
        let seen = |events: Vec<store::Event>| -> Vec<(u64, Value)> {
            let pair = |event: store::Event| (event.seq.get(), event.data);
            events.into_iter().map(pair).collect()
        };
        for after in 0..=numbered.len() {
            for limit in [1, 3, 100] {
                let from = Seq::new(after as u64);
                let found = store.read(&stream, from, limit).await.unwrap();
                let expected: Vec<_> = numbered[after..].iter().take(limit).cloned().collect();
                assert_eq!(seen(found), expected, "after {after}, at most {limit}");
            }
        }
        for limit in [1, 3, 100] {
            let found = store.tail(&stream, limit).await.unwrap();
            let from = numbered.len().saturating_sub(limit);
            assert_eq!(seen(found), numbered[from..], "the last {limit}");
        }
        let head = store.head(&stream).await.unwrap();
        assert_eq!(head, Seq::new(numbered.len() as u64));
    }
}

async fn run(steps: Vec<Step>) {
    let mut folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut model = Model::new();
    let mut next = 0;
    for step in steps {
        match step {
            Step::Append(parts) => {
                let mut batch = Vec::new();
                let mut heads = Vec::new();
                for (stream, count) in parts {
                    let held = model.entry(stream).or_default();
                    let values: Vec<u64> = (0..count).map(|more| next + more).collect();
                    next += count;
                    batch.push(Append {
                        stream: name(stream),
                        expected: Expected::Head(Seq::new(held.len() as u64)),
                        events: values.iter().copied().map(happened).collect(),
                    });
                    held.extend(values);
                    heads.push(Seq::new(held.len() as u64));
                }
                assert_eq!(store.append(batch).await, Ok(heads));
            }
            Step::Conflict(stream) => {
                let actual = model.get(&stream).map_or(0, Vec::len) as u64;
                let fits = Append {
                    stream: name((stream + 1) % STREAMS.len()),
                    expected: Expected::Any,
                    events: vec![happened(next)],
                };
                let elsewhere = Append {
                    stream: name(stream),
                    expected: Expected::Head(Seq::new(actual + 1)),
                    events: vec![happened(next)],
                };
                let refused = store.append(vec![fits, elsewhere]).await;
                let conflict = StoreError::Conflict {
                    stream: name(stream),
                    expected: Seq::new(actual + 1),
                    actual: Seq::new(actual),
                };
                assert_eq!(refused, Err(conflict));
            }
            Step::Remove(stream) => {
                store.remove(vec![name(stream)]).await.unwrap();
                model.remove(&stream);
            }
            Step::Reopen => {
                drop(store);
                store = open(folder.path());
            }
            Step::Kill => {
                let left = as_if_killed(folder.path());
                drop(store);
                store = open(left.path());
                folder = left;
            }
        }
        same(&store, &model).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_store_holds_what_was_appended_however_often_it_is_killed(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(steps));
    }
}

#[tokio::test]
async fn what_is_in_the_journal_and_in_the_database_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let batch = |value| {
        vec![Append {
            stream: name(0),
            expected: Expected::Any,
            events: vec![happened(value)],
        }]
    };
    store.append(batch(1)).await.unwrap();
    let journal = ["ward.journal-a", "ward.journal-b"]
        .map(|file| std::fs::read(folder.path().join(file)).unwrap());
    drop(store);
    // Killed after the database was written and before the journal was emptied.
    for (file, bytes) in ["ward.journal-a", "ward.journal-b"].iter().zip(journal) {
        std::fs::write(folder.path().join(file), bytes).unwrap();
    }
    let store = open(folder.path());
    assert_eq!(store.append(batch(2)).await, Ok(vec![Seq::new(2)]));
    drop(store);
    let store = open(folder.path());
    let events = store.read(&name(0), Seq::START, 10).await.unwrap();
    let data: Vec<Value> = events.into_iter().map(|event| event.data).collect();
    assert_eq!(data, [json!(1), json!(2)]);
}
