use notebook::CellId;
use serde_json::json;
use store_sqlite::{DataFolder, SqliteStore};

use super::*;
use crate::index;
use crate::log::SEGMENT;

struct Place {
    folder: tempfile::TempDir,
    book: Book<SqliteStore>,
}

fn store(folder: &tempfile::TempDir) -> Arc<SqliteStore> {
    let data = DataFolder::own(folder.path(), "a test").unwrap();
    Arc::new(SqliteStore::open(data).unwrap())
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let info = NotebookInfo {
            id: "n".to_owned(),
            title: String::new(),
            owner: "ada".to_owned(),
            people: vec!["bob".to_owned()],
            workspace: "/".to_owned(),
            made_at: 0,
            compacted: None,
        };
        let store = store(&folder);
        let made = Line::Made { info: info.clone() };
        store.append(vec![made.append().unwrap()]).await.unwrap();
        let book = Book::open(store, info, vec![0]).await.unwrap();
        Self { folder, book }
    }

    /// The same after a start.
    async fn restarted(self) -> Self {
        let Self { folder, book } = self;
        drop(book);
        let store = store(&folder);
        let mut known = index::read(&store).await.unwrap();
        let known = known.remove("n").unwrap();
        let book = Book::open(store, known.info, known.bases).await.unwrap();
        Self { folder, book }
    }

    /// What a start finds.
    async fn again(self) -> Snapshot {
        self.restarted().await.book.snapshot()
    }

    /// Sends events of a writer's under its own numbers.
    async fn send(
        &self,
        expected: Option<u64>,
        entries: &[(u64, serde_json::Value)],
    ) -> Result<usize, Failure> {
        let entries = entries.iter();
        let entries = entries.map(
            |(number, event)| json!({"id": {"writer": "w", "number": number}, "event": event}),
        );
        let asked = PostEvents {
            expected,
            entries: serde_json::from_value(entries.collect()).unwrap(),
            ..PostEvents::default()
        };
        let actor = Actor::Person("ada".to_owned());
        let taken = self.book.post(&actor, None, asked).await?;
        Ok(taken.appended.appended)
    }

    async fn post(&self, person: &str, events: serde_json::Value) -> Result<Taken, Failure> {
        let asked = PostEvents {
            events: serde_json::from_value(events).unwrap(),
            ..PostEvents::default()
        };
        let actor = Actor::Person(person.to_owned());
        self.book.post(&actor, None, asked).await
    }
}

fn cell(id: &str) -> serde_json::Value {
    json!({"kind": "cell.created", "cell_id": id, "cell_type": "code", "place": "V"})
}

fn source(id: &str, source: &str) -> serde_json::Value {
    json!({"kind": "cell.source", "cell_id": id, "source": source})
}

#[tokio::test]
async fn a_batch_is_checked_event_by_event_and_taken_whole_or_not_at_all() {
    let place = Place::new().await;
    place.post("ada", json!([cell("a")])).await.unwrap();
    let before = place.book.snapshot();
    // The second is of a cell that only the first makes; the last is nobody's to say.
    let run = json!({"kind": "execution.requested", "execution_id": "e", "cell_id": "b"});
    let forged = json!({"kind": "execution.assigned", "execution_id": "e", "session_id": "s"});
    let refused = place.post("ada", json!([cell("b"), run, forged])).await;
    assert_eq!(refused.err().unwrap().kind, ErrorKind::Forbidden);
    assert_eq!(place.book.snapshot(), before);

    let taken = place.post("ada", json!([cell("b"), run])).await.unwrap();
    assert_eq!((taken.appended.appended, taken.new.len()), (2, 2));
    // What was refused is no part of what the next is checked on, nor of what it makes.
    let unknown = json!({"kind": "execution.requested", "execution_id": "f", "cell_id": "c"});
    assert_eq!(
        place
            .post("ada", json!([unknown]))
            .await
            .err()
            .unwrap()
            .kind,
        ErrorKind::Unknown
    );
    place
        .post("bob", json!([source("b", "1+1")]))
        .await
        .unwrap();
    let seen = place.book.snapshot();
    assert_eq!(seen.seq, Seq::new(4));
    assert_eq!(place.again().await, seen);
}

