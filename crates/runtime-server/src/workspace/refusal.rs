//! What people are told when a path is refused: what happened, why, what to do.

use std::path::Path;

use protocol::{ErrorKind, Failure};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// What the system's answer means for `path`.
pub(crate) fn of(errno: Errno, path: &str) -> Failure {
    let (kind, what) = match errno {
        Errno::NOENT => (
            ErrorKind::NotFound,
            "does not exist. fs.list shows what is there",
        ),
        Errno::NOTDIR => (
            ErrorKind::NotADirectory,
            "is not a folder, or goes through something that is not. fs.stat tells what it is",
        ),
        Errno::ISDIR => (ErrorKind::NotAFile, "is a folder, not a file"),
        Errno::XDEV => (
            ErrorKind::OutsideWorkspace,
            "leads out of the workspace, by `..` or by a symbolic link. Name a path that stays inside",
        ),
        Errno::LOOP => (
            ErrorKind::NotFound,
            "goes through symbolic links that never end. Name the file they were meant for",
        ),
        Errno::NAMETOOLONG => (
            ErrorKind::InvalidParams,
            "is too long: a name has at most 255 bytes, a path at most 4,095",
        ),
        Errno::EXIST => (ErrorKind::AlreadyExists, "is there already"),
        Errno::NOTEMPTY => (ErrorKind::NotEmpty, "still has entries"),
        Errno::ACCESS | Errno::PERM => (
            ErrorKind::PermissionDenied,
            "may not be used so by the user that Ward runs as. Change its permissions",
        ),
        Errno::ROFS => (
            ErrorKind::PermissionDenied,
            "is on a file system that is mounted read-only",
        ),
        Errno::NOSPC | Errno::DQUOT => (
            ErrorKind::Io,
            "could not be written: the disk is full. Make room and try again",
        ),
        Errno::MFILE | Errno::NFILE => (
            ErrorKind::Busy,
            "could not be opened: too many files are open. Try again when less is under way",
        ),
        other => {
            let message = format!("{} failed: {}.", quoted(path), std::io::Error::from(other));
            return Failure::new(ErrorKind::Io, message).with("path", path);
        }
    };
    Failure::new(kind, format!("{} {what}.", quoted(path))).with("path", path)
}

/// The same for errors that came through the standard library.
pub(crate) fn io(error: &std::io::Error, path: &str) -> Failure {
    match Errno::from_io_error(error) {
        Some(errno) => of(errno, path),
        None => Failure::new(ErrorKind::Io, format!("{} failed: {error}.", quoted(path)))
            .with("path", path),
    }
}

/// Text that cannot be a path.
pub(crate) fn bad_path(path: &str, why: &str) -> Failure {
    Failure::new(
        ErrorKind::InvalidParams,
        format!("The path {} {why}.", quoted(path)),
    )
    .with("path", path)
}

/// An absolute path elsewhere.
pub(crate) fn outside(path: &str, workspace: &Path) -> Failure {
    Failure::new(
        ErrorKind::OutsideWorkspace,
        format!(
            "{} is outside the workspace {}. Name a path inside it, or start Ward with another --workspace.",
            quoted(path),
            workspace.display()
        ),
    )
    .with("path", path)
}

/// Something that is not a regular file where one is needed.
pub(crate) fn not_a_file(stat: &Stat, path: &str) -> Failure {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => "a folder. fs.list shows what is in it",
        FileType::Symlink => "a symbolic link. Name the file it leads to",
        FileType::Fifo => "a FIFO, which could block for ever. Use terminal.run for it",
        FileType::Socket => "a socket. Use terminal.run for it",
        FileType::CharacterDevice | FileType::BlockDevice => {
            "a device. File actions only touch regular files"
        }
        FileType::RegularFile | FileType::Unknown => "not a regular file",
    };
    Failure::new(ErrorKind::NotAFile, format!("{} is {what}.", quoted(path))).with("path", path)
}

/// More than an action takes at once.
pub(crate) fn too_large(path: &str, size: u64, limit: u64) -> Failure {
    Failure::new(
        ErrorKind::TooLarge,
        format!(
            "{} has {size} bytes; file actions take at most {limit}. Use fs.search, or terminal.run with a tool that reads a part of it.",
            quoted(path)
        ),
    )
    .with("path", path)
    .with("size", size)
    .with("limit", limit)
}

/// A path as sentences show it: short enough to read, and without line breaks.
pub(crate) fn quoted(path: &str) -> String {
    let mut shown: String = path
        .chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect();
    if path.chars().count() > 200 {
        shown.push('…');
    }
    format!("`{shown}`")
}
