//! What events amount to, and that old logs still do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

use notebook::{
    Author, CellId, ExecutionId, ExecutionState, Notebook, NotebookEvent, Output, Recorded,
    SessionState, Snapshot,
};
use serde_json::{Value, json};
use store::Seq;
use store::replica::{Base, EventId, Fold, Input, Replica};

fn event(value: Value) -> NotebookEvent {
    serde_json::from_value(value).unwrap()
}

fn folded(events: Value) -> Notebook {
    let mut notebook = Notebook::default();
    for value in events.as_array().unwrap() {
        notebook.take(&event(value.clone()), Some("person:ada"));
    }
    notebook
}

fn cell(id: &str, place: &str, source: &str) -> Value {
    json!({"kind": "cell.created", "cell_id": id, "cell_type": "code", "place": place, "source": source})
}

fn sources(notebook: &Notebook) -> Vec<String> {
    let cells = notebook.cells().into_iter();
    cells.map(|cell| cell.source.clone()).collect()
}

/// A cell `a` whose run `e` was assigned to the session `s`, and these events of the run.
fn run(events: Value) -> Notebook {
    let mut all = vec![
        cell("a", "V", "1+1"),
        json!({"kind": "runtime.started", "session_id": "s", "runtime_id": "r", "runtime_type": "python", "client_id": "ada"}),
        json!({"kind": "execution.requested", "execution_id": "e", "cell_id": "a"}),
        json!({"kind": "execution.assigned", "execution_id": "e", "session_id": "s"}),
        json!({"kind": "execution.started", "execution_id": "e", "execution_count": 1}),
    ];
    all.extend(events.as_array().unwrap().iter().cloned());
    folded(Value::Array(all))
}

fn outputs(notebook: &Notebook) -> Value {
    let cell = notebook.cell(&CellId::new("a").unwrap()).unwrap();
    json!(cell.outputs)
}

fn state(notebook: &Notebook) -> ExecutionState {
    let id = ExecutionId::new("e").unwrap();
    notebook.execution(&id).unwrap().state
}

#[test]
fn every_kind_is_read_and_written_as_the_same_and_has_an_author() {
    let logs = [include_str!("old/v1.jsonl"), include_str!("old/v2.jsonl")];
    let mut kinds: Vec<&str> = Vec::new();
    for line in logs.iter().flat_map(|log| log.lines()) {
        let written: Value = serde_json::from_str(line).unwrap();
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        assert_eq!(json!(recorded), written, "what is written is what was read");
        assert_eq!(written["event"]["kind"], recorded.event.kind());
        kinds.push(recorded.event.kind());
    }
    for kind in NotebookEvent::KINDS {
        assert!(kinds.contains(&kind), "{kind} is not in the kept logs");
    }
}

/// Each log goes on where the one before it ended.
#[test]
fn logs_of_older_versions_amount_to_what_they_did_then() {
    let logs = [
        (
            include_str!("old/v1.jsonl"),
            include_str!("old/v1.folded.json"),
        ),
        (
            include_str!("old/v2.jsonl"),
            include_str!("old/v2.folded.json"),
        ),
    ];
    let mut notebook = Notebook::default();
    for (log, folded) in logs {
        for line in log.lines() {
            let recorded: Recorded = serde_json::from_str(line).unwrap();
            notebook.apply(&recorded.into());
        }
        let expected: Value = serde_json::from_str(folded).unwrap();
        assert_eq!(json!(notebook), expected);
    }
}

#[test]
fn what_only_ward_may_say_is_not_for_runtimes_and_what_runtimes_say_is_not_for_people() {
    let author = |value: Value| event(value).author();
    let assigned = json!({"kind": "execution.assigned", "execution_id": "e", "session_id": "s"});
    assert_eq!(author(assigned), Author::Ward);
    let printed =
        json!({"kind": "output.terminal", "execution_id": "e", "stream": "stdout", "text": ""});
    assert_eq!(author(printed), Author::Runtime);
    let wanted = json!({"kind": "execution.requested", "execution_id": "e", "cell_id": "a"});
    assert_eq!(author(wanted), Author::Requester);
    assert_eq!(author(cell("a", "V", "")), Author::Editor);
}

