//! Undo: a file action keeps what it replaced, and a person can have it put back.
//!
//! Before each file action `keep` puts what it would replace into `blobs`, by digest; after it,
//! `left` finds what changed, step by step, for a `manifest` whose digest the ledger has.
//! To undo, `find` looks for the outcomes in the ledger, `plan` looks whether all is still as the
//! action left it, and `back` puts it back through the runtime, under permits and on the record.
//!
//! Invariants:
//! - Actions that change no files cost nothing here, and no action fails because something could
//!   not be kept.
//! - What has changed since is never overwritten; before anything is put back, all of it was
//!   looked at.
//! - No file of a workspace is written here: the runtime does that.
//!
//! What comes back is names, contents, links and who may read, write and execute; not times, owners,
//! hard links and extended attributes. What was under way when Ward was killed cannot be undone.

mod back;
mod blobs;
pub(crate) mod disk;
mod find;
mod keep;
mod left;
mod manifest;
mod plan;
mod shown;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::undo::UndoParams;
use protocol::{ActionName, ErrorKind, Facts, Failure};
use serde_json::value::RawValue;

use self::blobs::Blobs;
pub(crate) use self::keep::changes_files;
use self::keep::{Earlier, Limits};
pub(crate) use self::manifest::Changed;
use self::manifest::{Manifest, Step};

/// How much is kept of one action.
const LIMITS: Limits = Limits {
    file: 16 * 1024 * 1024,
    bytes: 64 * 1024 * 1024,
    files: 2000,
};
/// How much is kept in all.
const KEPT: u64 = 1024 * 1024 * 1024;

/// What to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// One action.
    Action(String),
    /// All of a session that is not undone yet, the newest first.
    Session(String),
    /// The last action in a workspace that is not undone yet; in the usual one where none is named.
    Last {
        /// The workspace.
        workspace: Option<PathBuf>,
    },
}

impl TryFrom<UndoParams> for Undo {
    type Error = Failure;

    fn try_from(params: UndoParams) -> Result<Self, Failure> {
        match params {
            UndoParams {
                action: Some(action),
                session: None,
                workspace: None,
            } => Ok(Self::Action(action)),
            UndoParams {
                action: None,
                session: Some(session),
                workspace: None,
            } => Ok(Self::Session(session)),
            UndoParams {
                action: None,
                session: None,
                workspace,
            } => Ok(Self::Last {
                workspace: workspace.map(PathBuf::from),
            }),
            UndoParams { .. } => Err(Failure::new(
                ErrorKind::InvalidParams,
                "Name an `action`, a `session` or a `workspace` to undo in, and only one of them.",
            )),
        }
    }
}

/// What file actions replaced.
#[derive(Debug)]
pub(crate) struct Keep {
    blobs: Arc<Blobs>,
    limits: Limits,
    /// Actions under way, and how it was before them.
    earlier: Mutex<HashMap<String, Vec<Earlier>>>,
    /// One undo at a time: each relies on what it looked at.
    turn: tokio::sync::Mutex<()>,
}

impl Keep {
    /// In a data folder; nothing is made there before something is kept.
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            blobs: Arc::new(Blobs::new(data, KEPT)),
            limits: LIMITS,
            earlier: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps what an action is about to replace.
    pub(crate) async fn before(&self, id: &str, action: ActionName, facts: &Facts) {
        if changes_files(action) {
            let earlier = Box::pin(self.look(action, facts)).await;
            self.earlier().insert(id.to_owned(), earlier);
        }
    }

    /// The action was refused and did nothing.
    pub(crate) fn forget(&self, id: &str, action: ActionName) {
        if changes_files(action) {
            self.earlier().remove(id);
        }
    }

    /// What an action changed.
    pub(crate) async fn after(
        &self,
        id: &str,
        action: ActionName,
        workspace: &str,
        outcome: Result<&RawValue, &Failure>,
    ) -> Changed {
        if !changes_files(action) {
            return Changed::default();
        }
        let Some(earlier) = self.earlier().remove(id) else {
            return Changed::default();
        };
        let steps = match outcome {
            Ok(result) => {
                let result = result.to_owned();
                blocking(move || left::after(action, earlier, &result)).await
            }
            Err(failure) => {
                let failure = failure.clone();
                blocking(move || left::after_failure(action, earlier, &failure)).await
            }
        };
        Box::pin(self.written(workspace, steps.unwrap_or_default())).await
    }

    async fn look(&self, action: ActionName, facts: &Facts) -> Vec<Earlier> {
        let (blobs, limits, facts) = (Arc::clone(&self.blobs), self.limits, facts.clone());
        let looked = blocking(move || keep::before(&blobs, limits, action, &facts)).await;
        if self.blobs.is_full() {
            let blobs = Arc::clone(&self.blobs);
            tokio::task::spawn_blocking(move || {
                if let Err(error) = blobs.sweep() {
                    tracing::warn!(%error, "what is kept for an undo cannot be looked through");
                }
            });
        }
        looked.unwrap_or_default()
    }

    /// Keeps the steps themselves.
    async fn written(&self, workspace: &str, steps: Vec<Step>) -> Changed {
        if steps.is_empty() {
            return Changed::default();
        }
        let blobs = Arc::clone(&self.blobs);
        let manifest = Manifest {
            workspace: workspace.to_owned(),
            steps,
        };
        let written = blocking(move || {
            let kept = serde_json::to_vec(&manifest)
                .map_err(std::io::Error::from)
                .and_then(|bytes| blobs.keep(bytes.as_slice(), u64::MAX));
            let digest = match kept {
                Ok(kept) => kept.map(|(digest, _)| digest),
                Err(error) => {
                    tracing::warn!(%error, "what an action changed cannot be kept");
                    None
                }
            };
            Changed::of(&manifest.steps, digest)
        });
        written.await.unwrap_or_default()
    }

    fn earlier(&self) -> MutexGuard<'_, HashMap<String, Vec<Earlier>>> {
        // Nothing panics while it is held.
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On a thread that may wait for the disk; [`None`] when Ward ends.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
