//! What is written, and that it is there when it is told.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gate::ledger::{Entry, EntryKind, Ledger, Verdict, Written};
use serde_json::{Value, json};
use store::{Append, Event, Json, Seq, Store, StoreError, StreamName};
use store_sqlite::SqliteStore;

use crate::home::{Home, SECRET, decision, entry, first_of, redactor, same};

fn sound(ledger: &Ledger<impl Store>, entries: u64) -> Verdict {
    Verdict {
        ok: true,
        entries,
        head: Some(ledger.head()),
        problems: vec![],
        more: 0,
    }
}

#[tokio::test]
async fn an_entry_is_chained_to_the_one_before_it_and_its_hash_can_be_computed_by_anyone() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let news = [
        entry(
            EntryKind::Request,
            Some("a1"),
            json!({ "é": [1, 2.5, -3e-9, null] }),
        ),
        entry(EntryKind::Outcome, Some("a1"), json!("done")),
    ];
    let written = ledger.write(news.to_vec(), vec![]).await.unwrap();
    let places = Written {
        seqs: vec![Seq::new(2), Seq::new(3)],
        heads: vec![],
    };
    assert_eq!(written, places);

    let entries = ledger.read(Seq::START, 10).await.unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[0].kind, EntryKind::Begun);
    assert_eq!(entries[0].prev.as_str(), format!("sha256:{:064}", 0));
    assert!(same(&entries[1], &news[0]) && same(&entries[2], &news[1]));
    for pair in entries.windows(2) {
        assert_eq!(pair[1].prev, pair[0].hash);
    }
    for entry in &entries {
        let Value::Object(mut fields) = json!(entry) else {
            panic!("an entry is an object");
        };
        fields.remove("hash");
        assert_eq!(gate::canonical::digest(&fields).unwrap(), entry.hash);
    }
    assert_eq!(ledger.tail(2).await.unwrap(), entries[1..]);
    assert_eq!(ledger.beyond(Seq::START).await, Ok(Seq::new(3)));
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 3));
}

#[tokio::test]
async fn what_is_written_beside_the_entries_is_there_with_them_or_nothing_is() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let write = || ledger.write(vec![decision(1)], vec![first_of("action/a"), first_of("x")]);
    let written = write().await.unwrap();
    assert_eq!(written.heads, [Seq::new(1), Seq::new(1)]);
    let refused = write().await;
    let conflict = StoreError::Conflict {
        stream: StreamName::new("action/a").unwrap(),
        expected: Seq::START,
        actual: Seq::new(1),
    };
    assert_eq!(refused, Err(conflict));
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_who_write_at_once_each_is_told_when_theirs_is_written() {
    const EACH: u64 = 40;
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    let new = decision(writer * EACH + number);
                    let written = ledger.write(vec![new.clone()], vec![]).await.unwrap();
                    let before = Seq::new(written.seqs[0].get() - 1);
                    let read = ledger.read(before, 1).await.unwrap();
                    assert!(same(&read[0], &new));
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(
        ledger.verify().await.unwrap(),
        sound(&ledger, 1 + 64 * EACH)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_conflict_is_told_to_the_one_who_made_it_and_holds_up_nobody() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let write = |stream: Option<u64>, number: u64| {
        let ledger = ledger.clone();
        let beside = stream.map(|stream| first_of(&format!("action/{stream}")));
        tokio::spawn(async move {
            let beside: Vec<Append> = beside.into_iter().collect();
            ledger.write(vec![decision(number)], beside).await
        })
    };
    // Each of twenty streams is begun by three at once; a hundred others want none of them.
    let rivals: Vec<_> = (0..60)
        .map(|number| write(Some(number % 20), number))
        .collect();
    let others: Vec<_> = (100..200).map(|number| write(None, number)).collect();
    let mut numbers = Vec::new();
    let mut winners = Vec::new();
    for (number, rival) in (0..).zip(rivals) {
        match rival.await.unwrap() {
            Ok(written) => {
                assert_eq!(written.heads, [Seq::new(1)]);
                winners.push(number % 20);
                numbers.push(number);
            }
            Err(StoreError::Conflict { stream, .. }) => {
                assert_eq!(stream.as_str(), format!("action/{}", number % 20));
            }
            Err(error) => panic!("{error}"),
        }
    }
    for (number, other) in (100..).zip(others) {
        assert_eq!(other.await.unwrap().unwrap().heads, []);
        numbers.push(number);
    }
    winners.sort_unstable();
    assert_eq!(winners, (0..20).collect::<Vec<u64>>());
    let mut read: Vec<u64> = ledger
        .read(Seq::new(1), 1000)
        .await
        .unwrap()
        .iter()
        .map(|entry| entry.data["number"].as_u64().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read, numbers);
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 121));
}

