//! Where a path leads on this machine, and what is there.

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use policy::place::by_words;
use protocol::facts::EntryKind;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How many links that lead nowhere yet are followed.
const LINKS: usize = 40;

/// Where a path led.
pub(crate) struct Led {
    pub(crate) path: PathBuf,
    /// What is there; none where nothing is.
    pub(crate) kind: Option<EntryKind>,
}

/// Where a path leads: through links as far as it is there, by its words from there on.
pub(crate) fn real(workspace: &str, given: &str) -> Led {
    leads(by_words(&Path::new(workspace).join(given)), LINKS)
}

/// The same, but for a link at its own end, which is not followed.
pub(crate) fn kept(workspace: &str, given: &str) -> Led {
    let path = by_words(&Path::new(workspace).join(given));
    let path = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => leads(parent.to_owned(), LINKS).path.join(name),
        _ => path,
    };
    let found = rustix::fs::lstat(&path).ok();
    let kind = found.map(|found| kind_of(found.st_mode));
    Led { path, kind }
}

fn leads(path: PathBuf, links: usize) -> Led {
    let mut rest = Vec::new();
    let mut at = path.as_path();
    loop {
        let below = |path: PathBuf| rest.iter().rev().fold(path, |path, name| path.join(name));
        if let Some(Led { path, kind }) = where_it_is(at) {
            let kind = kind.filter(|_| rest.is_empty());
            return Led {
                path: below(path),
                kind,
            };
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return Led { path, kind: None };
        };
        // Who writes through a link to what is not there yet writes there.
        if let (Ok(target), 1..) = (at.read_link(), links)
            && let Some(folder) = where_it_is(parent)
        {
            return leads(below(by_words(&folder.path.join(target))), links - 1);
        }
        rest.push(name.to_owned());
        at = parent;
    }
}

/// The real path of what is there. The kernel walks it at once: most paths lead over no link, and are
/// their own real path; of the others it says where it came to.
fn where_it_is(path: &Path) -> Option<Led> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let straight = ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), straight) {
        Ok(found) => {
            return Some(Led {
                path: path.to_owned(),
                kind: kind_at(&found),
            });
        }
        // There is a link; or the kernel does not know this call, or somebody keeps it from us.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => {}
        Err(_) => return None,
    }
    let found = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let name = format!("/proc/self/fd/{}", found.as_raw_fd());
    let path = match rustix::fs::readlink(name, Vec::new()).map(CString::into_bytes) {
        // Behind the name of what was deleted meanwhile the kernel says so; of what is no file it has
        // no path.
        Ok(real) if real.starts_with(b"/") && !real.ends_with(b" (deleted)") => {
            PathBuf::from(OsString::from_vec(real))
        }
        Ok(_) | Err(_) => path.canonicalize().ok()?,
    };
    Some(Led {
        path,
        kind: kind_at(&found),
    })
}

fn kind_at(found: &OwnedFd) -> Option<EntryKind> {
    let found = rustix::fs::fstat(found).ok()?;
    Some(kind_of(found.st_mode))
}

fn kind_of(mode: rustix::fs::RawMode) -> EntryKind {
    match FileType::from_raw_mode(mode) {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_told_of_where_a_path_leads_and_of_a_link_where_that_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/file"), "").unwrap();
        for (name, target) in [("way", "sub"), ("link", "sub/file"), ("nowhere", "gone")] {
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        let workspace = root.to_str().unwrap();
        let told = |Led { path, kind }: Led| {
            let path = path.strip_prefix(&root).unwrap();
            (path.to_str().unwrap().to_owned(), kind)
        };
        let at = |path: &str, kind| (path.to_owned(), kind);
        for (given, path, kind) in [
            (".", "", Some(EntryKind::Directory)),
            ("sub/./file", "sub/file", Some(EntryKind::File)),
            ("way/file", "sub/file", Some(EntryKind::File)),
            ("way/../link", "sub/file", Some(EntryKind::File)),
            ("nowhere", "gone", None),
            ("sub/new/er", "sub/new/er", None),
        ] {
            assert_eq!(told(real(workspace, given)), at(path, kind), "{given}");
        }
        for (given, path, kind) in [
            ("link", "link", Some(EntryKind::Symlink)),
            ("way/file", "sub/file", Some(EntryKind::File)),
            ("way/new", "sub/new", None),
        ] {
            assert_eq!(told(kept(workspace, given)), at(path, kind), "{given}");
        }
    }
}
