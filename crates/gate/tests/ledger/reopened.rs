//! What is found, and kept, when a ledger is opened again.

use gate::ledger::{Entry, EntryKind, Opened, ProblemKind, Standing};
use serde_json::{Value, json};
use store::Seq;

use crate::home::{Home, decision, entry, problem};
use crate::tampered::rewrite;

const CUT_OFF: &str = "The ledger had 7 entries when it was last written, and 5 when it was opened: its end was cut off, or was lost with the machine's power.";
const REWRITTEN: &str = "Entry 7 of the ledger is not the one that was written there: it was changed, or the ledger was written anew.";
const NO_HEAD: &str = "The ledger has 7 entries, but the file outside the store that says where it ends is gone. Whether entries were cut off or written anew before this one cannot be told.";
const BAD_HEAD: &str = "The ledger has 7 entries, but the file outside the store that says where it ends was not written by Ward. Whether entries were cut off or written anew before this one cannot be told.";
const EMPTIED: &str = "The ledger had 7 entries when it was last written, and 0 when it was opened: its end was cut off, or was lost with the machine's power.";

#[tokio::test]
async fn a_new_ledger_begins_with_an_entry_of_its_own_and_is_then_found_as_it_was_left() {
    let home = Home::new();
    let (ledger, opened) = home.open().await;
    let new = Opened {
        standing: Standing::New,
        unfinished: vec![],
    };
    assert_eq!(opened, new);
    let head = ledger.head();
    assert_eq!(head.seq, Seq::new(1));
    drop(ledger);
    let (ledger, opened) = home.open().await;
    let sound = Opened {
        standing: Standing::Sound,
        unfinished: vec![],
    };
    assert_eq!(opened, sound);
    assert_eq!(ledger.head(), head);
    let other = Home::new().open().await.0.head();
    assert_ne!(other.hash, head.hash);
}

#[tokio::test]
async fn what_does_not_fit_is_an_entry_from_then_on_and_named_for_ever() {
    let cut = "DELETE FROM events WHERE LEDGER AND seq > 5";
    let emptied = "DELETE FROM events WHERE LEDGER";
    let last = "UPDATE events SET data = replace(data, '\"number\":7', '\"number\":8') WHERE LEDGER AND seq = 7";
    let unreadable = "UPDATE events SET data = '}' WHERE LEDGER AND seq = 7";
    type Way = Box<dyn Fn(&Home)>;
    let sql = |sql: &'static str| -> Way { Box::new(move |home| home.tamper(sql)) };
    let ways: [(Way, &str, u64); 7] = [
        (sql(cut), CUT_OFF, 6),
        (sql(emptied), EMPTIED, 1),
        (sql(last), REWRITTEN, 8),
        (sql(unreadable), REWRITTEN, 8),
        (Box::new(|home| rewrite(home, 3)), REWRITTEN, 8),
        (
            Box::new(|home| std::fs::remove_file(home.head()).unwrap()),
            NO_HEAD,
            8,
        ),
        (
            Box::new(|home| std::fs::write(home.head(), "x".repeat(999)).unwrap()),
            BAD_HEAD,
            8,
        ),
    ];
    for (tamper, what, gap) in ways {
        let home = Home::new();
        drop(home.with_six().await);
        tamper(&home);
        let (ledger, opened) = home.open().await;
        assert_eq!(opened.standing, Standing::Gap(what.into()));
        assert_eq!(ledger.head().seq, Seq::new(gap), "{what}");
        // It goes on, and is opened again: it is not forgotten for that, nor told twice.
        ledger.write(vec![decision(1)], vec![]).await.unwrap();
        drop(ledger);
        let (ledger, opened) = home.open().await;
        assert_eq!(opened.standing, Standing::Sound, "{what}");
        let verdict = ledger.verify().await.unwrap();
        assert!(!verdict.ok);
        let gaps: Vec<_> = verdict
            .problems
            .into_iter()
            .filter(|problem| problem.kind == ProblemKind::Gap)
            .collect();
        assert_eq!(gaps, [problem(gap, ProblemKind::Gap, what)]);
    }
}

#[tokio::test]
async fn a_gap_says_what_was_expected_and_what_was_found() {
    let home = Home::new();
    let ledger = home.with_six().await;
    let expected = ledger.head();
    let found = ledger.read(Seq::new(4), 1).await.unwrap();
    drop(ledger);
    home.tamper("DELETE FROM events WHERE LEDGER AND seq > 5");
    let (ledger, _) = home.open().await;
    let gap: Entry = ledger.tail(1).await.unwrap().pop().unwrap();
    assert_eq!(gap.kind, EntryKind::Gap);
    assert_eq!(gap.actor, "ward");
    assert_eq!(gap.prev, found[0].hash);
    assert_eq!(
        gap.data,
        json!({
            "what": CUT_OFF,
            "expected": expected,
            "found": { "seq": 5, "hash": found[0].hash },
        })
    );
}

