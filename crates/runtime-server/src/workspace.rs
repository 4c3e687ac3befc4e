//! The workspace: a folder that file actions can touch, held open by a descriptor.
//!
//! A path from a request is text that an attacker chose, in a tree that an attacker can change at
//! any moment. So nothing is concluded from the text: the kernel walks it from the workspace's
//! descriptor and refuses to leave (`workspace/open.rs`), and what comes back is a [`HostPath`] or a
//! [`Place`], which hold descriptors. What is done afterwards is done to those, whatever the
//! names lead to by then.

mod open;
mod place;
pub(crate) mod refusal;
mod replace;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::facts::EntryKind;
use protocol::{ErrorKind, Failure};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

pub use open::Final;
pub use place::Place;
pub(crate) use place::{PROTECTED, Ready, Seen, refuse_protected};
pub(crate) use replace::{Like, Staged, Undo, rename_new, sync_folder, unchanged};

/// The folder the actions work in.
///
/// It is held open, so that moving it away and putting something else in its place leads nobody
/// there.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    /// `/proc/self/fd`, held open: walking there costs more than asking.
    descriptors: OwnedFd,
    real: PathBuf,
    /// The device and the number of the folder that is held, as the file system names it.
    identity: (u64, u64),
    given: PathBuf,
    extent: Extent,
    changing: Mutex<()>,
    /// Whether names were what they led to so far. Where a file is known by several, as without a
    /// difference between `a` and `A`, they are not.
    plain: AtomicBool,
}

/// How far a workspace goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// One folder: what leads out of it is refused, and paths are told from it down.
    Folder,
    /// The whole tree of files: nothing leads out of it, and paths are told from `/` down.
    Everything,
}

/// What was at a path inside the workspace when it was looked up, held by a descriptor.
///
/// Unlike a `PathBuf`, it cannot be made to mean something else by renaming or linking. Its paths
/// are for people and for facts; nothing is opened by them.
#[derive(Debug)]
pub struct HostPath {
    fd: OwnedFd,
    stat: Stat,
    real: PathBuf,
    relative: PathBuf,
}

impl Workspace {
    /// Opens the folder at `path`, which may lead there through symbolic links.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::open_as(path, Extent::Folder)
    }

    /// Opens the whole tree of files, for what lies beyond a workspace. Only
    /// [`Grounds`](crate::grounds::Grounds) says who may touch what there.
    pub(crate) fn everything() -> Result<Self, Failure> {
        Self::open_as(Path::new("/"), Extent::Everything)
    }

    fn open_as(path: &Path, extent: Extent) -> Result<Self, Failure> {
        let refuse = |error: &dyn std::fmt::Display| {
            Failure::new(
                ErrorKind::NotADirectory,
                format!(
                    "{} cannot be the workspace: {error}. Name a folder that exists.",
                    path.display()
                ),
            )
        };
        let given = std::path::absolute(path).map_err(|error| refuse(&error))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refuse(&error))?;
        let descriptors = rustix::fs::open("/proc/self/fd", flags, Mode::empty())
            .map_err(|error| refuse(&error))?;
        let real = real_path(&descriptors, root.as_fd()).map_err(|error| refuse(&error))?;
        let stat = rustix::fs::fstat(&root).map_err(|error| refuse(&error))?;
        Ok(Self {
            root,
            descriptors,
            real,
            identity: (stat.st_dev, stat.st_ino),
            given,
            extent,
            changing: Mutex::new(()),
            plain: AtomicBool::new(true),
        })
    }

    /// The workspace's real path.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// What is at `path`.
    ///
    /// Refuses what leads out of the workspace (`outside_workspace`), what is not there
    /// (`not_found`), and text that cannot be a path (`invalid_params`).
    pub fn find(&self, path: &str, last: Final) -> Result<HostPath, Failure> {
        let asked = self.relative(path)?;
        let find = || {
            let opened = self.open_beneath(&asked, last);
            self.hold(opened.map_err(|errno| refusal::of(errno, path))?, path)
        };
        // A file that was replaced in this moment is found again, as the new one.
        for _ in 0..REPLACED {
            match find() {
                Err(failure) if failure.kind == ErrorKind::Changed => {}
                found => return found,
            }
        }
        find()
    }

    /// What is at `path`, for whom a look is enough: where its text leads straight down, through no
    /// link, and the workspace is where it was. Then the text is its name, and nothing need be held
    /// open. None in every other case, which [`find`](Self::find) knows how to tell.
    pub(crate) fn glance<'a>(&self, path: &'a str) -> Option<(&'a Path, Stat)> {
        let is_plain = |name: &str| !matches!(name, "" | "." | "..");
        let may = self.plain.load(Ordering::Relaxed);
        if !may || path.contains('\0') || !path.split('/').all(is_plain) {
            return None;
        }
        let stat = if path.contains('/') {
            rustix::fs::fstat(self.open_straight(Path::new(path)).ok()?)
        } else {
            rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW)
        };
        let stat = stat
            .ok()
            .filter(|stat| kind_of(stat) != EntryKind::Symlink)?;
        let here = rustix::fs::lstat(&self.real).ok()?;
        ((here.st_dev, here.st_ino) == self.identity && stat.st_nlink > 0)
            .then_some((Path::new(path), stat))
    }

    /// What a glance told was not so when it was looked at well: from now on there are none.
    pub(crate) fn no_more_glances(&self) {
        self.plain.store(false, Ordering::Relaxed);
    }

    /// The regular file at `path`, through links that stay inside.
    pub fn file(&self, path: &str) -> Result<HostPath, Failure> {
        let found = self.find(path, Final::Followed)?;
        if found.kind() != EntryKind::File {
            return Err(refusal::not_a_file(&found.stat, path));
        }
        Ok(found)
    }

    /// The folder at `path`, through links that stay inside.
    pub fn folder(&self, path: &str) -> Result<HostPath, Failure> {
        let found = self.find(path, Final::Followed)?;
        if found.kind() != EntryKind::Directory {
            return Err(refusal::of(rustix::io::Errno::NOTDIR, path));
        }
        Ok(found)
    }

    /// One change at a time: held from the last look at a file to its replacement, so that two
    /// actions never undo each other's work unseen.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a panic elsewhere left nothing broken behind it.
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path from the workspace down, still only text.
    fn relative(&self, path: &str) -> Result<PathBuf, Failure> {
        if path.is_empty() {
            return Err(refusal::bad_path(
                path,
                "is empty. Use `.` for the workspace itself",
            ));
        }
        if path.contains('\0') {
            return Err(refusal::bad_path(
                path,
                "holds a NUL byte, which no path can. Send it without",
            ));
        }
        let path_text = Path::new(path);
        if path_text.is_relative() {
            return Ok(path_text.to_owned());
        }
        self.inside(path_text)
            .ok_or_else(|| refusal::outside(path, &self.real))
    }

    /// An absolute path as one from the workspace down, if its text starts with the workspace.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let rest = path
            .strip_prefix(&self.real)
            .or_else(|_| path.strip_prefix(&self.given))
            .ok()?;
        Some(if rest.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            rest.to_owned()
        })
    }

    fn hold(&self, fd: OwnedFd, path: &str) -> Result<HostPath, Failure> {
        let stat = rustix::fs::fstat(&fd).map_err(|errno| refusal::of(errno, path))?;
        let real =
            real_path(&self.descriptors, fd.as_fd()).map_err(|errno| refusal::of(errno, path))?;
        // Replaced or deleted since it was opened: the kernel says so behind the name, which is no
        // longer where anything is.
        if real.as_os_str().as_bytes().ends_with(b" (deleted)")
            && rustix::fs::fstat(&fd).is_ok_and(|stat| stat.st_nlink == 0)
        {
            return Err(Failure::new(
                ErrorKind::Changed,
                format!("`{path}` was replaced while it was looked at. Ask again."),
            ));
        }
        let Ok(relative) = real.strip_prefix(&self.real) else {
            // The kernel has just walked it from inside, so the workspace itself was moved.
            return Err(Failure::new(
                ErrorKind::Changed,
                format!(
                    "The workspace is no longer at {}. Put it back, or start the runtime again where it is now.",
                    self.real.display()
                ),
            ));
        };
        Ok(HostPath {
            relative: match self.extent {
                Extent::Folder => relative.to_owned(),
                Extent::Everything => real.clone(),
            },
            fd,
            stat,
            real,
        })
    }
}

