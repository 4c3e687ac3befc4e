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

    /// What a start finds.
    async fn again(self) -> Snapshot {
        let Self { folder, book } = self;
        drop(book);
        let store = store(&folder);
        let mut known = index::read(&store).await.unwrap();
        let known = known.remove("n").unwrap();
        let book = Book::open(store, known.info, known.bases).await.unwrap();
        book.snapshot()
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
