//! Walking a path without ever leaving the workspace.
//!
//! `openat2` with `RESOLVE_BENEATH` does it in one call and atomically. It refuses every absolute
//! link, though, also one that leads back inside, and old kernels and some container filters do
//! not have it. For those the same walk is done here, one name at a time, each opened without
//! following links; it gives the same answers, only slower.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use protocol::facts::EntryKind;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Extent, Workspace, kind_of};

/// What to do with a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Final {
    /// Go where it leads, if that is inside.
    Followed,
    /// The link itself is meant.
    Itself,
}

/// As many as Linux follows.
const MAX_LINKS: u32 = 40;

/// A rename somewhere above makes the kernel give up a walk over `..`; after so many times in a
/// row somebody does it on purpose.
const RETRIES: u32 = 8;

/// Each level of a walk by name holds a descriptor, and those are few.
const MAX_DEPTH: usize = 256;

const FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

impl Workspace {
    /// Opens what is at `path`, which is relative to the workspace, only to point at it.
    pub(super) fn open_beneath(&self, path: &Path, last: Final) -> Result<OwnedFd, Errno> {
        let flags = match last {
            Final::Followed => FLAGS,
            Final::Itself => FLAGS | OFlags::NOFOLLOW,
        };
        let how = ResolveFlags::NO_MAGICLINKS
            | match self.extent {
                Extent::Folder => ResolveFlags::BENEATH,
                Extent::Everything => ResolveFlags::IN_ROOT,
            };
        for _ in 0..RETRIES {
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), how) {
                Ok(fd) => return Ok(fd),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM | Errno::XDEV | Errno::LOOP) => break,
                Err(errno) => return Err(errno),
            }
        }
        self.walk(path, last)
    }

    /// Opens what is at `path` where no link is on the way, only to point at it.
    pub(super) fn open_straight(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = FLAGS | OFlags::NOFOLLOW;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), how)
    }

    fn walk(&self, path: &Path, last: Final) -> Result<OwnedFd, Errno> {
        let mut folders: Vec<OwnedFd> = Vec::new();
        let mut names: Vec<OsString> = Vec::new();
        push_names(&mut names, path)?;
        let mut links = 0;

        while let Some(name) = names.pop() {
            if name == ".." {
                // Above the workspace there is nothing; above `/` there is `/`.
                if folders.pop().is_none() && self.extent == Extent::Folder {
                    return Err(Errno::XDEV);
                }
                continue;
            }
            let here = folders.last().map_or(self.root.as_fd(), |fd| fd.as_fd());
            let found = rustix::fs::openat(here, &name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
            let kind = kind_of(&rustix::fs::fstat(&found)?);
            let at_end = names.is_empty();

            if kind == EntryKind::Symlink && !(at_end && last == Final::Itself) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = read_link(found.as_fd())?;
                if target.is_absolute() {
                    let inside = self.inside(&target).ok_or(Errno::XDEV)?;
                    folders.clear();
                    push_names(&mut names, &inside)?;
                } else {
                    push_names(&mut names, &target)?;
                }
                continue;
            }
            if at_end {
                return Ok(found);
            }
            if kind != EntryKind::Directory {
                return Err(Errno::NOTDIR);
            }
            if folders.len() == MAX_DEPTH {
                return Err(Errno::NAMETOOLONG);
            }
            folders.push(found);
        }
        match folders.pop() {
            Some(folder) => Ok(folder),
            None => rustix::fs::openat(&self.root, ".", FLAGS, Mode::empty()),
        }
    }
}

/// Puts the names of `path` on the stack, the first on top.
fn push_names(names: &mut Vec<OsString>, path: &Path) -> Result<(), Errno> {
    if path.as_os_str().len() > 4096 {
        return Err(Errno::NAMETOOLONG);
    }
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => names.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    Ok(())
}

