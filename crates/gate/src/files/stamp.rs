//! What the file system says about the files that were read, to see cheaply whether one changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::folder::{Folder, Links};

/// Times of files go by the kernel's ticks, so two changes within one look like one. What changed
/// this recently is not relied on.
const TICK: Duration = Duration::from_millis(20);

/// The files and folders that were looked at, also those that were not there.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Vec<Entry>);

#[derive(Debug, Clone)]
struct Entry {
    path: PathBuf,
    links: Links,
    stamp: Option<Stamp>,
    is_settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seen {
    /// Notes how a file or folder is now; says whether it is there. Below one that is not, nothing
    /// need be noted.
    pub(super) fn add(&mut self, folder: &Folder, name: &Path) -> bool {
        self.note(folder.path(name), folder.links())
    }

    pub(super) fn note(&mut self, path: PathBuf, links: Links) -> bool {
        let stamp = stamp(&path, links);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let is_settled = stamp.is_none_or(|stamp| {
            let changed = u64::try_from(stamp.changed.0).unwrap_or_default();
            let nanos = u32::try_from(stamp.changed.1).unwrap_or_default();
            let changed = Duration::new(changed, nanos);
            now.is_ok_and(|now| now > changed + TICK)
        });
        self.0.push(Entry {
            path,
            links,
            stamp,
            is_settled,
        });
        stamp.is_some()
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Whether all of them are as they were.
    pub(super) fn is_current(&self) -> bool {
        self.0
            .iter()
            .all(|entry| entry.is_settled && entry.stamp == stamp(&entry.path, entry.links))
    }
}

/// None for what is not there, or not to be seen.
fn stamp(path: &Path, links: Links) -> Option<Stamp> {
    let about: Metadata = match links {
        Links::Followed => std::fs::metadata(path),
        Links::Refused => std::fs::symlink_metadata(path),
    }
    .ok()?;
    Some(Stamp {
        device: about.dev(),
        inode: about.ino(),
        mode: about.mode(),
        size: about.size(),
        modified: (about.mtime(), about.mtime_nsec()),
        changed: (about.ctime(), about.ctime_nsec()),
    })
}
