//! Streams on a real database in a real folder.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use serde_json::json;
use store::{Append, Event, Expected, Millis, NewEvent, Seq, Store, StoreError, StreamName};
use store_sqlite::{DataFolder, SqliteStore};

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(DataFolder::own(folder.path(), "a test").unwrap()).unwrap()
}

fn name(name: &str) -> StreamName {
    StreamName::new(name).unwrap()
}

fn happened(number: u64) -> NewEvent {
    NewEvent {
        kind: "happened".into(),
        at: Millis(number),
        data: json!({ "number": number }).into(),
    }
}

fn append(stream: &str, expected: Expected, numbers: std::ops::RangeInclusive<u64>) -> Append {
    Append {
        stream: name(stream),
        expected,
        events: numbers.map(happened).collect(),
    }
}

fn event(seq: u64, number: u64) -> Event {
    let NewEvent { kind, at, data } = happened(number);
    Event {
        seq: Seq::new(seq),
        kind: kind.into_owned(),
        at,
        data: serde_json::from_str(data.as_str()).unwrap(),
    }
}

#[tokio::test]
async fn events_are_read_in_order_from_any_place_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    assert_eq!(store.read(&name("a"), Seq::START, 10).await, Ok(vec![]));
    let heads = store
        .append(vec![append("a", Expected::Head(Seq::START), 1..=3)])
        .await;
    assert_eq!(heads, Ok(vec![Seq::new(3)]));
    drop(store);

    let store = open(&folder);
    let heads = store
        .append(vec![append("a", Expected::Head(Seq::new(3)), 4..=5)])
        .await;
    assert_eq!(heads, Ok(vec![Seq::new(5)]));
    assert_eq!(
        store.read(&name("a"), Seq::new(2), 2).await,
        Ok(vec![event(3, 3), event(4, 4)])
    );
    assert_eq!(store.read(&name("a"), Seq::new(5), 10).await, Ok(vec![]));
    assert_eq!(store.count().await, Ok(5));
}

#[tokio::test]
async fn a_batch_with_one_stream_elsewhere_changes_no_stream() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store
        .append(vec![append("b", Expected::Any, 1..=1)])
        .await
        .unwrap();
    let refused = store
        .append(vec![
            append("a", Expected::Any, 1..=1),
            append("b", Expected::Head(Seq::START), 2..=2),
        ])
        .await;
    assert_eq!(
        refused,
        Err(StoreError::Conflict {
            stream: name("b"),
            expected: Seq::START,
            actual: Seq::new(1),
        })
    );
    assert_eq!(store.read(&name("a"), Seq::START, 10).await, Ok(vec![]));
    assert_eq!(
        store.read(&name("b"), Seq::START, 10).await,
        Ok(vec![event(1, 1)])
    );
    assert_eq!(store.count().await, Ok(1));
    // Nothing of it is left to be in the way of the next.
    let next = store.append(vec![append("b", Expected::Any, 3..=3)]).await;
    assert_eq!(next, Ok(vec![Seq::new(2)]));
    assert_eq!(store.head(&name("a")).await, Ok(Seq::START));
    assert_eq!(store.head(&name("b")).await, Ok(Seq::new(2)));
}

#[tokio::test]
async fn a_batch_that_names_a_stream_twice_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let heads = store
        .append(vec![
            append("a", Expected::Head(Seq::START), 1..=2),
            append("a", Expected::Head(Seq::new(2)), 3..=3),
        ])
        .await;
    assert_eq!(heads, Ok(vec![Seq::new(2), Seq::new(3)]));
}

#[tokio::test]
async fn of_many_that_expect_the_same_place_one_wins_and_no_number_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(&folder));
    let tasks: Vec<_> = (1..=200)
        .map(|number| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                let free = append("free", Expected::Any, number..=number);
                let taken = append("taken", Expected::Head(Seq::START), number..=number);
                let head = store.append(vec![free]).await.unwrap();
                (head, store.append(vec![taken]).await.is_ok())
            })
        })
        .collect();
    let mut places = Vec::new();
    let mut winners = 0;
    for task in tasks {
        let (head, won) = task.await.unwrap();
        places.extend(head);
        winners += usize::from(won);
    }
    places.sort();
    assert_eq!(places, (1..=200).map(Seq::new).collect::<Vec<_>>());
    assert_eq!(winners, 1);
    assert_eq!(store.count().await, Ok(201));
}

