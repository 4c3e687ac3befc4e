//! The places where widenings are mounted: what has to be made for them in the room, and that it
//! goes again with the command.
//!
//! The private `/tmp` and the scratch home belong to all commands of a room. What is made there to
//! mount upon would take, in silence, what another command means for the path outside: so nobody can
//! write to it, it can be told from a command's own by its mode, and before the next command begins
//! it is gone.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::sys::{Change, Reach, attr, change_mount, mount_setattr};
use crate::wall::Widening;

/// A folder that was made to mount upon, or to lead there. The sticky bit tells it from others.
const FOLDER: RawMode = 0o1555;
/// A file that was made to mount upon.
const FILE: RawMode = 0o1000;

/// Whether something was made to mount upon, by its mode. A command could make the like itself; it
/// would only be told more as stopped than was.
pub(crate) fn is_place(stat: &Stat) -> bool {
    let mode = stat.st_mode & 0o7777;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => mode == FOLDER,
        FileType::RegularFile => mode == FILE && stat.st_size == 0,
        _ => false,
    }
}

/// What was made in a room to mount upon, and for whom. Only for the holder: from its namespace,
/// where nothing is mounted there, it can be taken away.
#[derive(Debug, Default)]
pub(crate) struct Places {
    made: Vec<Made>,
    users: Vec<User>,
}

/// A folder or file that was made.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// The folder that it is in. By its path, a command could lead elsewhere meanwhile.
    parent: OwnedFd,
    name: OsString,
    /// What was made, to know it again.
    id: (u64, u64),
    is_dir: bool,
}

/// A command with a widened wall.
#[derive(Debug)]
struct User {
    paths: Vec<PathBuf>,
    /// Ends when the command's init lets go of the other end.
    runs: OwnedFd,
}

impl User {
    fn has_ended(&self) -> bool {
        let mut poll_fd = [PollFd::new(&self.runs, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut poll_fd, Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl Places {
    /// Takes away what was made for commands that have ended, where nothing has come into it.
    pub(crate) fn tidy(&mut self) {
        self.users.retain(|user| !user.has_ended());
        let users = &self.users;
        let is_used = |made: &Made| {
            let mut paths = users.iter().flat_map(|user| &user.paths);
            paths.any(|path| path.starts_with(&made.path))
        };
        let (kept, mut gone) = std::mem::take(&mut self.made)
            .into_iter()
            .partition::<Vec<_>, _>(is_used);
        self.made = kept;
        if gone.is_empty() {
            return;
        }
        // What is inside comes after what holds it.
        gone.reverse();
        let _ = with_open_root(|| {
            gone.iter().for_each(Made::remove);
            Ok(())
        });
    }

    /// Makes the places for a command's widenings; `trees` are what shall be mounted there. Answers
    /// what the command's init is to hold for as long as the command runs.
    pub(crate) fn make(
        &mut self,
        widened: &[Widening],
        trees: &[OwnedFd],
    ) -> Result<Option<OwnedFd>, (PathBuf, std::io::Error)> {
        if trees.is_empty() {
            return Ok(None);
        }
        for (widening, tree) in widened.iter().zip(trees) {
            let path = &widening.path;
            if path.symlink_metadata().is_err() {
                let is_dir = fstat(tree).is_ok_and(|stat| is_dir(&stat));
                with_open_root(|| self.make_one(path, is_dir))
                    .map_err(|error| (path.clone(), error))?;
            }
        }
        let (runs, held) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| (PathBuf::from("/"), std::io::Error::from(error)))?;
        let paths = widened.iter().map(|widening| widening.path.clone());
        self.users.push(User {
            paths: paths.collect(),
            runs,
        });
        Ok(Some(held))
    }

    fn make_one(&mut self, path: &Path, is_dir: bool) -> std::io::Result<()> {
        let enter = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = openat(CWD, "/", enter, Mode::empty())?;
        let mut so_far = PathBuf::from("/");
        let mut names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::RootDir
            | Component::CurDir
            | Component::ParentDir
            | Component::Prefix(_) => None,
        });
        let mut next = names.next();
        while let Some(name) = next {
            next = names.next();
            so_far.push(name);
            let as_folder = next.is_some() || is_dir;
            let made = if as_folder {
                // Open to its owner until what belongs into it is there.
                mkdirat(&folder, name, Mode::from_raw_mode(0o755))
            } else {
                let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&folder, name, create, Mode::from_raw_mode(0o600)).map(drop)
            };
            match made {
                Ok(()) => {
                    let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    self.made.push(Made {
                        path: so_far.clone(),
                        parent: folder.try_clone()?,
                        name: name.to_owned(),
                        id: (stat.st_dev, stat.st_ino),
                        is_dir: as_folder,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            if as_folder {
                folder = openat(&folder, name, enter, Mode::empty())?;
            }
        }
        self.made
            .iter()
            .filter(|made| path.starts_with(&made.path))
            .try_for_each(Made::close)
    }
}

impl Made {
    /// Closes it for writing, and marks it.
    fn close(&self) -> std::io::Result<()> {
        let mode = if self.is_dir { FOLDER } else { FILE };
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::chmodat(&self.parent, &self.name, mode, AtFlags::empty()).map_err(Into::into)
    }

    /// Takes it away, where it is still what was made and nothing has come into it.
    fn remove(&self) {
        let stat = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_it = stat.is_ok_and(|stat| {
            (stat.st_dev, stat.st_ino) == self.id && (self.is_dir || is_place(&stat))
        });
        if is_it {
            let flags = if self.is_dir {
                AtFlags::REMOVEDIR
            } else {
                AtFlags::empty()
            };
            // A folder that is not empty stays.
            let _ = unlinkat(&self.parent, &self.name, flags);
        }
    }
}

fn is_dir(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Does something while the assembled root can be written to, in this namespace alone: commands have
/// their own.
fn with_open_root(work: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
    change_mount(CWD, c"/", Change::Clear(attr::READ_ONLY), Reach::This)?;
    let done = work();
    mount_setattr(CWD, c"/", attr::READ_ONLY, Reach::This)?;
    done
}
