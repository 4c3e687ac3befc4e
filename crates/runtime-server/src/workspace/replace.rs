//! Replacing a file whole: the new content is complete on disk before the name leads to it.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use protocol::{ErrorKind, Failure, Permissions};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::{Seen, refusal};

/// Whose mode a staged file takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Like<'a> {
    /// A new file's: 0644, or 0755 for a program, less the umask.
    New { executable: bool },
    /// The file's that it replaces, with the right to execute changed where the patch says so.
    Old {
        stat: &'a Stat,
        executable: Option<bool>,
    },
    /// This one, whatever the umask says.
    Exactly(Permissions),
}

/// New content under a name of its own, beside the name it is meant for. Dropped, it goes away.
#[derive(Debug)]
pub(crate) struct Staged {
    folder: OwnedFd,
    temporary: Option<OsString>,
    asked: String,
}

/// How to take one change back.
#[derive(Debug)]
pub(crate) struct Undo {
    folder: OwnedFd,
    name: OsString,
    /// Where the old entry waits; nothing where there was none.
    old: Option<OsString>,
}

impl Staged {
    /// Writes the content to disk, not yet under its name.
    pub(crate) fn write(
        folder: BorrowedFd<'_>,
        content: &[u8],
        like: Like<'_>,
        asked: &str,
    ) -> Result<Self, Failure> {
        let folder = folder
            .try_clone_to_owned()
            .map_err(|error| refusal::io(&error, asked))?;
        let temporary = unused_name(asked)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = match like {
            Like::New { executable: false } => 0o644,
            Like::New { executable: true } => 0o755,
            Like::Old { .. } | Like::Exactly(_) => 0o600,
        };
        let fd = rustix::fs::openat(&folder, &temporary, flags, Mode::from_raw_mode(mode))
            .map_err(|errno| refusal::of(errno, asked))?;
        let staged = Self {
            folder,
            temporary: Some(temporary),
            asked: asked.to_owned(),
        };
        match like {
            Like::New { .. } => Ok(()),
            Like::Old { stat, executable } => take_after(&fd, stat, executable),
            Like::Exactly(mode) => rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode.bits())),
        }
        .map_err(|errno| refusal::of(errno, asked))?;
        let mut file = std::fs::File::from(fd);
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .map_err(|error| refusal::io(&error, asked))?;
        Ok(staged)
    }

    /// Puts it under its name, over whatever is there. A link there is replaced, not followed.
    pub(crate) fn put(mut self, name: &OsStr) -> Result<(), Failure> {
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        rustix::fs::renameat(&self.folder, temporary, &self.folder, name)
            .map_err(|errno| refusal::of(errno, &self.asked))?;
        self.temporary = None;
        sync_folder(self.folder.as_fd());
        Ok(())
    }

    /// Puts it under its name if nothing is there.
    pub(crate) fn put_new(mut self, name: &OsStr) -> Result<Undo, Failure> {
        let folder = self.clone_folder()?;
        if let Some(temporary) = &self.temporary {
            rename_new(self.folder.as_fd(), temporary, self.folder.as_fd(), name)
                .map_err(|errno| refusal::of(errno, &self.asked))?;
            self.temporary = None;
        }
        Ok(Undo {
            folder,
            name: name.to_owned(),
            old: None,
        })
    }

    /// Puts it under its name and keeps what was there, so that it can be put back.
    pub(crate) fn exchange(mut self, name: &OsStr) -> Result<Undo, Failure> {
        let mut undo = Undo {
            folder: self.clone_folder()?,
            name: name.to_owned(),
            old: None,
        };
        let Some(temporary) = self.temporary.take() else {
            return Ok(undo);
        };
        let folder = &self.folder;
        match rustix::fs::renameat_with(folder, &temporary, folder, name, RenameFlags::EXCHANGE) {
            Ok(()) => undo.old = Some(temporary),
            // Not every file system can exchange; for a moment nothing is there then.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.temporary = Some(temporary);
                undo = Undo::take_away(self.folder.as_fd(), name, &self.asked)?;
                if let Err(failure) = self.put(name) {
                    undo.undo();
                    return Err(failure);
                }
            }
            Err(errno) => {
                self.temporary = Some(temporary);
                return Err(refusal::of(errno, &self.asked));
            }
        }
        Ok(undo)
    }

    #[cfg(test)]
    pub(crate) fn temporary_name(&self) -> Option<&OsStr> {
        self.temporary.as_deref()
    }

    fn clone_folder(&self) -> Result<OwnedFd, Failure> {
        self.folder
            .try_clone()
            .map_err(|error| refusal::io(&error, &self.asked))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
        }
    }
}

