//! A place where something is, or could be put: an open folder and one name in it.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::protected::protected;
use protocol::{Digest, ErrorKind, Failure};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::{Final, Workspace, kind_of, open_file, refusal};

/// One name in a folder that is held open. Nobody can make it mean a place outside: the name is
/// not followed if it is a link, and the folder stays the one that was found.
#[derive(Debug)]
pub struct Place {
    /// The deepest folder on the way that exists.
    base: OwnedFd,
    /// Folders that have to be made below it first.
    missing: Vec<OsString>,
    name: OsString,
    asked: String,
    real: PathBuf,
    relative: PathBuf,
}

/// What identifies a file's state: if it is the same later, nobody changed the file in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    file: (u64, u64),
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Seen {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the fields differ between architectures, and only equality counts"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            file: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

impl Workspace {
    /// The place at `path`, to be changed there.
    ///
    /// Refuses what [`Workspace::find`] refuses on the way there, the workspace itself, and what
    /// is protected, by the name that was asked for and by the real one.
    pub fn place(&self, path: &str) -> Result<Place, Failure> {
        let asked = self.relative(path)?;
        let (Some(name), Some(above)) = (asked.file_name(), asked.parent()) else {
            return Err(refusal::bad_path(
                path,
                "is the workspace itself or ends in `..`. Name something inside the workspace",
            ));
        };
        let mut above = above.to_owned();
        let mut missing: Vec<OsString> = Vec::new();
        let base = loop {
            let text = if above.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &above
            };
            match self.open_beneath(text, Final::Followed) {
                Ok(fd) => break self.hold(fd, path)?,
                Err(Errno::NOENT) => {
                    // What is missing can be made, but not what comes after a `..` from there.
                    let Some(Component::Normal(folder)) = above.components().next_back() else {
                        return Err(refusal::of(Errno::NOENT, path));
                    };
                    missing.insert(0, folder.to_owned());
                    above.pop();
                }
                Err(errno) => return Err(refusal::of(errno, path)),
            }
        };
        if base.kind() != EntryKind::Directory {
            return Err(refusal::of(Errno::NOTDIR, path));
        }
        if let Some(first) = missing.first()
            && rustix::fs::statat(&base.fd, first, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!(
                    "{} goes through a symbolic link that leads nowhere. Delete the link first, or name another path.",
                    refusal::quoted(path)
                ),
            )
            .with("path", path));
        }

        let below: PathBuf = missing
            .iter()
            .map(OsString::as_os_str)
            .chain([name])
            .collect();
        let place = Place {
            name: name.to_owned(),
            asked: path.to_owned(),
            real: base.real.join(&below),
            relative: base.relative.join(&below),
            base: base.fd,
            missing,
        };
        let named = normal(&asked);
        refuse_protected(&named, &self.real.join(&named), path)?;
        refuse_protected(&place.relative, &place.real, path)?;
        Ok(place)
    }
}

impl Place {
    /// The path as it was asked for.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The real, absolute path.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The same from the workspace down; beyond the workspace it is the real path.
    #[must_use]
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// What is there; a link is told as one.
    pub(crate) fn entry(&self) -> Result<Option<Stat>, Failure> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        match rustix::fs::statat(&self.base, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refusal::of(errno, &self.asked)),
        }
    }

    /// Opens the regular file that is there.
    pub(crate) fn open(&self) -> Result<(std::fs::File, Stat), Failure> {
        match open_file(self.base.as_fd(), &self.name) {
            Ok(opened) => Ok(opened),
            // A link in its place (LOOP), a socket (NXIO) or another special file (INVAL).
            Err(Errno::LOOP | Errno::NXIO | Errno::INVAL) => match self.entry()? {
                Some(stat) => Err(refusal::not_a_file(&stat, &self.asked)),
                None => Err(refusal::of(Errno::NOENT, &self.asked)),
            },
            Err(errno) => Err(refusal::of(errno, &self.asked)),
        }
    }

    /// The digest of the content that is there: of a file's bytes, of a link's target.
    pub(crate) fn digest(&self, stat: &Stat) -> Result<Option<Digest>, Failure> {
        match kind_of(stat) {
            EntryKind::Directory | EntryKind::Other => Ok(None),
            EntryKind::Symlink => {
                let target = rustix::fs::readlinkat(&self.base, &self.name, Vec::new())
                    .map_err(|errno| refusal::of(errno, &self.asked))?;
                Ok(Some(Digest::of(target.as_bytes())))
            }
            EntryKind::File => {
                let (mut file, _) = self.open()?;
                let mut hash = Sha256::new();
                let mut piece = vec![0; 64 * 1024];
                loop {
                    let read = file
                        .read(&mut piece)
                        .map_err(|error| refusal::io(&error, &self.asked))?;
                    if read == 0 {
                        return Ok(Some(Digest::from_hash(&hash.finalize().into())));
                    }
                    hash.update(&piece[..read]);
                }
            }
        }
    }

    /// What would happen here, as a fact.
    pub(crate) fn fact(&self, access: Access, stat: Option<&Stat>) -> Result<PathFact, Failure> {
        Ok(PathFact {
            path: self.real.to_string_lossy().into_owned(),
            access,
            kind: stat.map(kind_of),
            digest: match stat {
                Some(stat) => self.digest(stat)?,
                None => None,
            },
        })
    }

    /// Makes the folders that are missing, one by one, each in the one before it.
    pub(crate) fn make_folders(&self) -> Result<Ready, Failure> {
        let refuse = |errno| refusal::of(errno, &self.asked);
        let mut ready = Ready {
            folder: self
                .base
                .try_clone()
                .map_err(|error| refusal::io(&error, &self.asked))?,
            made: Vec::new(),
        };
        for name in &self.missing {
            let made = match rustix::fs::mkdirat(&ready.folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(refuse(errno)),
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = rustix::fs::openat(&ready.folder, name, flags, Mode::empty());
            let next = match next {
                Ok(next) => next,
                Err(errno) => {
                    if made {
                        let _ = rustix::fs::unlinkat(&ready.folder, name, AtFlags::REMOVEDIR);
                    }
                    return Err(refuse(errno));
                }
            };
            let above = std::mem::replace(&mut ready.folder, next);
            if made {
                ready.made.push((above, name.clone()));
            }
        }
        Ok(ready)
    }
}

/// The folder of a place, which now exists. Folders that were made for it go away again unless
/// they are [kept](Self::keep), so that what fails leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Ready {
    folder: OwnedFd,
    made: Vec<(OwnedFd, OsString)>,
}

impl Ready {
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(crate) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        for (folder, name) in self.made.drain(..).rev() {
            // Not empty means that somebody else uses it by now, so it stays.
            let _ = rustix::fs::unlinkat(&folder, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// The detail of such a refusal that names the real path.
pub(crate) const PROTECTED: &str = "protected";

/// Refuses a path, from the workspace down, that agents may not change.
pub(crate) fn refuse_protected(relative: &Path, real: &Path, asked: &str) -> Result<(), Failure> {
    let names = relative
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.as_bytes()),
            _ => None,
        });
    let Some(protection) = protected(names) else {
        return Ok(());
    };
    Err(Failure::new(
        ErrorKind::Protected,
        format!(
            "{} is protected: `{}` {}, so agents may only read it. A person can change it outside Ward.",
            refusal::quoted(&relative.to_string_lossy()),
            protection.pattern,
            protection.reason
        ),
    )
    .with("path", asked)
    .with("pattern", protection.pattern)
    .with(PROTECTED, real.to_string_lossy().as_ref()))
}

/// The path without its `..`, as somebody reads it who knows of no links.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    normal
}
