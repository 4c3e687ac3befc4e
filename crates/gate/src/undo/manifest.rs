//! What an action changed, step by step, such that it can be taken back: kept beside the contents
//! by its digest, which the ledger has.

use protocol::Digest;
use protocol::undo::{FileChange, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many changes the ledger and the action's stream show; the manifest has them all.
const SHOWN: usize = 100;

/// All that one action changed, in the order it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The workspace's real path.
    pub(super) workspace: String,
    pub(super) steps: Vec<Step>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(super) enum Step {
    /// What was at a path became something else.
    Change(FileChange),
    /// A folder was made on the way to something else. It goes when nothing is in it.
    Made { path: String },
    /// Something was moved.
    Move {
        from: String,
        to: String,
        /// What was moved.
        what: State,
        /// What was at `to`, and became what was moved.
        replaced: FileChange,
    },
}

impl Step {
    fn changes(&self) -> Vec<FileChange> {
        match self {
            Self::Change(change) => vec![change.clone()],
            Self::Made { path } => {
                let made = State::Directory { mode: None };
                vec![FileChange::new(path.clone(), State::Absent, made, None)]
            }
            Self::Move {
                from,
                what,
                replaced,
                ..
            } => vec![
                FileChange::new(from.clone(), what.clone(), State::Absent, None),
                replaced.clone(),
            ],
        }
    }
}

/// What an action changed, as it is written down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(super) files: Vec<FileChange>,
    /// The digest of the manifest; none where it could not be kept.
    pub(super) manifest: Option<Digest>,
}

impl Changed {
    pub(super) fn of(steps: &[Step], manifest: Option<Digest>) -> Self {
        Self {
            files: steps.iter().flat_map(Step::changes).collect(),
            manifest,
        }
    }

    /// Whether no file was.
    pub(crate) fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds it to an outcome, if there is something.
    pub(crate) fn tell(&self, data: &mut Value) {
        if self.files.is_empty() {
            return;
        }
        let shown: Vec<&FileChange> = self.files.iter().take(SHOWN).collect();
        if shown.len() < self.files.len() {
            data["more_files"] = json!(self.files.len() - shown.len());
        }
        data["files"] = json!(shown);
        if let Some(manifest) = &self.manifest {
            data["kept"] = json!(manifest);
        }
    }
}
