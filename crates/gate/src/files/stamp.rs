//! What the file system says about the files that were read, to see cheaply whether one changed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};

use super::folder::{Folder, Links};

/// Times of files go by the kernel's ticks, so two changes within one look like one. What changed
/// this recently is not relied on.
const TICK: Duration = Duration::from_millis(20);

/// The files and folders that were looked at, also those that were not there.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    there: Vec<Entry>,
    missing: Vec<Missing>,
}

#[derive(Debug, Clone)]
struct Entry {
    path: PathBuf,
    links: Links,
    stamp: Stamp,
    is_settled: bool,
}

/// What was not there in one folder. While that is as it was, nothing has come: one look instead of
/// many, and most workspaces have nothing that decides.
#[derive(Debug, Clone)]
struct Missing {
    folder: PathBuf,
    last: Last,
    paths: Vec<(PathBuf, Links)>,
}

/// How a folder was when all that is missing in it was last looked for. None where that cannot be
/// relied on.
#[derive(Debug)]
struct Last(Mutex<Option<Stamp>>);

impl Last {
    /// Nothing was looked for yet: what changes without being seen in the stamp has changed by then.
    fn before_a_look(stamp: Option<Stamp>) -> Self {
        Self(Mutex::new(stamp.filter(Stamp::is_settled)))
    }

    fn get(&self) -> Option<Stamp> {
        *self.lock()
    }

    fn set(&self, other: &Self) {
        let stamp = other.get();
        *self.lock() = stamp;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Stamp>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Last {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.get()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    place: Place,
    mode: u32,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Which file or folder it is: its device and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    device: u64,
    inode: u64,
}

/// A folder as it is now, at a path that leads over no link at its end.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    path: &'a Path,
    stamp: Stamp,
}

impl<'a> Here<'a> {
    /// None where there is none.
    pub(crate) fn look(path: &'a Path) -> Option<Self> {
        let stamp = stamp(path, Links::Refused)?;
        let is_folder = FileType::from_raw_mode(stamp.mode) == FileType::Directory;
        is_folder.then_some(Self { path, stamp })
    }

    pub(crate) fn place(&self) -> Place {
        self.stamp.place
    }
}

impl Seen {
    /// Notes how a file or folder is now; says whether it is there. Below one that is not, nothing
    /// need be noted.
    pub(super) fn add(&mut self, folder: &Folder, name: &Path) -> bool {
        self.note(folder.path(name), folder.links())
    }

    pub(super) fn note(&mut self, path: PathBuf, links: Links) -> bool {
        // The folder first: what comes into it from now on changes it.
        let folder = path.parent().unwrap_or(&path).to_owned();
        let last = Last::before_a_look(stamp(&folder, Links::Followed));
        match stamp(&path, links) {
            Some(stamp) => {
                let is_settled = stamp.is_settled();
                self.there.push(Entry {
                    path,
                    links,
                    stamp,
                    is_settled,
                });
                true
            }
            None => {
                self.miss(Missing {
                    folder,
                    last,
                    paths: vec![(path, links)],
                });
                false
            }
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.there.extend(other.there.iter().cloned());
        other
            .missing
            .iter()
            .cloned()
            .for_each(|missing| self.miss(missing));
    }

    fn miss(&mut self, new: Missing) {
        let known = self.missing.iter_mut();
        let is_same =
            |known: &&mut Missing| known.folder == new.folder && known.last.get() == new.last.get();
        let mut same = known.filter(is_same);
        match same.next() {
            Some(known) => known.paths.extend(new.paths),
            None => self.missing.push(new),
        }
    }

    /// Whether all of them are as they were; `here` was just looked at.
    pub(super) fn is_current(&self, here: &Here<'_>) -> bool {
        let is_there = |entry: &Entry| {
            entry.is_settled && Some(entry.stamp) == stamp(&entry.path, entry.links)
        };
        self.there.iter().all(is_there) && self.missing.iter().all(|one| one.is_current(here))
    }
}

impl Missing {
    fn is_current(&self, here: &Here<'_>) -> bool {
        let are_missing = || {
            let mut paths = self.paths.iter();
            paths.all(|(path, links)| stamp(path, *links).is_none())
        };
        // A look at the folder instead of a look at one path saves nothing.
        if self.paths.len() < 2 {
            return are_missing();
        }
        let now = match self.folder == here.path {
            true => Some(here.stamp),
            false => stamp(&self.folder, Links::Followed),
        };
        let Some(now) = now else {
            return are_missing();
        };
        if self.last.get() == Some(now) {
            return true;
        }
        // Something else came or went there, maybe.
        let last = Last::before_a_look(Some(now));
        let is_current = are_missing();
        if is_current {
            self.last.set(&last);
        }
        is_current
    }
}

impl Stamp {
    /// Whether the last change is so long ago that the next one will look different.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let changed = u64::try_from(self.changed.0).unwrap_or_default();
        let nanos = u32::try_from(self.changed.1).unwrap_or_default();
        let changed = Duration::new(changed, nanos);
        now.is_ok_and(|now| now > changed + TICK)
    }
}

/// None for what is not there, or not to be seen.
#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_wrap,
    reason = "the fields differ between architectures; nanoseconds fit"
)]
fn stamp(path: &Path, links: Links) -> Option<Stamp> {
    let about: Stat = match links {
        Links::Followed => rustix::fs::stat(path),
        Links::Refused => rustix::fs::lstat(path),
    }
    .ok()?;
    Some(Stamp {
        place: Place {
            device: about.st_dev as u64,
            inode: about.st_ino as u64,
        },
        mode: about.st_mode as u32,
        size: about.st_size as i64,
        modified: (about.st_mtime as i64, about.st_mtime_nsec as i64),
        changed: (about.st_ctime as i64, about.st_ctime_nsec as i64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_relied_on_again_once_what_else_came_is_a_while_ago() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let settled = || {
            let now = stamp(folder.path(), Links::Followed).unwrap();
            while !now.is_settled() {
                std::thread::sleep(TICK);
            }
            now
        };
        settled();
        let mut seen = Seen::default();
        for name in ["ward.toml", ".ward"] {
            assert!(!seen.note(path(name), Links::Refused));
        }
        let last = |seen: &Seen| {
            seen.missing
                .iter()
                .map(|one| one.last.get())
                .collect::<Vec<_>>()
        };
        let is_current = |seen: &Seen| seen.is_current(&Here::look(folder.path()).unwrap());
        for name in ["README.md", "LICENSE"] {
            std::fs::write(path(name), "").unwrap();
            assert!(is_current(&seen));
            let now = settled();
            assert!(is_current(&seen));
            assert_eq!(last(&seen), [Some(now)]);
        }
        std::fs::write(path("ward.toml"), "").unwrap();
        assert!(!is_current(&seen));
        assert!(!is_current(&seen));
    }
}