#[tokio::test]
async fn the_last_events_of_a_stream_are_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    assert_eq!(store.tail(&name("a"), 2).await, Ok(vec![]));
    store
        .append(vec![append("a", Expected::Any, 1..=5)])
        .await
        .unwrap();
    assert_eq!(
        store.tail(&name("a"), 2).await,
        Ok(vec![event(4, 4), event(5, 5)])
    );
    assert_eq!(store.tail(&name("a"), 9).await.unwrap().len(), 5);
}

#[tokio::test]
async fn whoever_follows_a_stream_misses_nothing_that_is_appended_meanwhile() {
    const EVENTS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(&folder));
    let follow = |from: u64| {
        let store = std::sync::Arc::clone(&store);
        async move {
            let (mut seen, mut after) = (Vec::new(), Seq::new(from));
            while after < Seq::new(EVENTS) {
                store.beyond(&name("a"), after).await.unwrap();
                let events = store.read(&name("a"), after, 7).await.unwrap();
                after = events.last().unwrap().seq;
                seen.extend(events.into_iter().map(|event| event.seq.get()));
            }
            seen
        }
    };
    let write = async {
        for number in 1..=EVENTS {
            let other = append("b", Expected::Any, number..=number);
            let this = append("a", Expected::Any, number..=number);
            store.append(vec![other, this]).await.unwrap();
        }
    };
    let (all, some, ()) = tokio::join!(follow(0), follow(150), write);
    assert_eq!(all, (1..=EVENTS).collect::<Vec<_>>());
    assert_eq!(some, (151..=EVENTS).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_database_of_the_first_version_is_carried_over_whole() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    let path = folder.path().join("ward.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "DROP TABLE events;
            CREATE TABLE streams (
                id   INTEGER PRIMARY KEY,
                name TEXT NOT NULL UNIQUE,
                head INTEGER NOT NULL
            ) STRICT;
            CREATE TABLE events (
                stream INTEGER NOT NULL REFERENCES streams (id),
                seq    INTEGER NOT NULL,
                at     INTEGER NOT NULL,
                kind   TEXT NOT NULL,
                data   TEXT NOT NULL,
                PRIMARY KEY (stream, seq)
            ) STRICT, WITHOUT ROWID;
            INSERT INTO streams VALUES (1, 'a', 2), (2, 'b', 1);
            INSERT INTO events VALUES
                (1, 1, 1, 'happened', '{\"number\":1}'),
                (1, 2, 2, 'happened', '{\"number\":2}'),
                (2, 1, 3, 'happened', '{\"number\":3}');
            PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(database);

    let store = open(&folder);
    let (a, b) = (name("a"), name("b"));
    let all = |stream| store.read(stream, Seq::START, 10);
    assert_eq!(all(&a).await, Ok(vec![event(1, 1), event(2, 2)]));
    assert_eq!(all(&b).await, Ok(vec![event(1, 3)]));
    assert_eq!(store.count().await, Ok(3));
    let heads = store
        .append(vec![append("a", Expected::Head(Seq::new(2)), 3..=3)])
        .await;
    assert_eq!(heads, Ok(vec![Seq::new(3)]));
}

#[tokio::test]
async fn the_log_is_tidied_away_while_much_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let page = NewEvent {
        kind: "happened".into(),
        at: Millis(1),
        data: json!("x".repeat(4096)).into(),
    };
    let log = folder.path().join("ward.db-wal");
    for _ in 0..4_000 {
        let append = Append {
            stream: name("a"),
            expected: Expected::Any,
            events: vec![page.clone()],
        };
        store.append(vec![append]).await.unwrap();
    }
    let length = log.metadata().unwrap().len();
    assert!(length < 16 << 20, "{length}");
}

#[tokio::test]
async fn a_stream_that_is_removed_is_gone_from_the_file_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut secret = append("a", Expected::Any, 1..=1);
    secret.events[0].data = json!({"said": "a word that nobody shall find"}).into();
    store
        .append(vec![secret, append("b", Expected::Any, 1..=2)])
        .await
        .unwrap();
    store.remove(vec![name("a"), name("none")]).await.unwrap();
    let holds = |file: &str| {
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        String::from_utf8_lossy(&bytes).contains("nobody shall find")
    };
    assert!(!holds("ward.journal-a") && !holds("ward.journal-b"));
    assert_eq!(store.read(&name("a"), Seq::START, 10).await, Ok(vec![]));
    assert_eq!(store.head(&name("a")).await, Ok(Seq::START));
    assert_eq!(
        store.read(&name("b"), Seq::START, 10).await,
        Ok(vec![event(1, 1), event(2, 2)])
    );
    let begun = append("a", Expected::Head(Seq::START), 7..=7);
    assert_eq!(store.append(vec![begun]).await, Ok(vec![Seq::new(1)]));
    drop(store);
    assert!(!holds("ward.db"));
}

