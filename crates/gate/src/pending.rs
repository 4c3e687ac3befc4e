//! Actions that wait for an answer, kept whole in files of their own (0600), so that they survive a
//! restart and can be deleted when they close: the record has them only redacted.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind as IoKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use protocol::approval::Approval;
use protocol::runtime::RuntimeChoice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::Ask;

/// An action that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) approval: Approval,
    pub(crate) person: String,
    pub(crate) asked: Kept,
}

/// A request, as far as it is needed to go on with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) params: Value,
    pub(crate) role: String,
    pub(crate) parents: Vec<String>,
    pub(crate) mode: protocol::Mode,
    pub(crate) workspace: PathBuf,
    pub(crate) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<RuntimeChoice>,
    pub(crate) ask: Ask,
    pub(crate) content: protocol::Digest,
}

/// The folder of those files.
#[derive(Debug)]
pub(crate) struct Pending(PathBuf);

/// What was found there.
#[derive(Debug)]
pub(crate) enum Found {
    /// It waits.
    Open(Box<Waiting>),
    /// It was answered, and nobody knows whether it ran.
    Answered(Box<Waiting>),
}

impl Pending {
    pub(crate) fn open(data: &Path) -> std::io::Result<Self> {
        let folder = data.join("pending");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        Ok(Self(folder))
    }

    /// Keeps it. When this returns, it is there whole or not at all.
    pub(crate) fn keep(&self, waiting: &Waiting) -> std::io::Result<()> {
        let made = self.0.join(format!("{}.new", waiting.approval.id));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&made)?;
        file.write_all(&serde_json::to_vec(waiting)?)?;
        std::fs::rename(&made, self.file(&waiting.approval.id))
    }

    /// It is answered: from now on it never begins by itself again.
    pub(crate) fn answered(&self, id: &str) {
        tell(id, std::fs::rename(self.file(id), self.done(id)));
    }

    /// It is closed.
    pub(crate) fn forget(&self, id: &str) {
        for file in [self.done(id), self.file(id)] {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() == IoKind::NotFound => {}
                result => tell(id, result),
            }
        }
    }

    /// All that are there.
    pub(crate) fn all(&self) -> std::io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let path = entry?.path();
            let waiting = || -> std::io::Result<Box<Waiting>> {
                Ok(Box::new(serde_json::from_slice(&std::fs::read(&path)?)?))
            };
            let ending = path.extension().and_then(|ending| ending.to_str());
            match (ending, waiting()) {
                (Some("json"), Ok(waiting)) => found.push(Found::Open(waiting)),
                (Some("answered"), Ok(waiting)) => found.push(Found::Answered(waiting)),
                // Half a file of a Ward that was killed while it wrote it: nobody was told.
                (Some("new"), _) => tell("new", std::fs::remove_file(&path)),
                (_, result) => tracing::warn!(
                    path = %path.display(),
                    error = ?result.err(),
                    "passed over a file among the pending actions"
                ),
            }
        }
        Ok(found)
    }

    fn file(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn done(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.answered"))
    }
}

fn tell(id: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(id, %error, "the file of a pending action could not be changed");
    }
}