fn read_link(link: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(link, "", Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::real_path;
    use super::*;

    /// A tree with every kind of link, inside a folder that also holds what must not be reached.
    fn tree() -> (tempfile::TempDir, Workspace) {
        let outer = tempfile::tempdir().unwrap();
        let inside = outer.path().join("inside");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::write(inside.join("a/b/file"), "in").unwrap();
        std::fs::write(outer.path().join("secret"), "out").unwrap();
        symlink("a/b", inside.join("to-b")).unwrap();
        symlink("../a/b/../b/file", inside.join("a/winding")).unwrap();
        symlink(inside.join("a"), inside.join("absolute")).unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink(outer.path().join("secret"), inside.join("absolute-out")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        symlink("round", inside.join("round")).unwrap();
        symlink("nowhere", inside.join("dangling")).unwrap();
        let workspace = Workspace::open(&inside).unwrap();
        (outer, workspace)
    }

    type Opened = Result<PathBuf, Errno>;

    fn both_ways(workspace: &Workspace, path: &str, last: Final) -> (Opened, Opened) {
        let relative = |fd: OwnedFd| {
            let real = real_path(&workspace.descriptors, fd.as_fd()).unwrap();
            real.strip_prefix(workspace.real()).unwrap().to_owned()
        };
        (
            workspace.open_beneath(Path::new(path), last).map(relative),
            workspace.walk(Path::new(path), last).map(relative),
        )
    }

    #[test]
    fn the_kernel_and_the_walk_by_name_give_the_same_answers() {
        let (_outer, workspace) = tree();
        for (path, followed) in [
            (".", Ok("")),
            ("a/b/file", Ok("a/b/file")),
            ("a/../a/b", Ok("a/b")),
            ("to-b/file", Ok("a/b/file")),
            ("to-b/../b", Ok("a/b")),
            ("a/winding", Ok("a/b/file")),
            ("absolute/b", Ok("a/b")),
            ("a/b/file/x", Err(Errno::NOTDIR)),
            ("missing", Err(Errno::NOENT)),
            ("dangling", Err(Errno::NOENT)),
            ("round", Err(Errno::LOOP)),
            ("..", Err(Errno::XDEV)),
            ("../inside/a", Err(Errno::XDEV)),
            ("a/../../secret", Err(Errno::XDEV)),
            ("up/secret", Err(Errno::XDEV)),
            ("out", Err(Errno::XDEV)),
            ("absolute-out", Err(Errno::XDEV)),
            ("magic/etc/passwd", Err(Errno::XDEV)),
        ] {
            let expected = followed.map(PathBuf::from);
            let answers = both_ways(&workspace, path, Final::Followed);
            assert_eq!(answers, (expected.clone(), expected), "{path}");
        }
    }

    #[test]
    fn from_everything_no_path_leads_out() {
        let (outer, workspace) = tree();
        let outer = outer.path().canonicalize().unwrap();
        let inside = workspace.real().to_owned();
        let everything = Workspace::everything().unwrap();
        for (path, followed) in [
            ("a/b/file", Ok(inside.join("a/b/file"))),
            ("absolute/b", Ok(inside.join("a/b"))),
            ("out", Ok(outer.join("secret"))),
            ("absolute-out", Ok(outer.join("secret"))),
            ("up/secret", Ok(outer.join("secret"))),
            ("../inside/a", Ok(inside.join("a"))),
            ("missing", Err(Errno::NOENT)),
            ("round", Err(Errno::LOOP)),
        ] {
            let path = inside.join(path);
            let asked = path.strip_prefix("/").unwrap().to_str().unwrap();
            let expected = followed.map(|path: PathBuf| path.strip_prefix("/").unwrap().to_owned());
            let answers = both_ways(&everything, asked, Final::Followed);
            assert_eq!(answers, (expected.clone(), expected), "{asked}");
        }
        let above = both_ways(&everything, "../../../", Final::Followed);
        assert_eq!(above, (Ok(PathBuf::new()), Ok(PathBuf::new())));
    }

    #[test]
    fn a_final_link_that_is_meant_itself_is_not_followed() {
        let (_outer, workspace) = tree();
        for path in ["out", "absolute-out", "round", "dangling", "magic"] {
            let expected = Ok(PathBuf::from(path));
            let answers = both_ways(&workspace, path, Final::Itself);
            assert_eq!(answers, (expected.clone(), expected), "{path}");
        }
    }

    #[test]
    fn a_glance_tells_what_finding_tells_or_nothing() {
        let (outer, workspace) = tree();
        let glanced = |path: &str| {
            let (name, stat) = workspace.glance(path)?;
            let found = workspace.find(path, Final::Itself).unwrap();
            assert_eq!((name, stat.st_ino), (found.relative(), found.stat().st_ino));
            Some(kind_of(&stat))
        };
        assert_eq!(glanced("a"), Some(EntryKind::Directory));
        assert_eq!(glanced("a/b/file"), Some(EntryKind::File));
        for path in [
            "",
            ".",
            "..",
            "/",
            "a/",
            "a//b",
            "./a",
            "a/../a",
            "../secret",
            "missing",
            "a\0",
            "a/b/file/x",
            "to-b",
            "to-b/file",
            "up",
            "up/secret",
            "out",
            "absolute-out",
            "absolute/b",
            "magic/etc/passwd",
            "dangling",
        ] {
            assert_eq!(glanced(path), None, "{path}");
        }
        let inside = outer.path().join("inside");
        std::fs::rename(&inside, outer.path().join("moved")).unwrap();
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        assert_eq!((glanced("a"), glanced("a/b/file")), (None, None));
    }
}