impl HostPath {
    /// The real, absolute path, after every symbolic link.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The same from the workspace down, and empty for the workspace itself; beyond the workspace
    /// it is the real path.
    #[must_use]
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        kind_of(&self.stat)
    }

    /// What the system knows of it.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Where a symbolic link points, as it is written in it.
    pub(crate) fn link_target(&self) -> rustix::io::Result<Vec<u8>> {
        let target = rustix::fs::readlinkat(&self.fd, "", Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Opens the regular file for reading. It is the file that was found, not its name.
    pub(crate) fn open(&self) -> rustix::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        Ok(File::from(rustix::fs::open(name, flags, Mode::empty())?))
    }

    /// Opens the folder so that its entries can be read.
    pub(crate) fn open_folder(&self) -> rustix::io::Result<OwnedFd> {
        open_folder(self.fd.as_fd(), ".")
    }

    /// The content of a regular file, at most `limit` bytes of it.
    pub(crate) fn read(&self, limit: u64, path: &str) -> Result<Vec<u8>, Failure> {
        let size = u64::try_from(self.stat.st_size).unwrap_or(0);
        if size > limit {
            return Err(refusal::too_large(path, size, limit));
        }
        let file = self.open().map_err(|errno| refusal::of(errno, path))?;
        read_whole(file, size, limit, path)
    }
}

impl AsFd for HostPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a folder by one name in an open one, never through a link.
pub(crate) fn open_folder(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens a regular file by one name in an open folder, never through a link.
pub(crate) fn open_file(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<(File, Stat)> {
    // NONBLOCK, or a FIFO put there would hold us until somebody writes to it.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if kind_of(&stat) != EntryKind::File {
        return Err(rustix::io::Errno::INVAL);
    }
    Ok((File::from(fd), stat))
}

/// Reads to the end, but refuses to read more than `limit`: a file may grow while it is read.
pub(crate) fn read_whole(
    file: File,
    size: u64,
    limit: u64,
    path: &str,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or(0));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| refusal::io(&error, path))?;
    let read = bytes.len() as u64;
    if read > limit {
        return Err(refusal::too_large(path, read, limit));
    }
    Ok(bytes)
}

pub(crate) fn kind_of(stat: &Stat) -> EntryKind {
    kind_of_type(FileType::from_raw_mode(stat.st_mode))
}

pub(crate) fn kind_of_type(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

/// How often a path is looked for again whose file was replaced at that moment.
const REPLACED: u32 = 8;

/// Where the kernel says that a descriptor is, asked in the folder of descriptors.
fn real_path(descriptors: &OwnedFd, fd: BorrowedFd<'_>) -> rustix::io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let name = rustix::path::DecInt::from_fd(fd);
    let target = rustix::fs::readlinkat(descriptors, name, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(
        target.into_bytes(),
    )))
}
