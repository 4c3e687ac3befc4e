//! What is kept of a replica, so that it survives the page: a state, the events behind it, and what
//! is pending on top of these.

use notebook::{Author, Notebook, NotebookEvent};
use serde::{Deserialize, Serialize};
use store::Seq;
use store::replica::{Base, Entry, Fold as _, Replica};

/// How many events, and about how many bytes of them, are kept behind a state before it is kept anew.
const MOST: usize = 200;
const LARGEST: usize = 256 << 10;

/// Why what was kept cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be read.
    #[error("What was kept of the notebook cannot be read: {0}")]
    Json(String),
    /// The two parts do not belong together.
    #[error("What was kept of the notebook does not fit together.")]
    Apart,
}

/// What is to be kept, in two parts that are written together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The state; nothing where the one that was kept before still counts.
    pub base: Option<String>,
    /// What came since, and what is pending.
    pub live: String,
}

#[derive(Serialize, Deserialize)]
struct Live {
    /// Where the state is.
    seq: Seq,
    tail: Vec<Entry<NotebookEvent>>,
    pending: Vec<Entry<NotebookEvent>>,
    written: u64,
}

/// What came since the state that was kept last.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Where that state is; nothing where none was kept.
    base: Option<Seq>,
    entries: Vec<Entry<NotebookEvent>>,
    bytes: usize,
    dirty: bool,
}

impl Tail {
    /// More is confirmed, or something else is pending.
    pub(crate) fn more(&mut self, confirmed: Vec<Entry<NotebookEvent>>) {
        self.dirty = true;
        for entry in confirmed {
            self.bytes += weight(&entry.event);
            self.entries.push(entry);
        }
    }

    /// The state is another one: what is kept is of no use any more.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            dirty: true,
            ..Self::default()
        };
    }

    /// What is to be kept now; nothing where it is kept already.
    pub(crate) fn take(&mut self, replica: &Replica<Notebook>) -> Option<Kept> {
        if !self.dirty {
            return None;
        }
        let anew = self.base.is_none() || self.entries.len() > MOST || self.bytes > LARGEST;
        let base = match anew {
            true => Some(serde_json::to_string(replica.confirmed()).ok()?),
            false => None,
        };
        if base.is_some() {
            self.base = Some(replica.head());
            self.entries.clear();
            self.bytes = 0;
        }
        // What a runtime said is its session's: whoever goes on with that says what became of it.
        let own = |entry: &&Entry<NotebookEvent>| match entry.event.author() {
            Author::Editor => true,
            Author::Requester | Author::Runtime | Author::Ward => false,
        };
        let live = serde_json::to_string(&Live {
            seq: self.base.unwrap_or_default(),
            tail: self.entries.clone(),
            pending: replica.pending().filter(own).cloned().collect(),
            written: replica.written(),
        });
        self.dirty = false;
        Some(Kept {
            base,
            live: live.ok()?,
        })
    }

    /// A replica as it was kept, and its tail.
    pub(crate) fn restored(
        writer: &str,
        base: &str,
        live: &str,
    ) -> Result<(Replica<Notebook>, Self), Unreadable> {
        let json = |error: serde_json::Error| Unreadable::Json(error.to_string());
        let mut base: Base<Notebook> = serde_json::from_str(base).map_err(json)?;
        let live: Live = serde_json::from_str(live).map_err(json)?;
        if live.seq != base.seq {
            return Err(Unreadable::Apart);
        }
        let mut tail = Self {
            base: Some(base.seq),
            ..Self::default()
        };
        for entry in &live.tail {
            base.state.apply(entry);
            base.seq = base.seq.next();
        }
        tail.more(live.tail);
        tail.dirty = false;
        let replica = Replica::restored(writer, base, live.pending, live.written);
        Ok((replica, tail))
    }
}

/// About how many bytes an event is.
fn weight(event: &NotebookEvent) -> usize {
    const OTHER: usize = 200;
    match event {
        NotebookEvent::Terminal(event) => OTHER + event.text.len(),
        NotebookEvent::Markdown(event) => OTHER + event.text.len(),
        NotebookEvent::CellCreated(event) => OTHER + event.source.len(),
        NotebookEvent::CellSource(event) => {
            let all = event.source.as_ref().map_or(0, String::len);
            let pieces = event.splices.iter().map(|splice| splice.insert.len());
            OTHER + all + pieces.sum::<usize>()
        }
        // Bundles can be large; what they weigh is found by writing them.
        other => serde_json::to_string(other).map_or(OTHER, |text| text.len()),
    }
}