#[tokio::test]
async fn more_streams_than_are_remembered_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let names: Vec<String> = (0..5_000)
        .map(|number| format!("action/{number:04}"))
        .collect();
    for head in 0..2 {
        for names in names.chunks(100) {
            let expected = Expected::Head(Seq::new(head));
            let batch = names.iter().map(|name| append(name, expected, 1..=1));
            let heads = store.append(batch.collect()).await;
            assert_eq!(heads, Ok(vec![Seq::new(head + 1); names.len()]));
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    #[test]
    fn a_stream_is_where_it_was_left_whatever_the_order_of_names_and_after_restarts(
        steps in proptest::collection::vec(proptest::option::weighted(0.8, ("[a-c](/[a-d]){0,2}", 1_u64..4)), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(&folder);
        let mut heads = std::collections::HashMap::new();
        for step in steps {
            let Some((stream, count)) = step else {
                drop(store);
                store = open(&folder);
                continue;
            };
            let head: &mut u64 = heads.entry(stream.clone()).or_default();
            let expected = Expected::Head(Seq::new(*head));
            *head += count;
            let appended = runtime.block_on(store.append(vec![append(&stream, expected, 1..=count)]));
            assert_eq!(appended, Ok(vec![Seq::new(*head)]), "{stream}");
        }
    }
}

#[tokio::test]
async fn what_was_written_is_read_again_however_deep_it_is_nested() {
    let folder = tempfile::tempdir().unwrap();
    let data = (0..200).fold(json!("x"), |inner, _| json!([inner]));
    let written = NewEvent {
        data: data.clone().into(),
        ..happened(1)
    };
    let store = open(&folder);
    let batch = vec![Append {
        stream: name("a"),
        expected: Expected::Any,
        events: vec![written],
    }];
    store.append(batch).await.unwrap();
    let deep = Ok(vec![Event {
        data,
        ..event(1, 1)
    }]);
    assert_eq!(store.read(&name("a"), Seq::START, 10).await, deep);
    drop(store);
    assert_eq!(open(&folder).tail(&name("a"), 1).await, deep);
}

#[tokio::test]
async fn events_that_lie_in_one_row_are_found_from_any_place_and_from_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    // Of one moment, and more than one row holds: some of them are long.
    let long = |number: u64| NewEvent {
        kind: "long \"one\"".into(),
        at: Millis(number),
        data: json!({"number": number, "text": "é\n".repeat(3_000)}).into(),
    };
    let stream = name("session/a");
    let all: Vec<NewEvent> = (1..=40)
        .map(|number| match number % 7 {
            0 => long(number),
            _ => happened(number),
        })
        .collect();
    for events in all.chunks(3) {
        let append = Append {
            stream: stream.clone(),
            expected: Expected::Any,
            events: events.to_vec(),
        };
        store.append(vec![append]).await.unwrap();
    }
    let told: Vec<Event> = (1..)
        .zip(&all)
        .map(|(seq, event)| Event {
            seq: Seq::new(seq),
            kind: event.kind.to_string(),
            at: event.at,
            data: serde_json::from_str(event.data.as_str()).unwrap(),
        })
        .collect();
    // A new store has nothing in memory.
    drop(store);
    let rows: i64 = rusqlite::Connection::open(folder.path().join("ward.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM events", [], |row| row.get(0))
        .unwrap();
    assert!((2..20).contains(&rows), "{rows} rows");
    let store = open(&folder);
    assert_eq!(store.count().await, Ok(40));
    assert_eq!(store.head(&stream).await, Ok(Seq::new(40)));
    for after in 0..=40 {
        for limit in [1, 2, 5, 40] {
            let upto = told.len().min(after + limit);
            let read = store
                .read(&stream, Seq::new(after as u64), limit)
                .await
                .unwrap();
            assert_eq!(
                read,
                told[after..upto],
                "after {after}, {limit} at the most"
            );
            let tail = store.tail(&stream, limit).await.unwrap();
            assert_eq!(tail, told[told.len() - limit..], "the last {limit}");
        }
    }
    // It goes on where it was.
    let append = append("session/a", Expected::Head(Seq::new(40)), 41..=41);
    assert_eq!(store.append(vec![append]).await, Ok(vec![Seq::new(41)]));
    assert_eq!(store.count().await, Ok(41));
}
