//! What was set aside: things a command made that would have run by themselves. They are kept, with
//! where they were and why, until a person puts them back or throws them away.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::sandbox::SetAside;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// One thing that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name from now on.
    pub id: String,
    /// The workspace it was in.
    #[serde(with = "crate::os_text")]
    pub workspace: PathBuf,
    /// Where it was.
    #[serde(with = "crate::os_text")]
    pub path: PathBuf,
    /// What would have run it.
    pub reason: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How it was taken.
    pub kind: KeptKind,
}

/// How something was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptKind {
    /// All of it: a file, a link or a folder.
    Whole,
    /// Lines of a settings file; what is kept is the file as it was.
    Lines,
}

/// The place where they are kept.
#[derive(Debug, Clone)]
pub struct Aside {
    folder: PathBuf,
}

impl Aside {
    /// The place below Ward's state folder.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self {
            folder: state.join("aside"),
        }
    }

    /// Takes a file, link or folder out of the workspace.
    pub(crate) fn take(&self, spot: &Spot, reason: &str) -> io::Result<SetAside> {
        let (kept, place) = self.open(spot, reason, KeptKind::Whole)?;
        move_all(
            spot.as_entry(),
            Entry {
                folder: CWD,
                name: &place.join("content"),
            },
        )?;
        self.close(&kept, &place)
    }

    /// Puts `text` in the place of a settings file and keeps the file as it was.
    pub(crate) fn take_lines(&self, spot: &Spot, text: &str, reason: &str) -> io::Result<SetAside> {
        let (kept, place) = self.open(spot, reason, KeptKind::Lines)?;
        let mode = statat(&spot.folder, &spot.name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o777;
        let clean = PathBuf::from(format!(".ward-{}", kept.id));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&spot.folder, &clean, flags, Mode::from_raw_mode(mode))?;
        let mut file = File::from(file);
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        move_all(
            spot.as_entry(),
            Entry {
                folder: CWD,
                name: &place.join("content"),
            },
        )?;
        renameat(&spot.folder, &clean, &spot.folder, &spot.name)?;
        self.close(&kept, &place)
    }

    /// All that is kept, oldest first.
    pub fn list(&self) -> io::Result<Vec<Kept>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut kept: Vec<Kept> = entries
            .flatten()
            .filter_map(|entry| {
                serde_json::from_slice(&fs::read(entry.path().join("kept.json")).ok()?).ok()
            })
            .collect();
        kept.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(kept)
    }

    /// Puts one back where it was. Refuses where something else is there by now, unless what is
    /// there is the settings file it was taken from.
    pub fn restore(&self, id: &str) -> io::Result<Kept> {
        let kept = self
            .list()?
            .into_iter()
            .find(|kept| kept.id == id)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("Nothing is set aside as `{id}`; `ward aside list` shows what is."),
                )
            })?;
        let spot = Spot::find(&kept.workspace, &kept.path)?;
        let there = statat(&spot.folder, &spot.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if kept.kind == KeptKind::Whole && there {
            let shown = kept.path.display();
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("Something else is at {shown} by now; move it away first."),
            ));
        }
        let place = self.folder.join(&kept.id);
        if kept.kind == KeptKind::Lines && there {
            unlinkat(&spot.folder, &spot.name, AtFlags::empty())?;
        }
        move_all(
            Entry {
                folder: CWD,
                name: &place.join("content"),
            },
            spot.as_entry(),
        )?;
        fs::remove_dir_all(&place)?;
        Ok(kept)
    }

    fn open(&self, spot: &Spot, reason: &str, kind: KeptKind) -> io::Result<(Kept, PathBuf)> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).recursive(true).create(&self.folder)?;
        builder.recursive(false);
        for number in 0..1000 {
            let id = format!("{:x}-{number}", now.as_millis());
            let place = self.folder.join(&id);
            match builder.create(&place) {
                Ok(()) => {
                    let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
                    let (workspace, path) = (spot.workspace.clone(), spot.path.clone());
                    let reason = reason.to_owned();
                    return Ok((
                        Kept {
                            id,
                            workspace,
                            path,
                            reason,
                            at,
                            kind,
                        },
                        place,
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    fn close(&self, kept: &Kept, place: &Path) -> io::Result<SetAside> {
        fs::write(place.join("kept.json"), serde_json::to_vec_pretty(kept)?)?;
        Ok(SetAside {
            id: kept.id.clone(),
            path: kept.path.display().to_string(),
            reason: kept.reason.clone(),
        })
    }
}

/// A place in a workspace, its folder held by a descriptor: a command that is still running can
/// swap a folder for a link, and must not lead Ward's own hand elsewhere by it.
#[derive(Debug)]
pub(crate) struct Spot {
    workspace: PathBuf,
    path: PathBuf,
    folder: OwnedFd,
    name: PathBuf,
}

impl Spot {
    /// Finds a place without following any link.
    pub(crate) fn find(workspace: &Path, path: &Path) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let relative = path.strip_prefix(workspace).map_err(|_| invalid())?;
        let name = PathBuf::from(relative.file_name().ok_or_else(invalid)?);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(workspace, flags, Mode::empty())?;
        let folder = match relative.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                openat2(&root, parent, flags, Mode::empty(), resolve)?
            }
            _ => root,
        };
        Ok(Self {
            workspace: workspace.into(),
            path: path.into(),
            folder,
            name,
        })
    }

    /// The file's content, where it is a regular file of at most a megabyte.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > 1 << 20 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, 1 << 20), &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Makes a link here.
    pub(crate) fn link_to(&self, target: &Path) -> io::Result<()> {
        Ok(symlinkat(target, &self.folder, &self.name)?)
    }

    fn as_entry(&self) -> Entry<'_> {
        Entry {
            folder: self.folder.as_fd(),
            name: &self.name,
        }
    }
}

