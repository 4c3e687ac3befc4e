//! A notebook's events in the store: segments, each behind a snapshot of all before it, so that a
//! start reads one snapshot and one segment, and what is old can go segment by segment.

use std::sync::Arc;

use notebook::{Notebook, Recorded, Snapshot};
use protocol::{ErrorKind, Failure};
use serde_json::json;
use store::replica::Fold as _;
use store::{Append, Event, Expected, Json, NewEvent, Seq, Store, StreamName};

use crate::index::{Line, failed, name};

/// After so many events a new segment begins.
pub(crate) const SEGMENT: u64 = 2_000;
/// How many events are read at a time.
const PAGE: usize = 1_000;

/// The events of one notebook.
pub(crate) struct Log<S: Store> {
    store: Arc<S>,
    id: String,
    /// Where the segments begin, in order.
    bases: Vec<u64>,
}

impl<S: Store> Log<S> {
    pub(crate) fn new(store: Arc<S>, id: String, bases: Vec<u64>) -> Self {
        Self { store, id, bases }
    }

    /// What all events amount to.
    pub(crate) async fn open(&self) -> Result<Snapshot, Failure> {
        let base = self.base();
        let mut snapshot = Snapshot {
            seq: Seq::new(base),
            state: Notebook::default(),
        };
        if base > 0 {
            let stream = self.snapshot(base)?;
            let kept = self.store.tail(&stream, 1).await.map_err(failed)?;
            let kept = kept.into_iter().next().ok_or_else(|| missing(&self.id))?;
            snapshot = serde_json::from_value(kept.data).map_err(|error| unreadable(&error))?;
        }
        loop {
            let events = self.read(snapshot.seq, PAGE).await?;
            if events.is_empty() {
                return Ok(snapshot);
            }
            for event in events {
                let seq = event.seq;
                snapshot.state.apply(&recorded(event)?.into());
                snapshot.seq = seq;
            }
        }
    }

    /// Events after `after`, in order, at most `limit`; fewer at the end of a segment.
    ///
    /// Refuses (`compacted`) where they are gone.
    pub(crate) async fn read(&self, after: Seq, limit: usize) -> Result<Vec<Event>, Failure> {
        let after = after.get();
        // What follows the last event of a segment is in the next.
        let mut bases = self.bases.iter().copied().rev();
        let Some(base) = bases.find(|base| *base <= after) else {
            return Err(Failure::new(
                ErrorKind::Compacted,
                "These events are gone; what they amounted to is kept. Read the notebook, and go on from its `seq`.",
            )
            .with("from", self.bases.first().copied().unwrap_or_default()));
        };
        let stream = self.segment(base)?;
        let found = self.store.read(&stream, Seq::new(after - base), limit);
        let mut found = found.await.map_err(failed)?;
        for event in &mut found {
            event.seq = Seq::new(event.seq.get() + base);
        }
        Ok(found)
    }

    /// For a batch: these events, at the end.
    pub(crate) fn append(&self, head: Seq, events: Vec<NewEvent>) -> Result<Append, Failure> {
        let base = self.base();
        Ok(Append {
            stream: self.segment(base)?,
            expected: Expected::Head(Seq::new(head.get() - base)),
            events,
        })
    }

    pub(crate) async fn write(&self, batch: Vec<Append>) -> Result<(), Failure> {
        self.store.append(batch).await.map(drop).map_err(failed)
    }

    /// Whether the last segment is long enough for a new one to begin.
    pub(crate) fn is_long(&self, head: Seq) -> bool {
        head.get() - self.base() >= SEGMENT
    }

    /// Begins a new segment: the snapshot and the word of it are there together or not at all.
    pub(crate) async fn cut(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let base = snapshot.seq.get();
        if base == self.base() {
            return Ok(());
        }
        let text = serde_json::to_string(snapshot).map_err(|error| unreadable(&error))?;
        let kept = Append {
            stream: self.snapshot(base)?,
            expected: Expected::Any,
            events: vec![NewEvent {
                kind: "notebook.snapshot".into(),
                at: gate::now(),
                data: Json::from_text(text),
            }],
        };
        let id = self.id.clone();
        let line = Line::Cut { id, base }.append()?;
        self.write(vec![kept, line]).await?;
        let before = self.base();
        self.bases.push(base);
        // Only the last snapshot is ever read.
        if before > 0 {
            let old = vec![self.snapshot(before)?];
            if let Err(error) = self.store.remove(old).await {
                tracing::warn!(%error, "an old snapshot could not be removed");
            }
        }
        Ok(())
    }

    /// Drops every segment but the last, and says so first.
    pub(crate) async fn drop_old(&mut self) -> Result<(), Failure> {
        let base = self.base();
        let id = self.id.clone();
        self.write(vec![Line::Compacted { id, base }.append()?])
            .await?;
        let old: Vec<u64> = self.bases.iter().copied().filter(|b| *b < base).collect();
        self.bases = vec![base];
        let streams = old.into_iter().map(|base| self.segment(base));
        let streams: Vec<StreamName> = streams.collect::<Result<_, _>>()?;
        self.store.remove(streams).await.map_err(failed)
    }

    /// Says that the notebook is deleted.
    pub(crate) async fn say_deleted(&self) -> Result<(), Failure> {
        let id = self.id.clone();
        self.write(vec![Line::Deleted { id }.append()?]).await
    }

