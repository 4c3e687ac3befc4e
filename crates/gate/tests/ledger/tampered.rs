//! What is found when somebody was at the database, while Ward runs.

use gate::ledger::{ProblemKind, Verdict};
use protocol::Digest;
use serde_json::{Value, json};

use crate::home::{Home, problem};

#[tokio::test]
async fn a_change_of_any_byte_of_an_entry_is_named() {
    let home = Home::new();
    let ledger = home.with_six().await;
    let database = home.database();
    let whole = "SELECT data FROM events WHERE seq = 3
        AND stream = 'ledger'";
    let text: String = database.query_row(whole, [], |row| row.get(0)).unwrap();
    let put = |text: &str| {
        let sql = "UPDATE events SET data = ?1 WHERE seq = 3
            AND stream = 'ledger'";
        database.execute(sql, [text]).unwrap();
    };
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        put(std::str::from_utf8(&bytes).unwrap());
        let verdict = ledger.verify().await.unwrap();
        assert!(!verdict.ok, "byte {at} of {text}");
        assert_eq!(verdict.problems[0].seq, 3, "byte {at}: {verdict:?}");
    }
    put(&text);
    assert!(ledger.verify().await.unwrap().ok);
}

#[tokio::test]
async fn a_text_that_says_the_same_in_other_bytes_is_named() {
    let home = Home::new();
    let ledger = home.with_six().await;
    let database = home.database();
    let of = "stream = 'ledger' AND seq = 3";
    let whole = format!("SELECT data FROM events WHERE {of}");
    let text: String = database.query_row(&whole, [], |row| row.get(0)).unwrap();
    let sorted = serde_json::from_str::<Value>(&text).unwrap().to_string();
    let others = [
        format!("{text} "),
        format!("{text}\n"),
        format!(" {text}"),
        text.replacen(':', ":\t", 1),
        text.replacen("\"number\":3", "\"number\":3.0", 1),
        text.replacen("\"number\":3", "\"number\":3e0", 1),
        text.replacen("\"number\"", "\"\\u006eumber\"", 1),
        text.replacen('{', "{\"actor\":\"person:eve\",", 1),
        text.replacen('{', "{\"hash\":\"person:eve\",", 1),
        text.replacen("\"hash\"", "\"\\u0068ash\"", 1),
        sorted,
    ];
    for other in others {
        assert_ne!(other, text);
        let put = format!("UPDATE events SET data = ?1 WHERE {of}");
        database.execute(&put, [&other]).unwrap();
        let changed = "Entry 3 was changed: its hash does not fit what it says.";
        let problems = ledger.verify().await.unwrap().problems;
        assert_eq!(
            problems,
            [problem(3, ProblemKind::Changed, changed)],
            "{other}"
        );
    }
}

/// Puts an entry's text in the form in which the first Wards wrote it: all fields by name.
fn sort(database: &rusqlite::Connection, seq: i64) {
    let of = "stream = 'ledger' AND seq = ?1";
    let whole = format!("SELECT data FROM events WHERE {of}");
    let text: String = database.query_row(&whole, [seq], |row| row.get(0)).unwrap();
    let sorted = serde_json::from_str::<Value>(&text).unwrap().to_string();
    let put = format!("UPDATE events SET data = ?2 WHERE {of}");
    database.execute(&put, (seq, sorted)).unwrap();
}

#[tokio::test]
async fn a_ledger_that_says_how_it_is_written_cannot_be_brought_into_the_older_form() {
    let home = Home::new();
    let ledger = home.with_six().await;
    for seq in 1..=3 {
        sort(&home.database(), seq);
    }
    let problems = ledger.verify().await.unwrap().problems;
    let named: Vec<_> = problems.iter().map(|one| (one.seq, one.kind)).collect();
    assert_eq!(named, [1, 2, 3].map(|seq| (seq, ProblemKind::Changed)));
}

