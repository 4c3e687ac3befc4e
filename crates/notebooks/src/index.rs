//! All notebooks there are: one stream that says what was made, titled, cut and deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Append, Expected, NewEvent, Seq, Store, StoreError, StreamName};

use crate::wire::{Compacted, NotebookInfo};

/// How many events are read at a time.
const PAGE: usize = 512;

/// What is known of a notebook without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) info: NotebookInfo,
    /// Where its segments begin, in order: each after this many events. But for the first, what came
    /// before is folded in a snapshot.
    pub(crate) bases: Vec<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Line {
    Made {
        info: NotebookInfo,
    },
    Titled {
        id: String,
        title: String,
    },
    /// A new segment begins, with a snapshot of all before.
    Cut {
        id: String,
        base: u64,
    },
    /// The segments before this base are gone.
    Compacted {
        id: String,
        base: u64,
    },
    Deleted {
        id: String,
    },
}

impl Line {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Made { .. } => "notebook.made",
            Self::Titled { .. } => "notebook.titled",
            Self::Cut { .. } => "notebook.cut",
            Self::Compacted { .. } => "notebook.compacted",
            Self::Deleted { .. } => "notebook.deleted",
        }
    }

    /// For a batch.
    pub(crate) fn append(&self) -> Result<Append, Failure> {
        Ok(Append {
            stream: name("notebooks")?,
            expected: Expected::Any,
            events: vec![NewEvent {
                kind: self.kind().into(),
                at: gate::now(),
                data: json!(self).into(),
            }],
        })
    }
}

/// Takes a line in.
pub(crate) fn fold(all: &mut BTreeMap<String, Known>, line: Line) {
    match line {
        Line::Made { info } => {
            let known = Known {
                info: info.clone(),
                bases: vec![0],
            };
            all.insert(info.id, known);
        }
        Line::Titled { id, title } => {
            if let Some(known) = all.get_mut(&id) {
                known.info.title = title;
            }
        }
        Line::Cut { id, base } => {
            if let Some(known) = all.get_mut(&id) {
                known.bases.push(base);
            }
        }
        Line::Compacted { id, base } => {
            if let Some(known) = all.get_mut(&id) {
                known.bases.retain(|begins| *begins >= base);
                known.info.compacted = Some(Compacted {
                    through: base,
                    events: base,
                });
            }
        }
        Line::Deleted { id } => drop(all.remove(&id)),
    }
}

/// All that there are.
pub(crate) async fn read<S: Store>(store: &Arc<S>) -> Result<BTreeMap<String, Known>, Failure> {
    let stream = name("notebooks")?;
    let mut all = BTreeMap::new();
    let mut after = Seq::START;
    loop {
        let events = store.read(&stream, after, PAGE).await.map_err(failed)?;
        let Some(last) = events.last() else {
            return Ok(all);
        };
        after = last.seq;
        for event in events {
            match serde_json::from_value(event.data) {
                Ok(line) => fold(&mut all, line),
                Err(error) => tracing::warn!(%error, "a line about a notebook cannot be read"),
            }
        }
    }
}

pub(crate) fn name(text: &str) -> Result<StreamName, Failure> {
    StreamName::new(text).map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))
}

pub(crate) fn failed(error: StoreError) -> Failure {
    tracing::error!(%error, "a notebook could not be written or read");
    Failure::new(ErrorKind::Internal, error.to_string())
}
