//! Finds what is to be undone, from the end of the ledger on.

use std::collections::{HashMap, HashSet};

use protocol::{Digest, ErrorKind, Failure};
use serde_json::Value;
use store::{Seq, Store};

use super::Undo;
use super::manifest::Manifest;
use crate::diff;
use crate::gate::{Inner, no_action};
use crate::ledger::{Entry, EntryKind};
use crate::path::unwritten;
use crate::record::stream_of;
use crate::workspace;

/// How many entries are read at a time.
const PAGE: u64 = 256;
/// How many actions of a session are undone at once.
const MOST: usize = 1000;

/// An action that can be undone.
#[derive(Debug)]
pub(super) struct Undoable {
    pub(super) id: String,
    pub(super) session: Option<String>,
    pub(super) manifest: Manifest,
}

/// What is looked for, and what was found on the way back.
struct Search<'a> {
    what: &'a Undo,
    /// The workspace of [`Undo::Last`].
    workspace: Option<String>,
    /// What was taken back, and the undo that did, which was not taken back itself. Whatever takes
    /// something back is newer, and so was met before.
    undone: HashMap<String, String>,
    ended: HashSet<String>,
}

impl<S: Store> Inner<S> {
    /// The actions to undo, the newest first.
    pub(super) async fn find(&self, person: &str, what: &Undo) -> Result<Vec<Undoable>, Failure> {
        let mut search = Search {
            what,
            workspace: match what {
                Undo::Last { workspace } => {
                    let named = workspace.as_deref().unwrap_or(&self.options.workspace);
                    Some(workspace::find(named)?.1)
                }
                Undo::Action(_) | Undo::Session(_) => None,
            },
            undone: HashMap::new(),
            ended: HashSet::new(),
        };
        if let Undo::Action(id) = what
            && !self.is_of(person, id).await?
        {
            return Err(no_action(id));
        }
        let (mut found, mut closed) = (Vec::new(), false);
        let mut end = self.ledger.head().seq.get();
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            let count = usize::try_from(end - start).unwrap_or(usize::MAX);
            let entries = self.ledger.read(Seq::new(start), count).await;
            for entry in entries
                .map_err(|error| unwritten(&error))?
                .into_iter()
                .rev()
            {
                match search.look(&entry)? {
                    Met::Nothing => {}
                    Met::Closed => closed = true,
                    Met::Outcome(id) => {
                        if !self.is_of(person, &id).await? {
                            continue;
                        }
                        let manifest = self.manifest(&id, &entry).await?;
                        found.push(Undoable {
                            id,
                            session: entry.session.clone(),
                            manifest,
                        });
                        match what {
                            Undo::Action(_) | Undo::Last { .. } => return Ok(found),
                            Undo::Session(_) if found.len() > MOST => return Err(too_many()),
                            Undo::Session(_) => {}
                        }
                    }
                }
            }
            end = start;
        }
        if found.is_empty() {
            return Err(nothing(what, closed));
        }
        Ok(found)
    }

    /// Whether an action is this person's, or one of their agents'.
    async fn is_of(&self, person: &str, id: &str) -> Result<bool, Failure> {
        let Ok(stream) = stream_of(id) else {
            return Ok(false);
        };
        let found = self.look_up(&stream).await?;
        Ok(found.is_some_and(|found| found.person.as_deref() == Some(person)))
    }

    async fn manifest(&self, id: &str, entry: &Entry) -> Result<Manifest, Failure> {
        let digest: Option<Digest> = entry
            .data
            .get("kept")
            .and_then(|digest| serde_json::from_value(digest.clone()).ok());
        let blobs = std::sync::Arc::clone(&self.undo.blobs);
        let read = move || -> Option<Manifest> {
            let bytes = blobs.read(&digest?).ok()??;
            serde_json::from_slice(&bytes).ok()
        };
        let manifest = super::blocking(read).await.flatten();
        manifest.ok_or_else(|| {
            Failure::new(
                ErrorKind::Unknown,
                format!(
                    "What the action `{}` replaced is no longer kept: it had to make room for newer, or could not be kept.",
                    diff::name(id)
                ),
            )
            .with("action_id", id)
        })
    }
}

