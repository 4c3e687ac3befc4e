//! The page's replica as plain state: what is pushed, kept, refused and let go of.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use notebook::{
    CellCreated, CellId, CellType, ExecutionAssigned, ExecutionId, ExecutionRequested, Notebook,
    NotebookEvent, NotebookTitled, SessionId, StreamKind, Terminal,
};
use runtime_browser::{Answer, Book, Offline};
use serde_json::{Value, json};
use store::Seq;
use store::replica::Base;

fn cell(id: &str) -> NotebookEvent {
    NotebookEvent::CellCreated(CellCreated {
        cell_id: CellId::new(id).unwrap(),
        cell_type: CellType::Code,
        place: Notebook::default().place_last(),
        source: String::new(),
        metadata: serde_json::Map::new(),
        extra: serde_json::Map::new(),
    })
}

fn titled(title: &str) -> NotebookEvent {
    NotebookEvent::NotebookTitled(NotebookTitled {
        title: title.to_owned(),
    })
}

fn wanted(run: &str) -> NotebookEvent {
    NotebookEvent::ExecutionRequested(ExecutionRequested {
        execution_id: ExecutionId::new(run).unwrap(),
        cell_id: CellId::new("a").unwrap(),
        runtime_type: None,
        role: None,
    })
}

fn printed(run: &str, text: &str) -> NotebookEvent {
    NotebookEvent::Terminal(Terminal {
        execution_id: ExecutionId::new(run).unwrap(),
        stream: StreamKind::Stdout,
        text: text.to_owned(),
    })
}

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn answer(status: u16, body: Value) -> Answer {
    Answer { status, body }
}

/// An event as Ward tells it.
fn told(number: u64, writer: &str, own: u64, event: &NotebookEvent) -> (u64, Value) {
    let id = json!({ "writer": writer, "number": own });
    let recorded = json!({ "id": id, "event": event, "actor": "person:ada", "at": 1 });
    (number, recorded)
}

fn connected() -> Book {
    let mut book = Book::opened("me", Base::default());
    book.connect();
    book
}

fn kinds(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let entries = body["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["event"]["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_is_written_offline_is_seen_at_once_and_pushed_when_there_is_a_connection() {
    let mut book = Book::opened("me", Base::default());
    book.write(titled("Sums")).unwrap();
    assert_eq!(book.state().title, "Sums");
    assert_eq!(book.next_push(), None);
    book.connect();
    let push = book.next_push().unwrap();
    assert_eq!((push.expected, push.count), (Seq::START, 1));
    assert!(book.answered(&push, &answer(200, json!({ "head": 1, "appended": 1 }))));
    assert_eq!(book.pending().count(), 1, "not before it is told back");
    assert!(book.told(vec![told(1, "me", 1, &titled("Sums"))]));
    assert_eq!(book.pending().count(), 0);
    assert_eq!(book.confirmed().state.title, "Sums");
    assert_eq!(book.next_push(), None);
}

#[test]
fn a_run_is_asked_for_only_over_a_connection_and_never_later() {
    let mut book = Book::opened("me", Base::default());
    book.write(cell("a")).unwrap();
    assert_eq!(book.write(wanted("r")), Err(Offline));
    book.connect();
    book.write(wanted("r")).unwrap();
    book.disconnect();
    let refused = book.take_refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].event, wanted("r"));
    book.connect();
    let push = book.next_push().unwrap();
    assert_eq!(kinds(&push.body), ["cell.created"], "the edit stays");
}

