//! What was replaced, by its digest: `kept/<ab>/<sha256>` in the data folder, 0600.
//!
//! Nothing waits for the disk here: if the machine fails, what was kept last may be lost, and is
//! found to be so by its digest.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, SystemTime};

use protocol::Digest;
use sha2::{Digest as _, Sha256};

use crate::request::new_id;

/// What was kept or needed so recently is not removed.
const RECENT: Duration = Duration::from_secs(60);
/// How files begin that are not whole yet.
const NEW: &str = "new-";

/// The kept contents.
#[derive(Debug)]
pub(super) struct Blobs {
    folder: PathBuf,
    /// How many bytes are kept at the most.
    limit: u64,
    /// How many there are, once somebody has counted.
    used: Mutex<Option<u64>>,
    /// Held while old ones are removed.
    sweeping: Mutex<()>,
}

impl Blobs {
    pub(super) fn new(data: &Path, limit: u64) -> Self {
        Self {
            folder: data.join("kept"),
            limit,
            used: Mutex::default(),
            sweeping: Mutex::default(),
        }
    }

    /// Keeps what is read; [`None`] where it is more than `most` bytes.
    pub(super) fn keep(
        &self,
        mut source: impl Read,
        most: u64,
    ) -> std::io::Result<Option<(Digest, u64)>> {
        self.make(&self.folder)?;
        let id = new_id().map_err(|failure| Error::other(failure.message))?;
        let made = Made(self.folder.join(format!("{NEW}{id}")));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&made.0)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; 64 * 1024];
        let mut size = 0;
        loop {
            let read = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => piece.get(..read).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            size += read.len() as u64;
            if size > most {
                return Ok(None);
            }
            hash.update(read);
            file.write_all(read)?;
        }
        let digest = Digest::from_hash(&hash.finalize().into());
        if !self.has(&digest, Some(size)) {
            let path = self.path(&digest)?;
            if let Some(above) = path.parent() {
                self.make(above)?;
            }
            std::fs::rename(&made.0, path)?;
            if let Some(used) = &mut *self.used() {
                *used += size;
            }
        }
        Ok(Some((digest, size)))
    }

    /// Whether this content is kept. Then it is not removed within the next moment.
    pub(super) fn has(&self, digest: &Digest, size: Option<u64>) -> bool {
        let is_there = || -> std::io::Result<bool> {
            let file = File::open(self.path(digest)?)?;
            let right =
                size.is_none_or(|size| file.metadata().is_ok_and(|about| about.len() == size));
            if right {
                rustix::fs::futimens(
                    &file,
                    &rustix::fs::Timestamps {
                        last_access: NOW,
                        last_modification: NOW,
                    },
                )?;
            }
            Ok(right)
        };
        is_there().unwrap_or(false)
    }

    /// The content; [`None`] where it is no longer kept, or not as it was.
    pub(super) fn read(&self, digest: &Digest) -> std::io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(digest)?) {
            Ok(bytes) => Ok((Digest::of(&bytes) == *digest).then_some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it is time to [sweep](Self::sweep).
    pub(super) fn is_full(&self) -> bool {
        self.used().is_none_or(|used| used > self.limit)
    }

    /// Counts, and removes the oldest where there is more than the limit.
    pub(super) fn sweep(&self) -> std::io::Result<()> {
        let _one_at_a_time = match self.sweeping.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let mut files = Vec::new();
        collect(&self.folder, &mut files)?;
        let mut used: u64 = files.iter().map(|file| file.size).sum();
        let before = SystemTime::now().checked_sub(RECENT);
        files.sort_unstable_by_key(|file| file.modified);
        for file in files {
            let old = before.is_some_and(|before| file.modified < before);
            if old && (file.is_left || used > self.limit) {
                match std::fs::remove_file(&file.path) {
                    Ok(()) => used -= file.size,
                    Err(error) => {
                        tracing::warn!(path = %file.path.display(), %error, "what is kept for an undo cannot be removed");
                    }
                }
            }
        }
        *self.used() = Some(used);
        Ok(())
    }

    fn path(&self, digest: &Digest) -> std::io::Result<PathBuf> {
        // It may come from a file that somebody changed.
        let hex = digest.as_str().strip_prefix("sha256:");
        let hex =
            hex.filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let (Some(hex), Some(start)) = (hex, hex.and_then(|hex| hex.get(..2))) else {
            return Err(Error::new(ErrorKind::InvalidInput, "it is no digest"));
        };
        Ok(self.folder.join(start).join(hex))
    }

    fn make(&self, folder: &Path) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Option<u64>> {
        // Nothing panics while it is held.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NOW: rustix::fs::Timespec = rustix::fs::Timespec {
    tv_sec: 0,
    tv_nsec: rustix::fs::UTIME_NOW as _,
};

/// A file that goes away again, unless it was renamed.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Found {
    path: PathBuf,
    size: u64,
    modified: SystemTime,
    /// Whether it was left half written by a Ward that was killed.
    is_left: bool,
}

fn collect(folder: &Path, files: &mut Vec<Found>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let about = match entry.metadata() {
            Ok(about) => about,
            // Renamed or removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if about.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(Found {
                is_left: entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(NEW.as_bytes()),
                path: entry.path(),
                size: about.size(),
                modified: about.modified()?,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn age(path: &Path, seconds: u64) {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn a_content_is_kept_once_by_its_digest_for_its_owner_alone() {
        let data = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(data.path(), 1000);
        let (digest, size) = blobs.keep(&b"content"[..], 7).unwrap().unwrap();
        assert_eq!((digest.clone(), size), (Digest::of(b"content"), 7));
        let path = blobs.path(&digest).unwrap();
        assert!(path.starts_with(data.path().join("kept").join(&digest.as_str()[7..9])));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let inode = path.metadata().unwrap().ino();
        blobs.keep(&b"content"[..], 7).unwrap().unwrap();
        assert_eq!(path.metadata().unwrap().ino(), inode);
        assert_eq!(blobs.read(&digest).unwrap().unwrap(), b"content");
        assert!(blobs.has(&digest, Some(7)) && !blobs.has(&digest, Some(8)));

        assert_eq!(blobs.keep(&b"content!"[..], 7).unwrap(), None);
        assert_eq!(blobs.read(&Digest::of(b"content!")).unwrap(), None);
        std::fs::write(&path, "changed").unwrap();
        assert_eq!(blobs.read(&digest).unwrap(), None);
        let left = std::fs::read_dir(data.path().join("kept")).unwrap().count();
        assert_eq!(left, 1);
    }

    #[test]
    fn a_digest_that_is_none_names_no_file() {
        let data = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(data.path(), 1000);
        let digest: Digest = serde_json::from_str("\"sha256:../../../etc/passwd\"").unwrap();
        assert!(blobs.read(&digest).is_err() && !blobs.has(&digest, None));
    }

    #[test]
    fn beyond_the_limit_the_oldest_go_but_none_that_is_fresh() {
        let data = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(data.path(), 250);
        blobs.sweep().unwrap();
        let kept: Vec<Digest> = (0..5_u8)
            .map(|content| blobs.keep(&[content; 100][..], 100).unwrap().unwrap().0)
            .collect();
        assert!(blobs.is_full());
        for (digest, seconds) in kept.iter().zip([200, 500, 400, 300, 0]) {
            age(&blobs.path(digest).unwrap(), seconds);
        }
        let left = data.path().join("kept/new-left");
        std::fs::write(&left, "half").unwrap();
        age(&left, 100);
        // Needed again, so it is as good as new.
        assert!(blobs.has(&kept[2], None));
        blobs.sweep().unwrap();
        let is_kept = |digest: &Digest| blobs.read(digest).unwrap().is_some();
        let kept: Vec<bool> = kept.iter().map(is_kept).collect();
        assert_eq!(kept, [false, false, true, false, true]);
        assert!(!left.exists() && !blobs.is_full());
    }
}