#[test]
fn cells_are_in_the_order_of_their_places_and_two_at_one_place_are_one_after_the_other() {
    let notebook = folded(json!([
        cell("a", "V", "second"),
        cell("b", "V", "third"),
        cell("c", "Z", "last"),
        cell("d", "1", "first"),
        cell("a", "Z", "a cell of that id is there already"),
    ]));
    assert_eq!(sources(&notebook), ["first", "second", "third", "last"]);
    let after = notebook.place_after(Some(&CellId::new("a").unwrap()));
    let mut notebook = notebook;
    notebook.take(&event(cell("e", after.as_str(), "between")), None);
    assert_eq!(
        sources(&notebook),
        ["first", "second", "between", "third", "last"]
    );
    let first = notebook.place_after(None);
    let moved = json!({"kind": "cell.moved", "cell_id": "c", "place": first});
    notebook.take(&event(moved), None);
    assert_eq!(sources(&notebook)[0], "last");
}

#[test]
fn deltas_of_one_stream_are_one_output() {
    let print = |stream: &str, text: &str| json!({"kind": "output.terminal", "execution_id": "e", "stream": stream, "text": text});
    let notebook = run(json!([
        print("stdout", "a"),
        print("stdout", "b"),
        print("stderr", "c"),
        print("stdout", "d"),
    ]));
    assert_eq!(
        outputs(&notebook),
        json!([
            {"type": "terminal", "stream": "stdout", "text": "ab"},
            {"type": "terminal", "stream": "stderr", "text": "c"},
            {"type": "terminal", "stream": "stdout", "text": "d"},
        ])
    );
}

#[test]
fn a_display_is_updated_wherever_it_is_and_a_clear_that_waits_waits_for_the_next_output() {
    let show = |text: &str| json!({"kind": "output.display", "execution_id": "e", "display_id": "d", "bundle": {"data": {"text/plain": {"inline": text}}}});
    let clear = json!({"kind": "output.cleared", "execution_id": "e", "wait": true});
    let update = json!({"kind": "output.display_updated", "execution_id": "e", "display_id": "d", "bundle": {"data": {"text/plain": {"inline": "new"}}}});
    let shown = |text: &str| json!({"type": "display", "display_id": "d", "bundle": {"data": {"text/plain": {"inline": text}}}});
    assert_eq!(
        outputs(&run(json!([show("a"), show("b"), update, clear]))),
        json!([shown("new"), shown("new")])
    );
    assert_eq!(
        outputs(&run(json!([show("a"), clear, show("b")]))),
        json!([shown("b")])
    );
}

#[test]
fn a_run_that_is_over_stays_as_it_ended_and_shows_nothing_more() {
    let done = json!({"kind": "execution.completed", "execution_id": "e", "outcome": "ok"});
    let cancelled = json!({"kind": "execution.cancelled", "execution_id": "e"});
    let print =
        json!({"kind": "output.terminal", "execution_id": "e", "stream": "stdout", "text": "late"});
    let notebook = run(json!([done, cancelled, print]));
    assert_eq!(state(&notebook), ExecutionState::Completed);
    assert_eq!(outputs(&notebook), json!([]));
    assert_eq!(
        state(&run(json!([cancelled, done]))),
        ExecutionState::Cancelled
    );
}

#[test]
fn a_run_that_was_not_assigned_neither_begins_nor_shows_anything() {
    let notebook = folded(json!([
        cell("a", "V", "1+1"),
        {"kind": "execution.requested", "execution_id": "e", "cell_id": "a"},
        {"kind": "execution.started", "execution_id": "e"},
        {"kind": "output.terminal", "execution_id": "e", "stream": "stdout", "text": "forged"},
    ]));
    assert_eq!(state(&notebook), ExecutionState::Requested);
    assert_eq!(outputs(&notebook), json!([]));
}