    /// Everything that is there of it goes.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        let removed = self.store.remove(self.streams()?).await;
        removed.map_err(failed)
    }

    fn streams(&self) -> Result<Vec<StreamName>, Failure> {
        let mut streams = Vec::new();
        for base in &self.bases {
            streams.push(self.segment(*base)?);
        }
        if self.base() > 0 {
            streams.push(self.snapshot(self.base())?);
        }
        Ok(streams)
    }

    /// Where the segments begin.
    pub(crate) fn bases(&self) -> &[u64] {
        &self.bases
    }

    pub(crate) fn store(&self) -> &Arc<S> {
        &self.store
    }

    fn base(&self) -> u64 {
        self.bases.last().copied().unwrap_or(0)
    }

    fn segment(&self, base: u64) -> Result<StreamName, Failure> {
        name(&format!("notebook/{}/{base}", self.id))
    }

    fn snapshot(&self, base: u64) -> Result<StreamName, Failure> {
        name(&format!("notebook/{}/snapshot/{base}", self.id))
    }
}

/// An event as it is written.
pub(crate) fn written(recorded: &Recorded) -> Result<NewEvent, Failure> {
    let text = serde_json::to_string(recorded).map_err(|error| unreadable(&error))?;
    Ok(NewEvent {
        kind: recorded.event.kind().into(),
        at: recorded.at,
        data: Json::from_text(text),
    })
}

/// An event as it was written, in today's words.
pub(crate) fn recorded(event: Event) -> Result<Recorded, Failure> {
    serde_json::from_value(event.data).map_err(|error| unreadable(&error))
}

/// An event of the store, told in today's words.
pub(crate) fn told(event: &Recorded, seq: Seq) -> Event {
    Event {
        seq,
        kind: event.event.kind().into(),
        at: event.at,
        data: json!(event),
    }
}

fn missing(id: &str) -> Failure {
    Failure::new(
        ErrorKind::Internal,
        format!("The snapshot of the notebook {id} is missing."),
    )
}

fn unreadable(error: &serde_json::Error) -> Failure {
    tracing::error!(%error, "an event of a notebook cannot be read");
    Failure::new(
        ErrorKind::Internal,
        "An event of this notebook cannot be read; a newer Ward may have written it. Ward's log says which.",
    )
}

#[cfg(test)]
mod tests {
    use notebook::{CellSource, NotebookEvent};
    use store::replica::EventId;
    use store_sqlite::{DataFolder, SqliteStore};

    use super::*;

    /// Edits of one cell, so that what they amount to tells their number.
    fn edit(number: u64) -> Recorded {
        let event = match number {
            1 => serde_json::from_value(json!({
                "kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V",
            }))
            .unwrap(),
            number => NotebookEvent::CellSource(CellSource {
                cell_id: notebook::CellId::new("a").unwrap(),
                source: Some(number.to_string()),
                splices: Vec::new(),
            }),
        };
        Recorded {
            id: EventId {
                writer: "w".to_owned(),
                number,
            },
            event,
            actor: "person:ada".to_owned(),
            at: store::Millis(number),
        }
    }

    async fn append(log: &mut Log<SqliteStore>, snapshot: &mut Snapshot, count: u64) {
        for _ in 0..count {
            let new = edit(snapshot.seq.get() + 1);
            let event = written(&new).unwrap();
            let batch = vec![log.append(snapshot.seq, vec![event]).unwrap()];
            log.write(batch).await.unwrap();
            snapshot.state.apply(&new.into());
            snapshot.seq = snapshot.seq.next();
            if log.is_long(snapshot.seq) {
                log.cut(snapshot).await.unwrap();
            }
        }
    }

    async fn bases(store: &Arc<SqliteStore>) -> Vec<u64> {
        let known = crate::index::read(store).await.unwrap();
        known["n"].bases.clone()
    }

    #[tokio::test]
    async fn a_start_reads_one_snapshot_and_one_segment_and_every_event_can_be_read_until_it_is_dropped()
     {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::own(folder.path(), "a test").unwrap();
        let store = Arc::new(SqliteStore::open(data).unwrap());
        let info = crate::wire::NotebookInfo {
            id: "n".to_owned(),
            title: String::new(),
            owner: "ada".to_owned(),
            people: Vec::new(),
            workspace: "/".to_owned(),
            made_at: 0,
            compacted: None,
        };
        let mut log = Log::new(Arc::clone(&store), "n".to_owned(), vec![0]);
        log.write(vec![Line::Made { info }.append().unwrap()])
            .await
            .unwrap();
        let mut snapshot = Snapshot::default();
        append(&mut log, &mut snapshot, 2 * SEGMENT + 10).await;
        assert_eq!(bases(&store).await, [0, SEGMENT, 2 * SEGMENT]);

        // What is not read cannot matter: all but the last segment is taken away beneath it.
        let again = Log::new(Arc::clone(&store), "n".to_owned(), bases(&store).await);
        assert_eq!(again.open().await.unwrap(), snapshot);
        let mut after = Seq::START;
        loop {
            let events = again.read(after, 700).await.unwrap();
            let Some(last) = events.last() else { break };
            assert_eq!(events[0].seq, after.next());
            after = last.seq;
        }
        assert_eq!(after, snapshot.seq);
        let old = vec![again.segment(0).unwrap(), again.segment(SEGMENT).unwrap()];
        store.remove(old).await.unwrap();
        assert_eq!(again.open().await.unwrap(), snapshot);

        log.cut(&snapshot).await.unwrap();
        log.drop_old().await.unwrap();
        append(&mut log, &mut snapshot, 1).await;
        let kept = Log::new(Arc::clone(&store), "n".to_owned(), bases(&store).await);
        assert_eq!(kept.open().await.unwrap(), snapshot);
        let gone = kept.read(Seq::START, 1).await.unwrap_err();
        assert_eq!(gone.kind, ErrorKind::Compacted);
        let last = kept.read(Seq::new(2 * SEGMENT + 10), 10).await.unwrap();
        assert_eq!(last.len(), 1);
    }
}