#[test]
fn of_several_events_only_the_one_that_ward_refuses_is_lost_and_the_page_is_told() {
    let mut book = connected();
    for event in [titled("one"), titled("much too long"), cell("a")] {
        book.write(event).unwrap();
    }
    // The first was on its way when the others were written.
    let first = book.next_push().unwrap();
    book.again();
    let push = book.next_push().unwrap();
    assert_eq!((first.count, push.count), (1, 3));
    let no = answer(
        413,
        json!({ "error": "A title has at most 200 characters." }),
    );
    assert!(book.answered(&push, &no));
    let mut head = 0;
    let mut taken = Vec::new();
    while let Some(push) = book.next_push() {
        assert_eq!(push.count, 1, "one at a time, until it is found");
        let body: Value = serde_json::from_str(&push.body).unwrap();
        let entry = &body["entries"][0];
        if entry["event"]["title"] == "much too long" {
            assert!(book.answered(&push, &no));
            continue;
        }
        head += 1;
        taken.push(entry["event"]["kind"].clone());
        let own = entry["id"]["number"].as_u64().unwrap();
        let event = serde_json::from_value(entry["event"].clone()).unwrap();
        assert!(book.answered(&push, &answer(200, json!({ "head": head }))));
        assert!(book.told(vec![told(head, "me", own, &event)]));
    }
    assert_eq!(taken, ["notebook.titled", "cell.created"]);
    let refused = book.take_refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].event, titled("much too long"));
    assert_eq!(refused[0].why, "A title has at most 200 characters.");
    assert_eq!(book.state().title, "one");
    assert_eq!(book.pending().count(), 0);
}

#[test]
fn signed_out_gone_busy_and_not_looked_at_lose_nothing() {
    let mut book = connected();
    book.write(titled("kept")).unwrap();
    for status in [401, 403, 404, 410, 429, 500, 503] {
        let push = book.next_push().unwrap();
        assert!(
            !book.answered(&push, &answer(status, Value::Null)),
            "{status}"
        );
        book.again();
    }
    assert_eq!(book.pending().count(), 1);
    assert!(book.take_refused().is_empty());
}

#[test]
fn what_is_refused_is_what_was_sent_whatever_was_let_go_of_meanwhile() {
    let mut book = connected();
    book.write(wanted("r1")).unwrap();
    let push = book.next_push().unwrap();
    book.write(titled("kept")).unwrap();
    book.disconnect();
    assert_eq!(book.take_refused().len(), 1, "the wish is not sent later");
    let no = answer(403, json!({ "error": "No.", "kind": "forbidden" }));
    assert!(book.answered(&push, &no));
    assert_eq!(book.pending().count(), 1);
    assert!(book.take_refused().is_empty());
}

#[test]
fn a_session_that_the_notebook_says_is_over_is_not_lost_besides() {
    let mut book = connected();
    let over = session("s1");
    book.set_token(over.clone(), "token".into());
    let started = json!({ "kind": "runtime.started", "session_id": "s1", "runtime_id": "r", "runtime_type": "echo", "client_id": "ada", "capabilities": {} });
    let ended = json!({ "kind": "runtime.terminated", "session_id": "s1", "reason": "displaced" });
    let [started, ended] = [started, ended].map(|event| serde_json::from_value(event).unwrap());
    assert!(book.told(vec![told(1, "ward", 1, &started)]));
    book.say(&over, printed("r1", "a"));
    let push = book.next_push().unwrap();
    assert!(!book.is_over(&over));
    assert!(book.told(vec![told(2, "ward", 2, &ended)]));
    assert!(book.is_over(&over));
    let no = answer(403, json!({ "error": "Not yours.", "kind": "forbidden" }));
    assert!(book.answered(&push, &no));
    assert_eq!((book.lost(&over), book.pending().count()), (None, 0));
}

#[test]
fn a_push_carries_one_sessions_token_and_no_others() {
    let mut book = connected();
    book.set_token(session("s1"), "token-1".into());
    book.set_token(session("s2"), "token-2".into());
    book.write(titled("x")).unwrap();
    book.say(&session("s1"), printed("r1", "a"));
    book.say(&session("s2"), printed("r2", "b"));
    // The title went alone, before the others were there.
    book.next_push().unwrap();
    book.again();
    let push = book.next_push().unwrap();
    assert_eq!(kinds(&push.body), ["notebook.titled", "output.terminal"]);
    assert_eq!(push.token.as_deref(), Some("token-1"));
    book.answered(&push, &answer(200, json!({ "head": 2 })));
    book.told(vec![
        told(1, "me", 1, &titled("x")),
        told(2, "me", 2, &printed("r1", "a")),
    ]);
    let push = book.next_push().unwrap();
    assert_eq!(push.token.as_deref(), Some("token-2"));
    assert_eq!(push.count, 1);
}