#[test]
fn what_runs_is_what_the_cell_said_when_it_was_asked_for() {
    let notebook = folded(json!([
        cell("a", "V", "asked for"),
        {"kind": "execution.requested", "execution_id": "e", "cell_id": "a"},
        {"kind": "cell.source", "cell_id": "a", "source": "edited since"},
    ]));
    let run = notebook.execution(&ExecutionId::new("e").unwrap()).unwrap();
    assert_eq!(run.source, "asked for");
    assert_eq!(run.requested_by.as_deref(), Some("person:ada"));
}

#[test]
fn a_runtime_session_that_is_over_does_not_come_back() {
    let notebook = run(json!([
        {"kind": "runtime.status", "session_id": "s", "state": "ready"},
        {"kind": "runtime.terminated", "session_id": "s", "reason": "displaced"},
        {"kind": "runtime.status", "session_id": "s", "state": "ready"},
    ]));
    assert_eq!(notebook.sessions()[0].state, SessionState::Terminated);
    assert!(notebook.active(None).is_none());
}

#[test]
fn a_notebook_that_was_run_ten_thousand_times_remembers_the_queue_and_some_of_the_past() {
    let mut notebook = folded(json!([cell("a", "V", "1+1")]));
    for number in 0..10_000 {
        let id = format!("e{number}");
        let wanted = json!({"kind": "execution.requested", "execution_id": id, "cell_id": "a"});
        notebook.take(&event(wanted), None);
        if number > 4 {
            let done = json!({"kind": "execution.completed", "execution_id": id, "outcome": "ok"});
            notebook.take(&event(done), None);
        }
    }
    assert_eq!(notebook.queue().count(), 5);
    assert!(notebook.executions().count() < 500);
}

#[test]
fn a_snapshot_is_read_as_what_it_was_and_goes_on() {
    let notebook = run(json!([]));
    let snapshot = Snapshot {
        seq: Seq::new(5),
        state: notebook,
    };
    let text = serde_json::to_string(&snapshot).unwrap();
    let read: Snapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(read, snapshot);
    let mut replica: Replica<Notebook> = Replica::restored("w", read, Vec::new(), 0);
    assert_eq!(replica.head(), Seq::new(5));
    replica.take(Input::Write(event(cell("b", "Z", "new"))));
    assert_eq!(sources(replica.state()), ["1+1", "new"]);
    assert_eq!(sources(&replica.confirmed().state), ["1+1"]);
}

#[test]
fn what_a_snapshot_has_of_ours_is_no_longer_pending() {
    let mut replica: Replica<Notebook> = Replica::new("w");
    replica.take(Input::Write(event(cell("a", "V", "one"))));
    replica.take(Input::Write(event(cell("b", "Z", "two"))));
    let mut state = Notebook::default();
    let first = replica.pending().next().unwrap().clone();
    state.apply(&first);
    let seq = Seq::new(1);
    replica.jump(Base { seq, state });
    let left: Vec<EventId> = replica.pending().map(|entry| entry.id.clone()).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].number, 2);
    assert_eq!(sources(replica.state()), ["one", "two"]);
}

#[test]
fn what_is_no_event_is_refused_with_its_kind() {
    let error = serde_json::from_value::<NotebookEvent>(json!({"kind": "cell.exploded"}));
    assert!(error.unwrap_err().to_string().contains("cell.exploded"));
    let error =
        serde_json::from_value::<NotebookEvent>(json!({"kind": "cell.deleted", "cell_id": "../x"}));
    assert!(error.is_err());
}

#[test]
fn an_output_that_is_kept_as_it_was_can_still_be_shown() {
    let shown = Output::Terminal {
        stream: notebook::StreamKind::Stdout,
        text: "x".to_owned(),
    };
    let kept = Output::Kept {
        raw: json!({"odd": 1}).as_object().unwrap().clone(),
        shown: Some(Box::new(shown)),
    };
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Output>(&text).unwrap(), kept);
}
