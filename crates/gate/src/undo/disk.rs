//! What is at a real path now. A real path has no links in it: none is followed, on the way or at
//! its end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use protocol::undo::State;
use protocol::{Digest, Permissions};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// Something that was found, and opened where it has content.
pub(crate) enum Entry {
    Absent,
    File {
        file: File,
        size: u64,
        mode: Permissions,
    },
    Directory {
        folder: OwnedFd,
        mode: Permissions,
    },
    Symlink {
        target: Vec<u8>,
    },
    Other,
}

/// Looks.
pub(crate) fn look(path: &Path) -> std::io::Result<Entry> {
    match above(path)? {
        Some((folder, name)) => at(&folder, &name),
        None => Ok(Entry::Absent),
    }
}

/// The content of a regular file; [`None`] where it is larger than `most`.
pub(crate) fn read(path: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let Entry::File { file, .. } = look(path)? else {
        return Err(Error::new(ErrorKind::NotFound, "it is no regular file"));
    };
    let mut bytes = Vec::new();
    // Not by the size it says it has: it may grow meanwhile.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// What is there, with the digest of its content.
pub(super) fn state(path: &Path) -> std::io::Result<State> {
    Ok(match look(path)? {
        Entry::Absent => State::Absent,
        Entry::File { file, size, mode } => State::File {
            digest: digest(file)?,
            size: Some(size),
            mode: Some(mode),
        },
        Entry::Directory { mode, .. } => State::Directory { mode: Some(mode) },
        Entry::Symlink { target } => link(target),
        Entry::Other => State::Other,
    })
}

pub(super) fn link(target: Vec<u8>) -> State {
    match String::from_utf8(target) {
        Ok(target) => State::Symlink { target },
        Err(_) => State::Other,
    }
}

/// The names in a folder; none where there is no folder.
pub(super) fn names(path: &Path) -> std::io::Result<Vec<OsString>> {
    match look(path)? {
        Entry::Directory { folder, .. } => list(&folder),
        Entry::Absent | Entry::File { .. } | Entry::Symlink { .. } | Entry::Other => Ok(Vec::new()),
    }
}

pub(super) fn list(folder: &OwnedFd) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What has this name in an open folder.
pub(super) fn at(folder: &OwnedFd, name: &OsStr) -> std::io::Result<Entry> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Entry::Absent),
        Err(errno) => return Err(errno.into()),
    };
    // It is looked at before it is opened: to open a device can do something.
    match kind(&stat) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            Ok(Entry::Symlink {
                target: target.into_bytes(),
            })
        }
        FileType::RegularFile | FileType::Directory => {
            let flags = OFlags::RDONLY
                | OFlags::NOFOLLOW
                | OFlags::NONBLOCK
                | OFlags::NOCTTY
                | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(folder, name, flags, Mode::empty())?;
            let stat = rustix::fs::fstat(&opened)?;
            let mode = Permissions::of(stat.st_mode);
            Ok(match kind(&stat) {
                FileType::RegularFile => Entry::File {
                    file: File::from(opened),
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    mode,
                },
                FileType::Directory => Entry::Directory {
                    folder: opened,
                    mode,
                },
                _ => Entry::Other,
            })
        }
        _ => Ok(Entry::Other),
    }
}

/// The open folder above, and the last name; [`None`] where one on the way is not there, or is no
/// folder.
fn above(path: &Path) -> std::io::Result<Option<(OwnedFd, OsString)>> {
    let invalid = || Error::new(ErrorKind::InvalidInput, "it is no real path");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open("/", flags, Mode::empty())?;
    let mut last: Option<&OsStr> = None;
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(invalid());
    }
    for component in components {
        let Component::Normal(name) = component else {
            return Err(invalid());
        };
        if let Some(above) = last.replace(name) {
            folder = match rustix::fs::openat(folder.as_fd(), above, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
        }
    }
    let name = last.ok_or_else(invalid)?;
    Ok(Some((folder, name.to_owned())))
}

/// The first link on the way to a path, where there is one: then what is there cannot be told.
pub(super) fn link_above(path: &Path) -> Option<&Path> {
    let is_link = |above: &&Path| {
        let about = above.symlink_metadata();
        about.is_ok_and(|about| about.is_symlink())
    };
    path.ancestors().skip(1).filter(is_link).last()
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn digest(mut file: File) -> std::io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Digest::from_hash(&hash.finalize().into())),
            read => hash.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_followed_on_the_way_or_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("d")).unwrap();
        std::fs::write(real.join("d/f"), "x").unwrap();
        std::os::unix::fs::symlink("d", real.join("l")).unwrap();
        std::os::unix::fs::symlink("f", real.join("d/g")).unwrap();
        let file = state(&real.join("d/f")).unwrap();
        assert!(matches!(file, State::File { size: Some(1), .. }));
        assert_eq!(state(&real.join("l/f")).unwrap(), State::Absent);
        let target = "f".to_owned();
        assert_eq!(state(&real.join("d/g")).unwrap(), State::Symlink { target });
        assert_eq!(state(&real.join("none/x")).unwrap(), State::Absent);
        assert!(state(Path::new("relative")).is_err());
        assert!(state(&real.join("d/../d/f")).is_err());
        assert_eq!(names(&real.join("d")).unwrap(), ["f", "g"]);
    }
}
