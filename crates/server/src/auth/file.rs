//! The file of tokens: how it is read, and how it is changed by one at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use protocol::Digest;
use serde::{Deserialize, Serialize};

use super::tokens::TokenInfo;

const FILE: &str = "tokens.json";
const LOCK: &str = "tokens.lock";
const VERSION: u32 = 1;

/// Why tokens cannot be used, or a token cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The system has no randomness to give.
    #[error("No token could be made: the system gave no random bytes ({0}).")]
    NoRandomness(String),
    /// A file cannot be read or written.
    #[error("{path} cannot be used: {why}. Make it readable and writable for yourself.", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The file is not one of tokens.
    #[error("{path} cannot be read: {what}. Mend it, or move it away; then nobody has a token, and the first one is made anew.", path = path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Others could write it.
    #[error("{path} can be changed by others, who could let themselves in. Look what is in it, then run `chmod 600` and, if it is not yours, `chown` on it.", path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A name that cannot be used.
    #[error(
        "`{0}` cannot be a name: use 1 to 64 letters, digits, `.`, `_` or `-`, and begin with a letter or digit."
    )]
    BadName(String),
    /// No such person.
    #[error(
        "There is no person `{0}`, so nobody could be asked. `ward tokens list` shows who there is."
    )]
    UnknownPerson(String),
    /// No such token.
    #[error("There is no token `{0}`. `ward tokens list` shows them.")]
    UnknownToken(String),
    /// A workspace that is none.
    #[error("{path} cannot be the workspace: {why}. Name a folder that exists.", path = path.display())]
    BadWorkspace {
        /// As it was named.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Too easy to guess.
    #[error("The token is shorter than {min} characters. Give a longer one, or none.", min = super::tokens::MIN_CHOSEN)]
    TooShort,
    /// There is a limit.
    #[error("There are {0} tokens already. Revoke those that nobody uses.")]
    TooMany(usize),
}

/// The file as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Written {
    version: u32,
    pub(super) tokens: Vec<WrittenToken>,
    #[serde(default)]
    pub(super) sessions: Vec<Session>,
}

/// A token as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct WrittenToken {
    #[serde(flatten)]
    pub(super) info: TokenInfo,
    pub(super) hash: Digest,
}

/// A browser that has signed in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) hash: Digest,
    /// The token of whose person it is; they end together.
    pub(super) token: String,
    /// The user of this machine whose browser it is, where that is known. It counts for them alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<u32>,
    pub(super) created_at: u64,
    pub(super) expires_at: u64,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            version: VERSION,
            tokens: Vec::new(),
            sessions: Vec::new(),
        }
    }
}

/// Tells one state of the file from another: a change is always a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Where the file is.
#[derive(Debug)]
pub(super) struct TokensFile {
    folder: PathBuf,
    path: PathBuf,
}

impl TokensFile {
    pub(super) fn of(config: &Path) -> Self {
        Self {
            folder: config.to_owned(),
            path: config.join(FILE),
        }
    }

    /// The file's state now; none where it is not there.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, TokensError> {
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => found,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(unusable(&self.path, why)),
        };
        let mine = found.uid() == rustix::process::geteuid().as_raw();
        if !mine || found.mode() & 0o022 != 0 {
            return Err(TokensError::Exposed {
                path: self.path.clone(),
            });
        }
        Ok(Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }))
    }

    /// What is in it; nothing where it is not there.
    pub(super) fn read(&self) -> Result<Written, TokensError> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Written::default()),
            Err(why) => return Err(unusable(&self.path, why)),
        };
        let broken = |what: String| TokensError::Broken {
            path: self.path.clone(),
            what,
        };
        let written: Written =
            serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if written.version != VERSION {
            return Err(broken(format!(
                "it has version {}, and this Ward knows version {VERSION}",
                written.version
            )));
        }
        Ok(written)
    }

    /// Changes it. Whoever else wants to waits, and what was changed before is seen.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Written) -> Result<T, TokensError>,
    ) -> Result<T, TokensError> {
        let _lock = self.lock()?;
        self.stamp()?;
        let before = self.read()?;
        let mut written = before.clone();
        let value = change(&mut written)?;
        if written != before {
            let text =
                serde_json::to_vec_pretty(&written).map_err(|error| TokensError::Broken {
                    path: self.path.clone(),
                    what: error.to_string(),
                })?;
            replace(&self.path, &text)?;
        }
        Ok(value)
    }

    /// Held until it is dropped.
    fn lock(&self) -> Result<File, TokensError> {
        let path = self.folder.join(LOCK);
        let locked = || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.folder)?;
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            Ok(file)
        };
        locked().map_err(|why| unusable(&path, why))
    }
}

/// Puts new content in a file's place, whole or not at all, for its owner alone.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), TokensError> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = || {
        // One that was left behind by a Ward that was killed.
        let _ = std::fs::remove_file(&new);
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    };
    written().map_err(|why| unusable(path, why))
}

pub(super) fn unusable(path: &Path, why: io::Error) -> TokensError {
    TokensError::Unusable {
        path: path.to_owned(),
        why,
    }
}