#[test]
fn a_session_that_is_over_takes_its_own_words_with_it_and_no_edit() {
    let mut book = connected();
    let gone = session("s1");
    book.set_token(gone.clone(), "token".into());
    book.say(&gone, printed("r1", "a"));
    book.say(&gone, printed("r1", "b"));
    book.write(titled("mine")).unwrap();
    let push = book.next_push().unwrap();
    assert_eq!(push.count, 1);
    let no = answer(403, json!({ "error": "Not yours.", "kind": "forbidden" }));
    assert!(book.answered(&push, &no));
    assert_eq!(book.lost(&gone), Some("Not yours."));
    assert!(
        book.take_refused().is_empty(),
        "that is for the agent to know"
    );
    let push = book.next_push().unwrap();
    assert_eq!(kinds(&push.body), ["notebook.titled"]);
    assert_eq!(push.token, None);
}

#[test]
fn an_output_that_ward_refuses_is_dropped_alone_and_its_runtime_goes_on() {
    let mut book = connected();
    let alive = session("s1");
    book.set_token(alive.clone(), "token".into());
    book.say(&alive, printed("r1", "a"));
    book.next_push().unwrap();
    let deep = NotebookEvent::ResultOutput(notebook::ResultOutput {
        execution_id: ExecutionId::new("r1").unwrap(),
        bundle: notebook::Bundle::text("deep"),
        execution_count: None,
    });
    book.say(&alive, deep.clone());
    book.say(&alive, printed("r1", "b"));
    book.again();
    let mut taken = Vec::new();
    while let Some(push) = book.next_push() {
        let body: Value = serde_json::from_str(&push.body).unwrap();
        if push.body.contains("output.result") {
            let no = answer(413, json!({ "error": "Too deep.", "kind": "too_large" }));
            assert!(book.answered(&push, &no));
            continue;
        }
        for entry in body["entries"].as_array().unwrap() {
            let event = serde_json::from_value(entry["event"].clone()).unwrap();
            let own = entry["id"]["number"].as_u64().unwrap();
            taken.push((own, event));
        }
        let head = taken.len() as u64;
        assert!(book.answered(&push, &answer(200, json!({ "head": head }))));
        let known = head - push.count as u64;
        let new = (known + 1..).zip(&taken[usize::try_from(known).unwrap()..]);
        let new = new.map(|(at, (own, event))| told(at, "me", *own, event));
        assert!(book.told(new.collect()));
    }
    assert_eq!(
        taken,
        [
            (1, printed("r1", "a")),
            (2, deep.instead().unwrap()),
            (3, printed("r1", "b"))
        ]
    );
    assert!(matches!(taken[1].1, NotebookEvent::Dropped(_)));
    assert_eq!(book.lost(&alive), None);
    assert!(book.take_refused().is_empty());
}

#[test]
fn a_wish_that_lost_its_meaning_by_what_others_did_is_told() {
    let mut book = connected();
    assert!(book.told(vec![told(1, "other", 1, &cell("a"))]));
    book.write(wanted("r")).unwrap();
    let theirs = serde_json::from_value(json!({ "cell_id": "a", "source": "another" })).unwrap();
    let theirs = NotebookEvent::CellSource(theirs);
    assert!(book.told(vec![told(2, "other", 2, &theirs)]));
    assert_eq!(book.pending().count(), 0);
    let refused = book.take_refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].event, wanted("r"));
    assert_eq!(
        refused[0].why,
        "Somebody else changed the cell before Ward confirmed it."
    );

    // One that is confirmed is no loss.
    book.write(wanted("s")).unwrap();
    assert!(book.told(vec![
        told(3, "me", 2, &wanted("s")),
        told(4, "other", 3, &theirs)
    ]));
    assert!(book.take_refused().is_empty());
}

#[test]
fn what_is_said_of_a_run_that_ward_ended_is_for_nobody() {
    let mut book = connected();
    let alive = session("s1");
    book.say(&alive, printed("r1", "late"));
    book.say(&alive, printed("r2", "in time"));
    let push = book.next_push().unwrap();
    let over = answer(409, json!({ "error": "It is over.", "execution_id": "r1" }));
    assert!(book.answered(&push, &over));
    assert_eq!(book.lost(&alive), None);
    let left: Vec<_> = book.pending().map(|entry| entry.event.clone()).collect();
    assert_eq!(left, [printed("r2", "in time")]);
    assert!(book.next_push().is_some());
}