#[tokio::test]
async fn what_the_first_wards_wrote_verifies_up_to_where_it_is_written_as_today() {
    let home = Home::new();
    drop(home.with_six().await);
    // They did not say in the first entry how they write.
    let database = home.database();
    let first = "SELECT data FROM events WHERE stream = 'ledger' AND seq = 1";
    let text: String = database.query_row(first, [], |row| row.get(0)).unwrap();
    let text = text.replace(",\"text\":\"hashed\"", "");
    let put = "UPDATE events SET data = ?1 WHERE stream = 'ledger' AND seq = 1";
    assert_eq!(database.execute(put, [&text]).unwrap(), 1);
    rewrite(&home, 0);
    for seq in 1..=4 {
        sort(&database, seq);
    }
    std::fs::remove_file(home.head()).unwrap();
    let (ledger, _) = home.open().await;
    let gap = |problem: &gate::ledger::Problem| problem.kind == ProblemKind::Gap;
    let problems = ledger.verify().await.unwrap().problems;
    assert!(problems.iter().all(gap), "{problems:?}");
    // Between what is written as today there is none of theirs, and theirs has one text too.
    sort(&database, 6);
    home.tamper("UPDATE events SET data = data || ' ' WHERE LEDGER AND seq = 2");
    let problems = ledger.verify().await.unwrap().problems;
    let changed: Vec<u64> = problems
        .iter()
        .filter(|one| !gap(one))
        .map(|one| one.seq)
        .collect();
    assert_eq!(changed, [2, 6]);
}

#[tokio::test]
async fn each_way_to_tamper_is_told_apart_and_named_with_its_place() {
    let changed = "Entry 4 was changed: its hash does not fit what it says.";
    let ways = [
        (
            "UPDATE events SET data = replace(data, '\"number\":4', '\"number\":5') WHERE LEDGER AND seq = 4",
            vec![problem(4, ProblemKind::Changed, changed)],
            7,
        ),
        (
            "UPDATE events SET data = json_remove(data, '$.hash') WHERE LEDGER AND seq = 4",
            vec![problem(4, ProblemKind::Changed, "Entry 4 has no hash.")],
            7,
        ),
        (
            "UPDATE events SET kind = 'outcome' WHERE LEDGER AND seq = 4",
            vec![problem(
                4,
                ProblemKind::Changed,
                "Entry 4 was changed: beside it the database says \"outcome\" as its `kind`.",
            )],
            7,
        ),
        (
            "UPDATE events SET at = 1 WHERE LEDGER AND seq = 4",
            vec![problem(
                4,
                ProblemKind::Changed,
                "Entry 4 was changed: beside it the database says 1 as its `at`.",
            )],
            7,
        ),
        (
            "UPDATE events SET at = -at WHERE LEDGER AND seq = 4",
            vec![problem(
                4,
                ProblemKind::Unreadable,
                "Entry 4 cannot be read: Integer -1000 out of range at index 2.",
            )],
            7,
        ),
        (
            "DELETE FROM events WHERE LEDGER AND seq = 4",
            vec![problem(4, ProblemKind::Missing, "Entry 4 is missing.")],
            6,
        ),
        (
            "DELETE FROM events WHERE LEDGER AND seq IN (3, 4)",
            vec![problem(
                3,
                ProblemKind::Missing,
                "Entries 3 to 4 are missing.",
            )],
            5,
        ),
        (
            "DELETE FROM events WHERE LEDGER AND seq = 4;
             UPDATE events SET seq = seq - 1 WHERE LEDGER AND seq = 5;
             UPDATE events SET seq = seq - 1 WHERE LEDGER AND seq = 6;
             UPDATE events SET seq = seq - 1 WHERE LEDGER AND seq = 7",
            vec![
                problem(4, ProblemKind::Moved, "In the place of entry 4 is entry 5."),
                problem(5, ProblemKind::Moved, "In the place of entry 5 is entry 6."),
                problem(6, ProblemKind::Moved, "In the place of entry 6 is entry 7."),
                problem(
                    7,
                    ProblemKind::CutOff,
                    "The ledger ends with entry 6, but 7 were written: its end was cut off.",
                ),
            ],
            6,
        ),
        (
            "UPDATE events SET seq = 40 WHERE LEDGER AND seq = 4;
             UPDATE events SET seq = 4 WHERE LEDGER AND seq = 5;
             UPDATE events SET seq = 5 WHERE LEDGER AND seq = 40",
            vec![
                problem(4, ProblemKind::Moved, "In the place of entry 4 is entry 5."),
                problem(5, ProblemKind::Moved, "In the place of entry 5 is entry 4."),
            ],
            7,
        ),
        (
            "DELETE FROM events WHERE LEDGER AND seq > 5",
            vec![problem(
                6,
                ProblemKind::CutOff,
                "The ledger ends with entry 5, but 7 were written: its end was cut off.",
            )],
            5,
        ),
        (
            "DELETE FROM events WHERE LEDGER",
            vec![problem(
                1,
                ProblemKind::CutOff,
                "The ledger ends with entry 0, but 7 were written: its end was cut off.",
            )],
            0,
        ),
    ];
    for (sql, problems, entries) in ways {
        let home = Home::new();
        let ledger = home.with_six().await;
        home.tamper(sql);
        let verdict = ledger.verify().await.unwrap();
        let expected = Verdict {
            ok: false,
            entries,
            head: verdict.head.clone(),
            problems,
            more: 0,
        };
        assert_eq!(verdict, expected, "{sql}");
    }
}