#[tokio::test]
async fn what_is_seen_is_what_a_start_finds_on_both_sides_of_a_cut_and_after_compacting() {
    let place = Place::new().await;
    place
        .post("ada", json!([cell("a"), cell("b")]))
        .await
        .unwrap();
    for number in 0..SEGMENT {
        let id = if number % 2 == 0 { "a" } else { "b" };
        let edit = source(id, &number.to_string());
        place.post("ada", json!([edit])).await.unwrap();
    }
    place.book.compact().await.unwrap();
    place
        .post("bob", json!([source("a", "last")]))
        .await
        .unwrap();
    let seen = place.book.snapshot();
    assert_eq!(seen.seq, Seq::new(SEGMENT + 3));
    let at = |id: &str| seen.state.cell(&CellId::new(id).unwrap()).unwrap();
    assert_eq!(
        (at("a").source.as_str(), at("b").source.as_str()),
        ("last", "1999")
    );
    assert_eq!(place.again().await, seen);
}

#[tokio::test]
async fn events_without_ids_are_numbered_under_one_name_for_each_actor_that_nobody_can_take() {
    let place = Place::new().await;
    place
        .post("ada", json!([cell("a"), cell("b")]))
        .await
        .unwrap();
    place.post("bob", json!([source("a", "1")])).await.unwrap();
    place.post("ada", json!([source("a", "2")])).await.unwrap();
    let state = place.book.snapshot().state;
    assert_eq!(state.last_of("http:person:ada"), 3);
    assert_eq!(state.last_of("http:person:bob"), 1);

    let taken = PostEvents {
        entries: serde_json::from_value(json!([
            {"id": {"writer": "http:person:eve", "number": 1}, "event": source("a", "3")},
        ]))
        .unwrap(),
        ..PostEvents::default()
    };
    let bob = Actor::Person("bob".to_owned());
    let refused = place.book.post(&bob, None, taken).await.err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert_eq!(place.book.snapshot().state, state);
}

#[tokio::test]
async fn a_field_whose_name_could_not_be_read_again_is_refused() {
    let place = Place::new().await;
    let hidden = "$serde_json::private::RawValue";
    let named = json!([{"kind": "notebook.metadata", "set": {"!": 1, hidden: 2}}]);
    let refused = place.post("ada", named).await.err().unwrap();
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (
            ErrorKind::InvalidParams,
            "`notebook.metadata` carries a field with a name that cannot be written down and read again. Leave it out, or send it as text."
        )
    );
}

#[tokio::test]
async fn json_nested_too_deep_to_be_read_again_is_refused_and_what_is_taken_is_found_by_a_start() {
    let place = Place::new().await;
    let about = |levels: usize| {
        let nested = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        json!({"kind": "notebook.metadata", "set": {"a": nested}})
    };
    let refused = place.post("ada", json!([about(65)])).await.err().unwrap();
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (
            ErrorKind::TooLarge,
            "`notebook.metadata` carries JSON that is nested more than 64 levels deep, which not everybody could read again. Make it flatter, or send it as text."
        )
    );
    place.post("ada", json!([about(64)])).await.unwrap();
    place.book.compact().await.unwrap();
    let seen = place.book.snapshot();
    assert_eq!(place.again().await, seen);
}

#[tokio::test]
async fn back_to_one_runtime_displaces_all_but_the_newest_and_ends_what_they_ran() {
    let place = Place::new().await;
    let runtimes = |how: &str| json!([{"kind": "notebook.runtimes", "runtimes": how}]);
    place.post("ada", runtimes("one_per_type")).await.unwrap();
    let started = |id: &str| {
        serde_json::from_value(json!({
            "kind": "runtime.started", "session_id": id, "runtime_id": id, "runtime_type": id, "client_id": "ada",
        }))
        .unwrap()
    };
    let (a, b, c) = (started("a"), started("b"), started("c"));
    place.book.say(|_| vec![a, b, c]).await.unwrap();
    let run = json!({"kind": "execution.requested", "execution_id": "e", "cell_id": "x"});
    place.post("ada", json!([cell("x"), run])).await.unwrap();
    let assigned = json!({"kind": "execution.assigned", "execution_id": "e", "session_id": "a"});
    let assigned = serde_json::from_value(assigned).unwrap();
    place.book.say(|_| vec![assigned]).await.unwrap();

    let taken = place.post("bob", runtimes("one")).await.unwrap();
    let over =
        |id: &str| json!({"kind": "runtime.terminated", "session_id": id, "reason": "displaced"});
    let why = "Another runtime took this one's place while it worked on this.";
    let failed = json!({"failed": {"kind": "runtime_lost", "message": why}});
    assert_eq!(
        json!(taken.new),
        json!([
            runtimes("one")[0],
            {"kind": "execution.completed", "execution_id": "e", "outcome": failed},
            over("a"),
            over("b"),
        ])
    );
    let seen = place.book.snapshot().state;
    let active = seen.sessions().iter().filter(|one| one.is_active());
    let active: Vec<&str> = active.map(|one| one.session_id.as_str()).collect();
    assert_eq!(active, ["c"]);
}

