//! How a ledger is opened: whether it is where its head outside says, and what was unfinished.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use store::{Append, Expected, Seq, Store, StoreError, StreamName};

use super::chain::{Prepared, State, form_of, hash_told};
use super::entry::{Entry, EntryKind, HASHED, NewEntry, TEXT};
use super::head::{Found, Head, HeadFile, look};
use super::walk::{Place, Walk};
use super::{Ledger, Shared};
use crate::clock;
use crate::redact::Redactor;

/// The ledger's stream in the store.
const STREAM: &str = "ledger";

/// Who wrote an entry that nobody asked for.
const SELF: &str = "ward";

/// Why a ledger could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store failed.
    #[error("The ledger could not be opened. {0}")]
    Store(#[from] StoreError),
    /// The file outside could not be read or made.
    #[error(
        "The ledger's head could not be kept in {path}: {why}. Make that folder writable for Ward, or name another.",
        path = path.display()
    )]
    Head {
        /// The file.
        path: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
}

/// What was found when the ledger was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// Whether it was where it had been left.
    pub standing: Standing,
    /// The actions that began and have not ended, the oldest first.
    pub unfinished: Vec<Unfinished>,
}

/// Whether a ledger was where it had been left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There was none.
    New,
    /// It was.
    Sound,
    /// It was not. A `gap` entry says so from now on; this is its sentence.
    Gap(String),
}

/// An action that began and has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// Its id.
    pub action_id: String,
    /// The entry with which it began.
    pub request: Entry,
}

impl<S: Store> Ledger<S> {
    /// Opens the ledger of a store. `head` is the file outside the store's folder that says where
    /// the chain ends; it is made, for its owner alone, where there is none.
    ///
    /// A ledger that is not where that file says is opened all the same: an entry then says what
    /// was expected and what was found, and `verify` names it from then on.
    pub async fn open(
        store: Arc<S>,
        head: PathBuf,
        redactor: Arc<Redactor>,
    ) -> Result<(Self, Opened), LedgerError> {
        let stream = StreamName::new(STREAM)
            .map_err(|error| LedgerError::Store(StoreError::Failed(error.to_string())))?;
        let failed = |why| LedgerError::Head {
            path: head.clone(),
            why,
        };
        let outside = look(&head).map_err(failed)?;
        let mut file = HeadFile::open(head.clone()).map_err(failed)?;

        let there = end(&*store, &stream).await?;
        let gap = compare(&*store, &stream, &outside, &there).await?;
        let from = match (&gap, &outside) {
            (None, Found::Outside(outside)) => outside.quiet,
            // What was quiet by a head that does not fit may have lost its end.
            _ => Seq::START,
        };
        let mut state = State::at(there.clone());
        let unfinished = unfinished(&*store, &stream, from, &mut state).await?;

        let (standing, first) = match gap {
            Some(gap) => {
                tracing::error!(
                    expected = %gap.expected,
                    found = %gap.found,
                    "{}", gap.what
                );
                (Standing::Gap(gap.what.clone()), Some(gap.entry()))
            }
            None if there.seq == Seq::START => (Standing::New, Some(begun())),
            None => (Standing::Sound, None),
        };
        if let Some(entry) = first {
            let (event, next) = Prepared::new(&redactor, entry).link(&there);
            store
                .append(vec![Append {
                    stream: stream.clone(),
                    expected: Expected::Head(there.seq),
                    events: vec![event],
                }])
                .await?;
            state.advance(next);
        }
        file.begin(state.head(), state.quiet()).map_err(failed)?;

        let shared = Shared {
            store,
            stream,
            redactor,
            file,
            state: Mutex::new(state),
            waiting: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        };
        let ledger = Self {
            shared: Arc::new(shared),
        };
        Ok((
            ledger,
            Opened {
                standing,
                unfinished,
            },
        ))
    }
}

/// The first entry of a ledger: no two of them are alike.
fn begun() -> NewEntry {
    let mut id = [0_u8; 16];
    // Without a source of randomness, its time tells it from others.
    let _ = getrandom::fill(&mut id);
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    own(EntryKind::Begun, json!({ "ledger": id, TEXT: HASHED }))
}

fn own(kind: EntryKind, data: Value) -> NewEntry {
    NewEntry {
        kind,
        at: clock::now(),
        actor: SELF.into(),
        role: None,
        session: None,
        workspace: None,
        action_id: None,
        data: data.into(),
    }
}