#[tokio::test]
async fn entries_that_cannot_be_read_are_named_and_the_others_looked_at_all_the_same() {
    let home = Home::new();
    let ledger = home.with_six().await;
    home.tamper(
        "UPDATE events SET data = '{' WHERE LEDGER AND seq IN (3, 7);
         UPDATE events SET data = replace(data, '\"number\":5', '\"number\":6') WHERE LEDGER AND seq = 5",
    );
    let verdict = ledger.verify().await.unwrap();
    let named: Vec<_> = verdict
        .problems
        .iter()
        .map(|problem| (problem.seq, problem.kind))
        .collect();
    assert_eq!(
        named,
        [
            (3, ProblemKind::Unreadable),
            (5, ProblemKind::Changed),
            (7, ProblemKind::Unreadable),
        ]
    );
    assert_eq!(verdict.entries, 7);
    assert!(ledger.tail(1).await.is_err());
}

/// Changes what an entry says and makes all hashes fit again, as anyone can who knows how.
pub(crate) fn rewrite(home: &Home, from: u64) {
    let database = home.database();
    let of = "stream = 'ledger'";
    let texts: Vec<String> = database
        .prepare(&format!("SELECT data FROM events WHERE {of} ORDER BY seq"))
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut prev = None;
    for (seq, text) in (1_u64..).zip(texts) {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        fields.remove("hash").unwrap();
        if seq == from {
            fields.insert("actor".into(), json!("person:eve"));
        }
        if let Some(prev) = prev {
            fields.insert("prev".into(), prev);
        }
        let hash: Digest = gate::canonical::digest(&fields).unwrap();
        prev = Some(json!(hash));
        let sql = format!("UPDATE events SET data = ?1 WHERE {of} AND seq = ?2");
        // There is nothing in it that canonical JSON writes otherwise.
        let text = Value::Object(fields).to_string();
        let text = text.strip_suffix('}').unwrap();
        let text = format!("{text},\"hash\":{}}}", json!(hash));
        database.execute(&sql, (text, seq as i64)).unwrap();
    }
}

#[tokio::test]
async fn a_chain_that_was_written_anew_does_not_fit_the_head() {
    let home = Home::new();
    let ledger = home.with_six().await;
    rewrite(&home, 4);
    let verdict = ledger.verify().await.unwrap();
    assert_eq!(
        verdict.problems,
        [problem(
            7,
            ProblemKind::Rewritten,
            "Entry 7 is not the one that was written there: the ledger was written anew.",
        )]
    );
}

#[tokio::test]
async fn a_head_file_that_is_gone_or_replaced_is_named() {
    let home = Home::new();
    let ledger = home.with_six().await;
    std::fs::write(home.head(), "something else").unwrap();
    let named = |verdict: Verdict| {
        let problems = verdict.problems.into_iter();
        problems
            .map(|problem| (problem.seq, problem.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(ledger.verify().await.unwrap()),
        [(7, ProblemKind::Head)]
    );
    std::fs::remove_file(home.head()).unwrap();
    assert_eq!(
        named(ledger.verify().await.unwrap()),
        [(7, ProblemKind::Head)]
    );
}

#[tokio::test]
async fn of_many_problems_a_hundred_are_named_and_the_others_counted() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let entries = (0..300).map(crate::home::decision).collect();
    ledger.write(entries, vec![]).await.unwrap();
    home.tamper("UPDATE events SET at = 1 WHERE LEDGER AND seq > 1");
    let verdict = ledger.verify().await.unwrap();
    assert_eq!((verdict.problems.len(), verdict.more), (100, 200));
}