/// A store whose appends wait until they are let through.
struct Held {
    store: SqliteStore,
    through: tokio::sync::Semaphore,
}

impl Store for Held {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Seq>, StoreError> {
        let _through = self.through.acquire().await.unwrap();
        self.store.append(batch).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.store.read(stream, after, limit).await
    }

    async fn read_texts(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Event, Json)>, StoreError> {
        self.store.read_texts(stream, after, limit).await
    }

    async fn tail(&self, stream: &StreamName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.store.tail(stream, limit).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Seq, StoreError> {
        self.store.head(stream).await
    }

    async fn beyond(&self, stream: &StreamName, after: Seq) -> Result<Seq, StoreError> {
        self.store.beyond(stream, after).await
    }

    async fn remove(&self, streams: Vec<StreamName>) -> Result<(), StoreError> {
        self.store.remove(streams).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.store.count().await
    }
}

#[tokio::test]
async fn a_round_whose_leader_went_away_is_finished_by_the_next_in_line() {
    let home = Home::new();
    let store = Arc::new(Held {
        store: home.store(),
        through: tokio::sync::Semaphore::new(1),
    });
    let (ledger, _) = Ledger::open(Arc::clone(&store), home.head(), redactor())
        .await
        .unwrap();
    let hold = store.through.acquire().await.unwrap();

    let mut polled = Context::from_waker(Waker::noop());
    let mut leader = Box::pin(ledger.write(vec![decision(1)], vec![]));
    let mut next = Box::pin(ledger.write(vec![decision(2)], vec![]));
    let mut gone = Box::pin(ledger.write(vec![decision(3)], vec![]));
    // At first the leader lets others in.
    assert!(matches!(leader.as_mut().poll(&mut polled), Poll::Pending));
    for write in [&mut leader, &mut next, &mut gone] {
        assert!(matches!(write.as_mut().poll(&mut polled), Poll::Pending));
    }
    // The first is on its way and cannot be called back; the third was not taken up yet.
    drop(leader);
    drop(gone);
    drop(hold);
    assert_eq!(next.await.unwrap().seqs, [Seq::new(3)]);
    let entries = ledger.read(Seq::new(1), 10).await.unwrap();
    assert_eq!(entries.len(), 2);
    assert!(same(&entries[0], &decision(1)) && same(&entries[1], &decision(2)));
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 3));
}

#[tokio::test]
async fn those_who_wait_are_told_also_when_their_leader_went_away() {
    let home = Home::new();
    let store = Arc::new(Held {
        store: home.store(),
        through: tokio::sync::Semaphore::new(1),
    });
    let (ledger, _) = Ledger::open(Arc::clone(&store), home.head(), redactor())
        .await
        .unwrap();
    let mut polled = Context::from_waker(Waker::noop());
    let hold = store.through.acquire().await.unwrap();
    let mut first = Box::pin(ledger.write(vec![decision(1)], vec![]));
    let mut leader = Box::pin(ledger.write(vec![decision(2)], vec![]));
    let mut led = Box::pin(ledger.write(vec![decision(3)], vec![]));
    // At first a leader lets others in.
    assert!(matches!(first.as_mut().poll(&mut polled), Poll::Pending));
    for write in [&mut first, &mut leader, &mut led] {
        assert!(matches!(write.as_mut().poll(&mut polled), Poll::Pending));
    }
    drop(hold);
    first.await.unwrap();
    // Now the second leads, and the third is on its way with it.
    let hold = store.through.acquire().await.unwrap();
    for _ in 0..2 {
        assert!(matches!(leader.as_mut().poll(&mut polled), Poll::Pending));
    }
    drop(leader);
    drop(hold);
    let told = tokio::time::timeout(Duration::from_secs(20), led).await;
    assert_eq!(told.unwrap().unwrap().seqs, [Seq::new(4)]);
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_are_dropped_at_any_moment_leave_the_chain_whole() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let tasks: Vec<_> = (0..16_u64)
        .map(|task| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut told = Vec::new();
                for number in 0..50 {
                    let number = task * 100 + number;
                    let patience = async {
                        for _ in 0..number % 7 {
                            tokio::task::yield_now().await;
                        }
                        if number % 7 == 6 {
                            std::future::pending::<()>().await;
                        }
                    };
                    tokio::select! {
                        written = ledger.write(vec![decision(number)], vec![]) => {
                            told.push((written.unwrap().seqs[0], number));
                        }
                        () = patience => {}
                    }
                }
                told
            })
        })
        .collect();
    let mut told = Vec::new();
    for task in tasks {
        told.extend(task.await.unwrap());
    }
    assert!(told.len() >= 16 * 7, "{}", told.len());
    // One more, which also finishes what was left behind.
    ledger.write(vec![decision(9_999)], vec![]).await.unwrap();
    let entries = ledger.read(Seq::START, 10_000).await.unwrap();
    for (seq, number) in told {
        let at = usize::try_from(seq.get() - 1).unwrap();
        assert!(same(&entries[at], &decision(number)), "{seq}");
    }
    let verdict = sound(&ledger, entries.len() as u64);
    assert_eq!(ledger.verify().await.unwrap(), verdict);
}