/// Where the store says that the chain ends. What has no readable hash there is followed as if
/// nothing had been before; the entry that comes next says why.
async fn end<S: Store>(store: &S, stream: &StreamName) -> Result<Head, StoreError> {
    let nothing = Append {
        stream: stream.clone(),
        expected: Expected::Any,
        events: Vec::new(),
    };
    let heads = store.append(vec![nothing]).await?;
    let seq = heads.first().copied().unwrap_or_default();
    let hash = match place(store, stream, seq).await? {
        Some(Place::Event(event, _)) => hash_told(&event),
        Some(Place::Unreadable { .. }) | None => None,
    };
    Ok(Head {
        seq,
        hash: hash.unwrap_or(Head::before_the_first().hash),
    })
}

/// What is in one place.
async fn place<S: Store>(
    store: &S,
    stream: &StreamName,
    seq: Seq,
) -> Result<Option<Place>, StoreError> {
    let Some(before) = seq.get().checked_sub(1) else {
        return Ok(None);
    };
    match store.read_texts(stream, Seq::new(before), 1).await {
        Ok(events) => Ok(events
            .into_iter()
            .find(|(event, _)| event.seq == seq)
            .map(|(event, text)| Place::Event(event, text))),
        Err(StoreError::Failed(why)) => Ok(Some(Place::Unreadable { seq, why })),
        Err(error) => Err(error),
    }
}

/// What does not fit.
#[derive(Debug)]
struct Gap {
    what: String,
    expected: Value,
    found: Value,
}

impl Gap {
    fn entry(self) -> NewEntry {
        let Self {
            what,
            expected,
            found,
        } = self;
        own(
            EntryKind::Gap,
            json!({ "what": what, "expected": expected, "found": found }),
        )
    }
}

/// Whether the chain is where the file outside says, or further on from there: Ward may have been
/// killed after it wrote to the store.
async fn compare<S: Store>(
    store: &S,
    stream: &StreamName,
    outside: &Found,
    there: &Head,
) -> Result<Option<Gap>, StoreError> {
    let told = match outside {
        Found::Nothing if there.seq == Seq::START => return Ok(None),
        Found::Nothing => {
            return Ok(Some(Gap {
                what: format!(
                    "The ledger has {} entries, but the file outside the store that says where it ends is gone. Whether entries were cut off or written anew before this one cannot be told.",
                    there.seq
                ),
                expected: Value::Null,
                found: json!(there),
            }));
        }
        Found::Unreadable => {
            return Ok(Some(Gap {
                what: format!(
                    "The ledger has {} entries, but the file outside the store that says where it ends was not written by Ward. Whether entries were cut off or written anew before this one cannot be told.",
                    there.seq
                ),
                expected: Value::Null,
                found: json!(there),
            }));
        }
        Found::Outside(outside) => &outside.head,
    };
    if there.seq < told.seq {
        return Ok(Some(Gap {
            what: format!(
                "The ledger had {} entries when it was last written, and {} when it was opened: its end was cut off, or was lost with the machine's power.",
                told.seq, there.seq
            ),
            expected: json!(told),
            found: json!(there),
        }));
    }
    let (hash, found) = match place(store, stream, told.seq).await? {
        Some(Place::Event(event, text)) => {
            let hash = hash_told(&event);
            let found = json!({ "seq": told.seq, "hash": hash });
            (hash.filter(|_| form_of(&event, &text).is_some()), found)
        }
        Some(Place::Unreadable { seq, why }) => (None, json!({ "seq": seq, "unreadable": why })),
        None => (None, json!({ "seq": told.seq, "missing": true })),
    };
    if hash.as_ref() == Some(&told.hash) {
        return Ok(None);
    }
    Ok(Some(Gap {
        what: format!(
            "Entry {} of the ledger is not the one that was written there: it was changed, or the ledger was written anew.",
            told.seq
        ),
        expected: json!(told),
        found,
    }))
}

/// The actions that began after `from` and have not ended; `state` knows them then.
async fn unfinished<S: Store>(
    store: &S,
    stream: &StreamName,
    from: Seq,
    state: &mut State,
) -> Result<Vec<Unfinished>, StoreError> {
    let mut requests = std::collections::BTreeMap::new();
    let mut walk = Walk::new(store, stream, from, state.head().seq);
    loop {
        let places = walk.piece().await?;
        if places.is_empty() {
            break;
        }
        for place in places {
            // What cannot be read is named by `verify`.
            let Place::Event(event, _) = place else {
                continue;
            };
            let seq = event.seq;
            let Ok(entry) = Entry::of(event) else {
                continue;
            };
            state.note(seq, entry.kind, entry.action_id.as_deref());
            if entry.kind == EntryKind::Request {
                requests.insert(seq, entry);
            }
        }
        requests.retain(|seq, _| state.is_open(*seq));
    }
    Ok(requests
        .into_values()
        .filter_map(|request| {
            let action_id = request.action_id.clone()?;
            Some(Unfinished { action_id, request })
        })
        .collect())
}
