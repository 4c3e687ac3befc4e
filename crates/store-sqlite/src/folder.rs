//! The data folder: closed to others, and owned by one process at a time.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::OpenError;

/// Holds the owner's lock and says who that is.
const LOCK: &str = "ward.lock";

/// A data folder that this process owns, until this is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Takes the folder, and makes it (0700) where there is none. `purpose` is what others are told
    /// about the owner, such as `ward serve`.
    ///
    /// Refuses a folder that another process owns, and one that other users can enter, unless
    /// nothing but Ward's is in it: then it is closed to them.
    pub fn own(path: &Path, purpose: &str) -> Result<Self, OpenError> {
        let failed = |why| OpenError::Folder {
            folder: path.to_owned(),
            why,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed)?;
        let mode = path.metadata().map_err(failed)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            if !is_wards(path).map_err(failed)? {
                return Err(OpenError::OpenToOthers {
                    folder: path.to_owned(),
                    mode,
                });
            }
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(OpenError::Held {
                    folder: path.to_owned(),
                    owner: owner(&mut lock),
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        sign(&mut lock, purpose).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether nothing is in it that is not Ward's, so that closing it takes nothing from anybody.
/// A folder like `/tmp` is meant for others even while it is empty.
fn is_wards(path: &Path) -> std::io::Result<bool> {
    let shared = path.metadata()?.mode() & 0o7022 != 0;
    let mut entries = std::fs::read_dir(path)?;
    Ok(!shared && (entries.next().is_none() || path.join(LOCK).exists()))
}

fn sign(lock: &mut File, purpose: &str) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    write!(lock, "`{purpose}`, process {}", std::process::id())
}

/// Who holds the lock, in the words it was signed with.
fn owner(lock: &mut File) -> String {
    let mut words = String::new();
    match lock.take(200).read_to_string(&mut words) {
        // The owner has the lock already but has not signed it yet.
        Ok(0) => "another Ward".to_owned(),
        Ok(_) => words.escape_default().to_string(),
        Err(error) if error.kind() == ErrorKind::InvalidData => "another process".to_owned(),
        Err(error) => format!("another process ({error})"),
    }
}
