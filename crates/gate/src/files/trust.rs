//! Which workspaces the person has trusted: `trust.json` in the config folder, by real path, with
//! the digest of everything in each that decides.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use protocol::Digest;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::folder::Links;
use super::stamp::Seen;

const NAME: &str = "trust.json";

/// The workspaces that are trusted, as long as they stay as they were.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    file: PathBuf,
    written: Written,
    seen: Seen,
}

/// What was trusted in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// Over every name and every byte.
    pub digest: Digest,
    /// Each file's own, to tell which have changed.
    pub files: BTreeMap<String, Digest>,
    /// What they allow, a line each, to tell what is new.
    #[serde(default)]
    pub allows: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    workspaces: BTreeMap<String, Trusted>,
}

/// Why it is not known what has been trusted.
#[derive(Debug, thiserror::Error)]
pub enum BadTrust {
    /// It cannot be read or written.
    #[error("{file} cannot be used: {error}.")]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It has been changed by something else than Ward.
    #[error(
        "{file} is not what Ward wrote: {error}. Move it away and trust your workspaces again."
    )]
    Content {
        /// The file.
        file: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// Others may change it.
    #[error("{0} can be changed by others, so it says nothing. Run `chmod 600` on it.")]
    Open(PathBuf),
    /// A path that cannot be written down.
    #[error("{0} is not UTF-8 and cannot be trusted. Rename the folder.")]
    Name(PathBuf),
}

impl Trust {
    /// Reads what has been trusted so far.
    pub fn read(config: &Path) -> Result<Self, BadTrust> {
        let file = config.join(NAME);
        let mut seen = Seen::default();
        seen.note(file.clone(), Links::Followed);
        let bad = |error| BadTrust::Io {
            file: file.clone(),
            error,
        };
        let written = match std::fs::metadata(&file) {
            Ok(about) if about.mode() & 0o022 != 0 => return Err(BadTrust::Open(file)),
            Ok(about) if !about.is_file() => return Err(bad(ErrorKind::InvalidInput.into())),
            Ok(_) => {
                let text = std::fs::read(&file).map_err(bad)?;
                serde_json::from_slice(&text).map_err(|error| BadTrust::Content {
                    file: file.clone(),
                    error,
                })?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Written::default(),
            Err(error) => return Err(bad(error)),
        };
        Ok(Self {
            file,
            written,
            seen,
        })
    }

    /// Whether exactly this has been trusted in the workspace with this real path.
    #[must_use]
    pub fn holds(&self, workspace: &Path, digest: &Digest) -> bool {
        self.of(workspace)
            .is_some_and(|trusted| trusted.digest == *digest)
    }

    /// What was last trusted there.
    #[must_use]
    pub fn of(&self, workspace: &Path) -> Option<&Trusted> {
        self.written.workspaces.get(workspace.to_str()?)
    }

    /// All of them, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Trusted)> {
        let all = self.written.workspaces.iter();
        all.map(|(path, trusted)| (path.as_str(), trusted))
    }

    /// Remembers that the person trusts this, beside whatever else is trusted by now.
    pub fn add(config: &Path, workspace: &Path, trusted: Trusted) -> Result<(), BadTrust> {
        let name = workspace.to_str();
        let name = name.ok_or_else(|| BadTrust::Name(workspace.to_owned()))?;
        change(config, |written| {
            written.workspaces.insert(name.to_owned(), trusted);
        })
    }

    /// Forgets a workspace; says whether it was there.
    pub fn revoke(config: &Path, workspace: &Path) -> Result<bool, BadTrust> {
        let mut was_there = false;
        change(config, |written| {
            let name = workspace.to_string_lossy();
            was_there = written.workspaces.remove(name.as_ref()).is_some();
        })?;
        Ok(was_there)
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Puts a new file in the place of the old one, whole.
    fn write(&self, folder: &Path) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.written)?;
        text.push(b'\n');
        let new = self.file.with_extension("json.new");
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        // Where an earlier one was left, its mode was kept.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.file)?;
        File::open(folder)?.sync_all()
    }
}

/// One change at a time, each on what the last one left.
fn change(config: &Path, change: impl FnOnce(&mut Written)) -> Result<(), BadTrust> {
    let bad = |error| BadTrust::Io {
        file: config.join(NAME),
        error,
    };
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700);
    folders.create(config).map_err(bad)?;
    let folder = File::open(config).map_err(bad)?;
    rustix::fs::flock(&folder, FlockOperation::LockExclusive).map_err(|error| bad(error.into()))?;
    let mut trust = Trust::read(config)?;
    change(&mut trust.written);
    trust.write(config).map_err(bad)
}