#[tokio::test]
async fn who_expects_more_than_there_is_is_told_so_and_not_that_others_were_first() {
    let place = Place::new().await;
    place.post("ada", json!([cell("a")])).await.unwrap();
    let expecting = |expected| PostEvents {
        expected: Some(expected),
        events: serde_json::from_value(json!([source("a", "1")])).unwrap(),
        ..PostEvents::default()
    };
    let ada = Actor::Person("ada".to_owned());
    let mut told = Vec::new();
    for expected in [0, 7] {
        let refused = place.book.post(&ada, None, expecting(expected)).await;
        let refused = refused.err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert_eq!(refused.details["head"], 1);
        told.push(refused.message);
    }
    assert_eq!(
        told,
        [
            "The notebook is at event 1: others were first. Read on from there and try again.",
            "The notebook is at event 1: `expected` is ahead of that. Read the notebook, and go on from its `seq`.",
        ]
    );
}

#[tokio::test]
async fn a_cell_gets_an_id_that_no_other_has_and_the_same_event_sent_again_is_taken_once() {
    let place = Place::new().await;
    let sent = || PostEvents {
        entries: serde_json::from_value(json!([
            {"id": {"writer": "w", "number": 1}, "event": cell("a")},
        ]))
        .unwrap(),
        ..PostEvents::default()
    };
    let ada = Actor::Person("ada".to_owned());
    for appended in [1, 0] {
        let taken = place.book.post(&ada, None, sent()).await.unwrap();
        assert_eq!(taken.appended.appended, appended);
    }
    let before = place.book.snapshot();
    let refused = place.post("ada", json!([cell("a")])).await.err().unwrap();
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (
            ErrorKind::Conflict,
            "There is a cell `a` already. Give each its own `cell_id`."
        )
    );
    assert_eq!(place.book.snapshot(), before);
}

#[tokio::test]
async fn what_is_not_there_is_neither_stopped_nor_begun_anew() {
    let place = Place::new().await;
    let ends = json!([
        {"kind": "runtime.started", "session_id": "s", "runtime_id": "r", "runtime_type": "echo", "client_id": "ada", "capabilities": {}},
        {"kind": "runtime.terminated", "session_id": "s", "reason": "shutdown"},
    ]);
    let ends = serde_json::from_value(ends).unwrap();
    place.book.say(|_| ends).await.unwrap();
    for (event, told) in [
        (
            json!({"kind": "execution.cancel", "execution_id": "e"}),
            "There is no run `e` in this notebook, or it was over long ago.",
        ),
        (
            json!({"kind": "runtime.restart", "session_id": "t"}),
            "There is no runtime session `t`, or it is over. Start a runtime.",
        ),
        (
            json!({"kind": "runtime.restart", "session_id": "s"}),
            "There is no runtime session `s`, or it is over. Start a runtime.",
        ),
    ] {
        let refused = place.post("ada", json!([event])).await.err().unwrap();
        assert_eq!(
            (refused.kind, refused.message.as_str()),
            (ErrorKind::Closed, told)
        );
    }
}