impl Undo {
    /// Takes an entry away, but only to a name beside it, so that it can be put back.
    pub(crate) fn take_away(
        folder: BorrowedFd<'_>,
        name: &OsStr,
        asked: &str,
    ) -> Result<Self, Failure> {
        let temporary = unused_name(asked)?;
        rename_new(folder, name, folder, &temporary).map_err(|errno| refusal::of(errno, asked))?;
        Ok(Self {
            folder: folder
                .try_clone_to_owned()
                .map_err(|error| refusal::io(&error, asked))?,
            name: name.to_owned(),
            old: Some(temporary),
        })
    }

    /// Puts back what was there.
    pub(crate) fn undo(self) {
        let result = match &self.old {
            Some(old) => rustix::fs::renameat(&self.folder, old, &self.folder, &self.name),
            None => rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty()),
        };
        if let Err(error) = result {
            tracing::error!(name = ?self.name, old = ?self.old, %error, "a change could not be taken back");
        }
    }

    /// Lets go of what was there: the change stays.
    pub(crate) fn keep(self) {
        if let Some(old) = &self.old {
            let _ = rustix::fs::unlinkat(&self.folder, old, AtFlags::empty());
        }
        sync_folder(self.folder.as_fd());
    }
}

/// Refuses to go on if what is at `name` is no longer what was seen there.
pub(crate) fn unchanged(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    seen: Option<Seen>,
    asked: &str,
) -> Result<(), Failure> {
    let now = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(refusal::of(errno, asked)),
    };
    if now.as_ref().map(Seen::of) == seen {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::Changed,
        format!(
            "{} was changed by somebody else at the same moment, so it was left as it is. Read it again and try once more.",
            refusal::quoted(asked)
        ),
    )
    .with("path", asked))
}

/// Renames, unless something has the new name.
pub(crate) fn rename_new(
    from: BorrowedFd<'_>,
    old: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag; the moment between look and rename stays then.
        // A folder moved into itself is INVAL too, and is so again.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(Errno::EXIST);
            }
            rustix::fs::renameat(from, old, to, new)
        }
        result => result,
    }
}

/// Makes a rename last through a crash. What cannot be opened for that is left to the system.
pub(crate) fn sync_folder(folder: BorrowedFd<'_>) {
    if let Ok(folder) = super::open_folder(folder, ".") {
        let _ = rustix::fs::fsync(folder);
    }
}

fn take_after(fd: &OwnedFd, stat: &Stat, executable: Option<bool>) -> Result<(), Errno> {
    let mut mode = stat.st_mode & 0o777;
    match executable {
        // Who may read may execute, as git does it.
        Some(true) => mode |= (mode & 0o444) >> 2,
        Some(false) => mode &= !0o111,
        None => {}
    }
    let now = rustix::fs::fstat(fd)?;
    if (now.st_uid, now.st_gid) != (stat.st_uid, stat.st_gid) {
        // Only root can give files away; for others the new file is simply their own.
        let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        let _ = rustix::fs::fchown(fd, Some(user), Some(group));
    }
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))
}

fn unused_name(asked: &str) -> Result<OsString, Failure> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        Failure::new(
            ErrorKind::Io,
            format!(
                "{} was not changed: no random name could be had ({error}).",
                refusal::quoted(asked)
            ),
        )
    })?;
    Ok(format!(".ward-{:016x}.tmp", u64::from_ne_bytes(random)).into())
}