#[tokio::test]
async fn a_gap_that_is_cut_off_again_is_a_gap_again() {
    let home = Home::new();
    drop(home.with_six().await);
    let cut = "DELETE FROM events WHERE LEDGER AND seq > 5";
    for _ in 0..2 {
        home.tamper(cut);
        let (ledger, opened) = home.open().await;
        assert!(matches!(opened.standing, Standing::Gap(_)));
        assert!(!ledger.verify().await.unwrap().ok);
    }
}

#[tokio::test]
async fn a_store_that_is_ahead_of_its_head_was_killed_between_the_two_and_is_sound() {
    let home = Home::new();
    let ledger = home.with_six().await;
    let head = std::fs::read(home.head()).unwrap();
    let request = entry(EntryKind::Request, Some("a"), json!({}));
    ledger.write(vec![request], vec![]).await.unwrap();
    ledger.write(vec![decision(9)], vec![]).await.unwrap();
    drop(ledger);
    std::fs::write(home.head(), head).unwrap();
    let (ledger, opened) = home.open().await;
    assert_eq!(opened.standing, Standing::Sound);
    assert_eq!(ids(&opened), ["a"]);
    assert_eq!(ledger.head().seq, Seq::new(9));
    assert!(ledger.verify().await.unwrap().ok);
}

fn ids(opened: &Opened) -> Vec<&str> {
    let ids = opened.unfinished.iter().map(|one| one.action_id.as_str());
    ids.collect()
}

#[tokio::test]
async fn what_began_and_did_not_end_is_told_with_its_request() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    let write = async |kind, action: &str, data: Value| {
        let written = ledger.write(vec![entry(kind, Some(action), data)], vec![]);
        written.await.unwrap().seqs[0]
    };
    write(EntryKind::Request, "a", json!({ "n": 1 })).await;
    write(EntryKind::Request, "b", json!({ "n": 2 })).await;
    write(EntryKind::Outcome, "a", json!(null)).await;
    let third = write(EntryKind::Request, "c", json!({ "n": 3 })).await;
    write(EntryKind::Approval, "c", json!(null)).await;
    // Others begin and end for longer than what is read at once.
    for number in 0..300 {
        let action = format!("other{number}");
        write(EntryKind::Request, &action, json!(null)).await;
        write(EntryKind::Outcome, &action, json!(null)).await;
    }
    let entries = ledger.read(Seq::START, 1_000).await.unwrap();
    drop(ledger);

    let (ledger, opened) = home.open().await;
    assert_eq!(opened.standing, Standing::Sound);
    assert_eq!(ids(&opened), ["b", "c"]);
    let requests: Vec<_> = opened.unfinished.iter().map(|one| &one.request).collect();
    assert_eq!(requests, [&entries[2], &entries[4]]);
    assert_eq!(requests[1].seq, third);

    let ended = entry(EntryKind::Outcome, Some("b"), json!(null));
    ledger.write(vec![ended], vec![]).await.unwrap();
    drop(ledger);
    let lines = std::fs::read_to_string(home.head()).unwrap();
    // Everything before the request of `c` has ended, by the line that was written last.
    let quiet = lines.split(' ').nth(3).unwrap();
    assert_eq!(quiet, format!("{:020}", third.get() - 1));
    let (ledger, opened) = home.open().await;
    assert_eq!(ids(&opened), ["c"]);

    let ended = entry(EntryKind::Outcome, Some("c"), json!(null));
    ledger.write(vec![ended], vec![]).await.unwrap();
    drop(ledger);
    assert_eq!(home.open().await.1.unfinished, []);
}

#[tokio::test]
async fn an_end_that_was_cut_off_leaves_its_action_unfinished() {
    let home = Home::new();
    let (ledger, _) = home.open().await;
    for kind in [EntryKind::Request, EntryKind::Outcome] {
        let entry = entry(kind, Some("a"), json!(null));
        ledger.write(vec![entry], vec![]).await.unwrap();
    }
    drop(ledger);
    home.tamper("DELETE FROM events WHERE LEDGER AND seq > 2");
    let (_, opened) = home.open().await;
    assert_eq!(ids(&opened), ["a"]);
}