/// A name in a folder that is held by a descriptor.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    folder: BorrowedFd<'a>,
    name: &'a Path,
}

/// Moves a file, a link or a whole folder, also to another disk. Links are moved, never followed.
fn move_all(from: Entry<'_>, to: Entry<'_>) -> io::Result<()> {
    match renameat(from.folder, from.name, to.folder, to.name) {
        Err(Errno::XDEV) => {}
        result => return result.map_err(Into::into),
    }
    copy_all(from, to)?;
    remove_all(from)
}

fn copy_all(from: Entry<'_>, to: Entry<'_>) -> io::Result<()> {
    let stat = statat(from.folder, from.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(from.folder, from.name, Vec::new())?;
            symlinkat(&target, to.folder, to.name)?;
        }
        FileType::Directory => {
            mkdirat(to.folder, to.name, Mode::RWXU)?;
            let (source, target) = (open_folder(from)?, open_folder(to)?);
            for name in names(&source)? {
                let source = Entry {
                    folder: source.as_fd(),
                    name: &name,
                };
                copy_all(
                    source,
                    Entry {
                        folder: target.as_fd(),
                        name: &name,
                    },
                )?;
            }
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let source = rustix::fs::openat(from.folder, from.name, flags, Mode::empty())?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let target = rustix::fs::openat(to.folder, to.name, flags, mode)?;
            io::copy(&mut File::from(source), &mut File::from(target))?;
        }
        // A FIFO, a socket or a device holds nothing to keep.
        _ => {}
    }
    Ok(())
}

fn remove_all(entry: Entry<'_>) -> io::Result<()> {
    match unlinkat(entry.folder, entry.name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        result => return result.map_err(Into::into),
    }
    let folder = open_folder(entry)?;
    for name in names(&folder)? {
        remove_all(Entry {
            folder: folder.as_fd(),
            name: &name,
        })?;
    }
    Ok(unlinkat(entry.folder, entry.name, AtFlags::REMOVEDIR)?)
}

fn open_folder(entry: Entry<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(
        entry.folder,
        entry.name,
        flags,
        Mode::empty(),
    )?)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(PathBuf::from(std::ffi::OsString::from_vec(name)));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_aside_is_listed_and_can_be_put_back() {
        let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = workspace.path().join("a/.envrc");
        fs::create_dir(workspace.path().join("a")).unwrap();
        fs::write(&path, "echo hi").unwrap();
        let aside = Aside::new(state.path());
        let spot = Spot::find(workspace.path(), &path).unwrap();
        let taken = aside.take(&spot, "because").unwrap();
        assert!(!path.exists());
        let listed = aside.list().unwrap();
        assert_eq!(
            (listed.len(), &listed[0].id, &listed[0].path),
            (1, &taken.id, &path)
        );
        aside.restore(&taken.id).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "echo hi");
        assert_eq!(aside.list().unwrap(), []);
    }

    #[test]
    fn nothing_is_put_back_over_something_else() {
        let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = workspace.path().join(".envrc");
        fs::write(&path, "old").unwrap();
        let aside = Aside::new(state.path());
        let taken = aside
            .take(&Spot::find(workspace.path(), &path).unwrap(), "x")
            .unwrap();
        fs::write(&path, "new").unwrap();
        let refused = aside.restore(&taken.id).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_folder_swapped_for_a_link_does_not_lead_the_hand_elsewhere() {
        let (workspace, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("config"), "mine").unwrap();
        std::os::unix::fs::symlink(other.path(), workspace.path().join(".git")).unwrap();
        let found = Spot::find(workspace.path(), &workspace.path().join(".git/config"));
        assert!(found.is_err());
    }
}
