//! A folder that files are read from: with links followed where the person keeps it, without where
//! anybody may have put them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The largest file that is read.
const LARGEST: u64 = 1024 * 1024;
/// The most entries of one folder that are looked at.
const MOST: usize = 256;

/// Whether links lead on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Followed,
    Refused,
}

/// Why something that is there is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("It is a symbolic link, or behind one, and in a workspace none is followed.")]
    Link,
    #[error("It is no regular file.")]
    Kind,
    #[error("It is larger than {} KiB.", LARGEST / 1024)]
    Size,
    #[error("It is not UTF-8.")]
    Text,
    #[error("It has more than {MOST} entries, and none of them is used.")]
    Many,
    #[error("There are too many or too large files beside it.")]
    Together,
    #[error("It cannot be read: {0}.")]
    Io(std::io::Error),
}

impl Refusal {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Link => "Put the file itself there.",
            Self::Kind | Self::Text => "Write it as a text file.",
            Self::Size => "Make it smaller.",
            Self::Many | Self::Together => "Keep fewer there.",
            Self::Io(_) => "See that you may read it.",
        }
    }
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Link,
            error => Self::Io(error.into()),
        }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    links: Links,
}

impl Folder {
    pub(super) fn new(path: &Path, links: Links) -> Self {
        Self {
            path: path.to_owned(),
            links,
        }
    }

    /// Whether it is there.
    pub(super) fn check(&self) -> std::io::Result<()> {
        match std::fs::metadata(&self.path)?.is_dir() {
            true => Ok(()),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn links(&self) -> Links {
        self.links
    }

    /// A file's text; [`None`] where there is no such file.
    pub(super) fn text(&self, name: &Path) -> Result<Option<String>, Refusal> {
        let Some(file) = self.open(name, OFlags::NONBLOCK | OFlags::NOCTTY)? else {
            return Ok(None);
        };
        let file = File::from(file);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(Refusal::Kind);
        }
        let mut bytes = Vec::new();
        // Not by the size it says it has: it may grow meanwhile.
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(Refusal::Size);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Refusal::Text),
        }
    }

    /// The names in a folder, in order; none where it is not there.
    pub(super) fn names(&self, name: &Path) -> Result<Vec<OsString>, Refusal> {
        let Some(folder) = self.open(name, OFlags::DIRECTORY)? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in Dir::new(folder)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            if names.len() == MOST {
                return Err(Refusal::Many);
            }
            let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
            names.push(name.to_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Opens for reading; [`None`] where it, or a folder above it, is not there.
    fn open(&self, name: &Path, flags: OFlags) -> Result<Option<OwnedFd>, Refusal> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | flags;
        let opened = match self.links {
            Links::Followed => {
                let path = self.path.join(name);
                // A device must not be opened to find out that it is one.
                match std::fs::metadata(&path) {
                    Ok(about) if about.is_file() || about.is_dir() => {
                        rustix::fs::open(&path, flags, Mode::empty()).map_err(Refusal::from)
                    }
                    Ok(_) => return Err(Refusal::Kind),
                    Err(error) => Err(error.into()),
                }
            }
            Links::Refused => self.walk(name, flags),
        };
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(Refusal::Io(error)) if is_missing(&error) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// From the workspace down, name by name, so that no link leads anywhere.
    fn walk(&self, name: &Path, flags: OFlags) -> Result<OwnedFd, Refusal> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = rustix::fs::open(&self.path, folder, Mode::empty())?;
        let mut names = name.iter().peekable();
        while let Some(name) = names.next() {
            let about = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(about.st_mode) {
                FileType::Symlink => return Err(Refusal::Link),
                FileType::RegularFile | FileType::Directory => {}
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(Refusal::Kind),
            }
            let flags = match names.peek() {
                Some(_) => folder,
                None => flags,
            };
            at = rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(at)
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