#[tokio::test]
async fn a_runtime_shows_media_types_and_artifacts_that_there_are() {
    let place = Place::new().await;
    place.post("ada", json!([cell("a")])).await.unwrap();
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let artifact = |letter| json!({"digest": digest(letter), "size": 1, "media_type": "image/png"});
    let mut kept = artifact("a");
    kept["kind"] = "artifact.added".into();
    let runs = json!([
        {"kind": "runtime.started", "session_id": "s", "runtime_id": "r", "runtime_type": "echo", "client_id": "ada", "capabilities": {}},
        {"kind": "execution.requested", "execution_id": "e", "cell_id": "a"},
        {"kind": "execution.assigned", "execution_id": "e", "session_id": "s"},
        {"kind": "execution.started", "execution_id": "e"},
        kept,
    ]);
    let runs = serde_json::from_value(runs).unwrap();
    place.book.say(|_| runs).await.unwrap();
    let (ada, session) = (
        Actor::Person("ada".to_owned()),
        SessionId::new("s").unwrap(),
    );
    let shows = async |media_type: &str, media: serde_json::Value| {
        let bundle = json!({"data": {"text/plain": {"inline": "x"}, media_type: media}});
        let event = json!({"kind": "output.display", "execution_id": "e", "bundle": bundle});
        let asked = PostEvents {
            events: serde_json::from_value(json!([event])).unwrap(),
            ..PostEvents::default()
        };
        let taken = place.book.post(&ada, Some(&session), asked).await;
        taken
            .map(drop)
            .map_err(|failure| (failure.kind, failure.message))
    };
    let wrong = |message: &str| Err((ErrorKind::InvalidParams, message.to_owned()));
    assert_eq!(
        shows("image/png", json!({"artifact": artifact("a")})).await,
        Ok(())
    );
    let told = format!(
        "There is no artifact `{}` in this notebook. Upload it first.",
        digest("b")
    );
    assert_eq!(
        shows("image/png", json!({"artifact": artifact("b")})).await,
        wrong(&told)
    );
    assert_eq!(
        shows("a picture", json!({"inline": "x"})).await,
        wrong("`a picture` is no media type, such as text/plain.")
    );
}

#[tokio::test]
async fn compacting_says_what_it_dropped_and_the_notebook_what_was_dropped_in_all() {
    let place = Place::new().await;
    let dropped = |through, events| Compacted { through, events };
    place.post("ada", json!([cell("a")])).await.unwrap();
    assert_eq!(place.book.compact().await.unwrap(), dropped(1, 1));
    place
        .post("ada", json!([cell("b"), cell("c")]))
        .await
        .unwrap();
    assert_eq!(place.book.compact().await.unwrap(), dropped(3, 2));
    assert_eq!(place.book.compact().await.unwrap(), dropped(3, 0));
    assert_eq!(place.book.info().compacted, Some(dropped(3, 3)));
}

#[tokio::test]
async fn an_event_that_is_sent_again_is_there_once_and_another_under_its_id_is_a_conflict() {
    let conflict = |refused: Result<usize, Failure>| {
        let failure = refused.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Conflict);
        (
            failure.message.contains("was another one"),
            failure.details.get("head").cloned(),
        )
    };
    let place = Place::new().await;
    place
        .send(None, &[(1, cell("a")), (4, cell("b"))])
        .await
        .unwrap();
    // In one batch, and under a number that was passed over.
    let twice = [(5, source("a", "1")), (5, source("a", "2"))];
    assert_eq!(conflict(place.send(None, &twice).await), (true, None));
    let twice = [(5, source("a", "1")), (5, source("a", "1"))];
    assert_eq!(place.send(None, &twice).await.unwrap(), 1);
    assert_eq!(
        conflict(place.send(None, &[(3, cell("c"))]).await),
        (false, None)
    );
    // What is long ago too, and after a start.
    for number in 6..SEGMENT + 6 {
        place
            .send(None, &[(number, source("b", &number.to_string()))])
            .await
            .unwrap();
    }
    let place = place.restarted().await;
    let head = place.book.snapshot().seq.get();
    assert_eq!(
        place
            .send(None, &[(1, cell("a")), (4, cell("b"))])
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        conflict(place.send(None, &[(1, cell("c"))]).await),
        (true, None)
    );
    assert_eq!(
        conflict(place.send(Some(head), &[(2, cell("c"))]).await),
        (false, None)
    );
    // What is gone cannot be compared. A replica that sends it again is behind, and reads on.
    place.book.compact().await.unwrap();
    assert_eq!(
        conflict(place.send(None, &[(1, cell("a"))]).await),
        (false, None)
    );
    assert_eq!(
        conflict(place.send(Some(0), &[(1, cell("a"))]).await),
        (false, Some(head.into()))
    );
    assert_eq!(place.book.snapshot().seq.get(), head);
}