#[test]
fn a_replica_survives_its_page_with_what_is_pending_rebased_once() {
    let mut book = connected();
    assert!(book.told(vec![told(1, "other", 1, &cell("a"))]));
    book.disconnect();
    book.write(NotebookEvent::CellSource(
        serde_json::from_value(json!({
            "cell_id": "a", "splices": [{ "at": 0, "insert": "mine" }],
        }))
        .unwrap(),
    ))
    .unwrap();
    let first = book.take_kept().unwrap();
    let base = first.base.clone().unwrap();
    // While it lives it hears of another's edit, and keeps only what is new.
    book.connect();
    let theirs = NotebookEvent::CellSource(
        serde_json::from_value(json!({
            "cell_id": "a", "splices": [{ "at": 0, "insert": "theirs " }],
        }))
        .unwrap(),
    );
    assert!(book.told(vec![told(2, "other", 2, &theirs)]));
    let later = book.take_kept().unwrap();
    assert_eq!(later.base, None);
    assert_eq!(book.take_kept(), None, "nothing is new");
    let source = |book: &Book| {
        let id = CellId::new("a").unwrap();
        book.state().cell(&id).unwrap().source.clone()
    };
    assert_eq!(source(&book), "theirs mine");

    let mut restored = Book::restored("me", &base, &later.live).unwrap();
    assert_eq!(source(&restored), "theirs mine");
    assert_eq!(restored.confirmed(), book.confirmed());
    restored.connect();
    let push = restored.next_push().unwrap();
    assert_eq!(push.expected, Seq::new(2));
    assert!(push.body.contains(r#""at":7"#), "{}", push.body);
    // From what was kept before, the same is heard and done once.
    let mut older = Book::restored("me", &base, &first.live).unwrap();
    older.connect();
    assert!(older.told(vec![told(2, "other", 2, &theirs)]));
    assert_eq!(source(&older), "theirs mine");
}

#[test]
fn neither_a_runtimes_words_nor_a_wish_to_run_outlive_the_page() {
    let mut book = connected();
    book.write(cell("a")).unwrap();
    book.write(wanted("r")).unwrap();
    book.set_token(session("s1"), "secret-token".into());
    book.say(&session("s1"), printed("r", "half"));
    let kept = book.take_kept().unwrap();
    let base = kept.base.unwrap();
    assert!(!kept.live.contains("secret-token") && !base.contains("secret-token"));
    let restored = Book::restored("me", &base, &kept.live).unwrap();
    let left: Vec<_> = restored
        .pending()
        .map(|entry| entry.event.clone())
        .collect();
    assert_eq!(left, [cell("a")]);
    let mut restored = restored;
    let id = restored.write(titled("x")).unwrap();
    assert_eq!(id.number, 4, "a number is never given twice");
}

#[test]
fn a_gap_and_an_event_that_nobody_knows_are_not_folded() {
    let mut book = connected();
    assert!(!book.told(vec![told(3, "other", 1, &titled("x"))]));
    let unknown = json!({ "id": { "writer": "w", "number": 1 }, "event": { "kind": "moon.phase" }, "actor": "person:ada", "at": 1 });
    assert!(!book.told(vec![(1, unknown)]));
    let assigned = NotebookEvent::ExecutionAssigned(ExecutionAssigned {
        execution_id: ExecutionId::new("r").unwrap(),
        session_id: session("s"),
    });
    assert!(!book.told(vec![
        told(1, "ward", 1, &assigned),
        told(3, "ward", 2, &assigned)
    ]));
    assert_eq!(book.confirmed().seq, Seq::START);
    book.jump(Base {
        seq: Seq::new(3),
        state: Notebook::default(),
    });
    assert_eq!(book.confirmed().seq, Seq::new(3));
}

#[test]
fn what_was_kept_and_cannot_be_read_is_refused_with_a_sentence() {
    let base = serde_json::to_string(&Base::<Notebook>::default()).unwrap();
    let live = r#"{"seq":7,"tail":[],"pending":[],"written":0}"#;
    let apart = Book::restored("me", &base, live).unwrap_err();
    assert!(apart.to_string().contains("does not fit"), "{apart}");
    assert!(Book::restored("me", "{", live).is_err());
}