/// What an entry means for the search.
enum Met {
    Nothing,
    /// It was undone already.
    Closed,
    /// An action that is meant.
    Outcome(String),
}

impl Search<'_> {
    fn look(&mut self, entry: &Entry) -> Result<Met, Failure> {
        let Some(id) = &entry.action_id else {
            return Ok(Met::Nothing);
        };
        match entry.kind {
            EntryKind::Outcome => {}
            EntryKind::Request => {
                // Its outcome would have come first.
                if matches!(self.what, Undo::Action(wanted) if wanted == id)
                    && !self.ended.contains(id)
                {
                    return Err(Failure::new(
                        ErrorKind::Busy,
                        "This action is still under way. Cancel it, or wait for its end.",
                    ));
                }
                return Ok(Met::Nothing);
            }
            EntryKind::Begun
            | EntryKind::Decision
            | EntryKind::Approval
            | EntryKind::Answer
            | EntryKind::Grant
            | EntryKind::Revoked
            | EntryKind::Gap => return Ok(Met::Nothing),
        }
        self.ended.insert(id.clone());
        let text = |name: &str| entry.data.get(name).and_then(Value::as_str);
        let undo_of = text("undo_of").map(ToOwned::to_owned);
        if let Some(of) = &undo_of
            && text("status") == Some("done")
            && !self.undone.contains_key(id)
        {
            self.undone.insert(of.clone(), id.clone());
        }
        match self.what {
            Undo::Action(wanted) if wanted == id => self.outcome(id, entry),
            Undo::Action(_) => Ok(Met::Nothing),
            // An undo is undone only by its own name, or two in a row would do nothing.
            Undo::Session(_) | Undo::Last { .. } if undo_of.is_some() => Ok(Met::Nothing),
            Undo::Session(wanted) if entry.session.as_ref() == Some(wanted) => {
                Ok(self.passing(id, entry))
            }
            Undo::Last { .. } if entry.workspace == self.workspace => Ok(self.passing(id, entry)),
            Undo::Session(_) | Undo::Last { .. } => Ok(Met::Nothing),
        }
    }

    /// An action that was named.
    fn outcome(&self, id: &str, entry: &Entry) -> Result<Met, Failure> {
        if entry.data.get("files").is_none() {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!(
                    "The action `{}` changed no file by itself, so there is nothing to put back. What can be undone are fs.write, fs.edit, fs.patch, fs.mkdir, fs.move and fs.delete.",
                    diff::name(id)
                ),
            )
            .with("action_id", id));
        }
        if let Some(undo) = self.undone.get(id) {
            return Err(Failure::new(
                ErrorKind::Closed,
                format!(
                    "This action was undone already. Undo `{undo}`, which did, to have it again."
                ),
            )
            .with("undo_id", undo.clone()));
        }
        Ok(Met::Outcome(id.to_owned()))
    }

    /// An action that is passed on the way.
    fn passing(&self, id: &str, entry: &Entry) -> Met {
        if entry.data.get("files").is_none() {
            return Met::Nothing;
        }
        if self.undone.contains_key(id) {
            return Met::Closed;
        }
        Met::Outcome(id.to_owned())
    }
}

fn nothing(what: &Undo, closed: bool) -> Failure {
    let kind = if closed {
        ErrorKind::Closed
    } else {
        ErrorKind::Unknown
    };
    let sentence = match (what, closed) {
        (Undo::Action(id), _) => return no_action(id),
        (Undo::Session(_), true) => "All of this session was undone already.".to_owned(),
        (Undo::Session(session), false) => format!(
            "There is no session `{}` of yours in which a file was changed.",
            diff::name(&session.chars().take(100).collect::<String>())
        ),
        (Undo::Last { .. }, true) => {
            "All that changed a file in this workspace was undone already.".to_owned()
        }
        (Undo::Last { .. }, false) => {
            "Nothing of yours has changed a file in this workspace yet.".to_owned()
        }
    };
    Failure::new(kind, sentence)
}

fn too_many() -> Failure {
    Failure::new(
        ErrorKind::TooLarge,
        format!("More than {MOST} actions of this session changed files. Undo them one by one."),
    )
}