#[tokio::test]
async fn no_secret_reaches_the_disk() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let mut new = entry(
        EntryKind::Request,
        Some("a1"),
        json!({
            "command": format!("curl -u x:'{SECRET}' https://me:hunter22@host/ # {key}"),
            "env": { "DB_PASSWORD": "tiger" },
            SECRET: "as a name",
            "content": format!("{}{SECRET}", "x".repeat(150)).repeat(60),
        }),
    );
    new.role = Some(format!("role {SECRET}"));
    ledger.write(vec![new], vec![]).await.unwrap();
    let Some(Entry { role, data, .. }) = ledger.tail(1).await.unwrap().pop() else {
        panic!("it was written");
    };
    assert_eq!(role.as_deref(), Some("role [redacted]"));
    let start = format!("{0}[redacted]{1}", "x".repeat(150), "x".repeat(40));
    let content = format!("{}{SECRET}", "x".repeat(150)).repeat(60);
    assert_eq!(
        data,
        json!({
            "command": "curl -u x:'[redacted]' https://me:[redacted:password]@host/ # [redacted:github]",
            "env": { "DB_PASSWORD": "[redacted]" },
            "[redacted]": "as a name",
            "content": {
                "sha256": protocol::Digest::of(content.as_bytes()),
                "bytes": content.len(),
                "start": start,
            },
        })
    );
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 2));
    let bytes = home.bytes();
    for secret in [SECRET, key, "hunter22", "tiger"] {
        let found = bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!found, "{secret}");
    }
}

#[tokio::test]
async fn what_an_agent_sends_cannot_make_an_entry_that_is_not_read_back() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let numbers = json!([
        u64::MAX,
        i64::MIN,
        0.1 + 0.2,
        1e308,
        5e-324,
        -0.0,
        (1_u64 << 53) + 1
    ]);
    let many: Vec<u32> = (0..100_000).collect();
    for data in [nested, numbers, json!({ "many": many, "few": 1 })] {
        let new = entry(EntryKind::Request, None, data);
        ledger.write(vec![new], vec![]).await.unwrap();
    }
    assert_eq!(ledger.verify().await.unwrap(), sound(&ledger, 4));
    let read = ledger.read(Seq::new(2), 10).await.unwrap();
    assert_eq!(
        read[0].data,
        json!([
            "18446744073709551615",
            "-9223372036854775808",
            0.1 + 0.2,
            1e308,
            5e-324,
            0,
            "9007199254740993"
        ])
    );
    assert_eq!(read[1].data["few"], 1);
    assert_eq!(read[1].data["many"]["bytes"], json!(many).to_string().len());
}

#[tokio::test]
async fn an_export_is_every_entry_as_a_line() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    for number in 0..600 {
        ledger.write(vec![decision(number)], vec![]).await.unwrap();
    }
    home.tamper("UPDATE events SET data = 'x' WHERE LEDGER AND seq = 300");
    let mut export = ledger.export(Seq::new(1));
    let mut lines = Vec::new();
    while let Some(piece) = export.piece().await.unwrap() {
        assert!(piece.ends_with('\n'));
        lines.extend(piece.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    assert_eq!(lines.len(), 600);
    for (number, line) in (0..).zip(lines) {
        let line: Value = serde_json::from_str(&line).unwrap();
        if number == 298 {
            assert_eq!(line["seq"], 300);
            assert!(line["unreadable"].is_string());
        } else {
            let entry: Entry = serde_json::from_value(line).unwrap();
            assert_eq!(entry.seq, Seq::new(number + 2));
            assert!(same(&entry, &decision(number)));
        }
    }
}
