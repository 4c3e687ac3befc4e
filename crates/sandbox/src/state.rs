//! Folders of a process's own on disk.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::SandboxError;

/// How many random bytes are in a name.
const NAME: usize = 6;

/// A folder for this process alone, under a name that none had before; taken away with it. What a
/// process that was killed left of its own is taken away by the next one that makes one beside it.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    /// Locked for as long as somebody uses the folder: the system lets go of it however that ends.
    _held: File,
}

impl OwnFolder {
    /// Makes a new one below this folder, which is for such folders alone.
    pub fn make(below: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(below)?;
        let (made, left) = {
            // Nobody looks between the making of one and its lock.
            let all = folder(below)?;
            lock(&all, FlockOperation::LockExclusive)?;
            (Self::lone(below)?, left(below)?)
        };
        for (path, held) in left {
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::debug!(path = %path.display(), %error, "a folder is left");
            }
            drop(held);
        }
        Ok(made)
    }

    fn lone(below: &Path) -> io::Result<Self> {
        let mut name = [0; NAME];
        retry_on_intr(|| getrandom(&mut name, GetRandomFlags::empty()))?;
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = below.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        let held = folder(&path)?;
        lock(&held, FlockOperation::LockExclusive)?;
        Ok(Self { path, _held: held })
    }

    /// A room's, below Ward's own.
    pub(crate) fn of_room(state: &Path) -> Result<Self, SandboxError> {
        let rooms = state.join("rooms");
        Self::make(&rooms).map_err(|error| SandboxError::Layer {
            layer: "scratch home",
            why: format!("{}: {error}", rooms.display()),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Those that nobody holds any more; who asks does from now on.
fn left(below: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir(below)?.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.len() != 2 * NAME || !name.iter().all(u8::is_ascii_hexdigit) {
            continue;
        }
        let Ok(held) = folder(&entry.path()) else {
            continue;
        };
        if lock(&held, FlockOperation::NonBlockingLockExclusive).is_ok() {
            left.push((entry.path(), held));
        }
    }
    Ok(left)
}

fn folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    #[expect(clippy::cast_possible_wrap, reason = "flags, as the system has them")]
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

fn lock(folder: &File, how: FlockOperation) -> io::Result<()> {
    Ok(retry_on_intr(|| flock(folder, how))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of what is there.
    fn names(below: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(below).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_nobody_holds_is_taken_away_and_what_somebody_holds_stays() {
        let below = tempfile::tempdir().unwrap();
        let below = below.path();
        let mine = OwnFolder::make(below).unwrap();
        std::fs::write(mine.path().join("kept"), "x").unwrap();
        // As if its process had been killed: it is there, and nobody holds it.
        let killed = below.join("00112233aabb");
        std::fs::create_dir_all(killed.join("home/.cache")).unwrap();
        // Not one of these.
        std::fs::create_dir(below.join("other")).unwrap();
        let next = OwnFolder::make(below).unwrap();
        assert!(!killed.exists());
        let name = |folder: &OwnFolder| {
            let name = folder.path().file_name().unwrap();
            name.to_str().unwrap().to_owned()
        };
        let mut all = vec![name(&mine), name(&next), "other".to_owned()];
        all.sort();
        assert_eq!(names(below), all);
        assert_eq!(names(mine.path()), ["kept"]);
        drop((mine, next));
        assert_eq!(names(below), ["other"]);
    }
}
