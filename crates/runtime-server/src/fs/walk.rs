//! The walk of `fs.glob` and `fs.search`: every file below a folder that is not ignored.
//!
//! `ignore` brings its own walker, but that one goes by names: a folder swapped for a link would
//! lead it out, and a FIFO called `.gitignore` would hold it for ever. So the walk goes by
//! descriptor and only the reading of ignore rules is theirs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use protocol::Failure;
use protocol::facts::EntryKind;

use crate::action::Call;
use crate::workspace::{HostPath, open_file, open_folder, refusal};

use super::tree::{MAX_DEPTH, Name, names};

/// Files that say what is ignored; the later one weighs more.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// A longer one is no list of patterns.
const MAX_IGNORE_FILE: u64 = 1024 * 1024;

/// A file, or a link, that the walk came by.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// From the workspace down; from `/` beyond it.
    pub(super) relative: &'a Path,
    pub(super) kind: EntryKind,
    folder: BorrowedFd<'a>,
    name: &'a OsStr,
}

impl Found<'_> {
    /// Opens it, if it is a regular file.
    pub(super) fn open(&self) -> rustix::io::Result<File> {
        open_file(self.folder, self.name).map(|(file, _)| file)
    }

    pub(super) fn stat(&self) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::statat(
            self.folder,
            self.name,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
    }

    pub(super) fn link_target(&self) -> Option<Vec<u8>> {
        let target = rustix::fs::readlinkat(self.folder, self.name, Vec::new()).ok()?;
        Some(target.into_bytes())
    }
}

struct Level {
    folder: OwnedFd,
    relative: PathBuf,
    /// Still to be visited, the next one last.
    left: Vec<Name>,
    rules: Vec<Gitignore>,
}

/// Whether a walk saw everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    /// All there is, or until it was told to stop.
    Whole,
    /// But for folders that are too deep to be held open.
    NotTooDeep,
}

/// Visits every file and link below `root` in the order of their paths, until `visit` breaks.
///
/// What is ignored is left out, and so is `.git`; hidden files are not.
pub(super) fn walk(
    call: &Call,
    root: &HostPath,
    asked: &str,
    mut visit: impl FnMut(&Found<'_>) -> Result<ControlFlow<()>, Failure>,
) -> Result<Walked, Failure> {
    let mut walked = Walked::Whole;
    let refuse = |errno| refusal::of(errno, asked);
    let above = rules_above(call, root)?;
    let top = root.open_folder().map_err(refuse)?;
    let mut open = vec![enter(top, root.relative().to_owned()).map_err(refuse)?];

    while let Some(level) = open.last_mut() {
        call.still_wanted()?;
        let Some(next) = level.left.pop() else {
            open.pop();
            continue;
        };
        let is_folder = next.kind == EntryKind::Directory;
        if is_folder && next.name == ".git" {
            continue;
        }
        let relative = level.relative.join(&next.name);
        let rules = above
            .iter()
            .chain(open.iter().flat_map(|level| &level.rules));
        if ignored(rules.rev(), &relative, is_folder) {
            continue;
        }
        let Some(level) = open.last() else { break };
        if !is_folder {
            let found = Found {
                relative: &relative,
                kind: next.kind,
                folder: level.folder.as_fd(),
                name: &next.name,
            };
            if visit(&found)?.is_break() {
                return Ok(walked);
            }
            continue;
        }
        if call.context.grounds.is_closed(&relative) {
            continue;
        }
        if open.len() == MAX_DEPTH {
            walked = Walked::NotTooDeep;
            continue;
        }
        // What cannot be opened is left out, as in every search: gone, swapped, closed to us.
        if let Ok(folder) = open_folder(level.folder.as_fd(), &next.name)
            && let Ok(level) = enter(folder, relative)
        {
            open.push(level);
        }
    }
    Ok(walked)
}

fn enter(folder: OwnedFd, relative: PathBuf) -> rustix::io::Result<Level> {
    let (mut left, _) = names(&folder, usize::MAX, |_| true)?;
    let rules = IGNORE_FILES
        .iter()
        .filter(|file| left.iter().any(|name| name.name == **file))
        .filter_map(|file| rules_in(folder.as_fd(), file, &relative))
        .collect();
    left.reverse();
    Ok(Level {
        folder,
        relative,
        left,
        rules,
    })
}

/// The rules of the folders between the workspace and `root`; none where that is beyond it.
fn rules_above(call: &Call, root: &HostPath) -> Result<Vec<Gitignore>, Failure> {
    let mut rules = Vec::new();
    let Some(parent) = root.relative().parent() else {
        return Ok(rules);
    };
    if root.relative().is_absolute() {
        return Ok(rules);
    }
    let workspace = call.context.grounds.workspace().folder(".")?;
    let mut relative = PathBuf::new();
    let mut folder = workspace
        .open_folder()
        .map_err(|errno| refusal::of(errno, "."))?;
    let mut way = parent.iter();
    loop {
        for file in IGNORE_FILES {
            rules.extend(rules_in(folder.as_fd(), file, &relative));
        }
        let Some(name) = way.next() else {
            return Ok(rules);
        };
        relative.push(name);
        match open_folder(folder.as_fd(), name) {
            Ok(next) => folder = next,
            // It was moved meanwhile; the rules so far are the ones there are.
            Err(_) => return Ok(rules),
        }
    }
}

fn rules_in(folder: BorrowedFd<'_>, file: &str, relative: &Path) -> Option<Gitignore> {
    let (opened, _) = open_file(folder, file).ok()?;
    let mut text = Vec::new();
    opened.take(MAX_IGNORE_FILE).read_to_end(&mut text).ok()?;
    // Only text is compared, so that any root does, as long as paths start with the same.
    let mut builder = GitignoreBuilder::new(Path::new("/").join(relative));
    for line in String::from_utf8_lossy(&text).lines() {
        // A line that is no pattern is skipped, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The nearest rule that says anything decides.
fn ignored<'a>(
    nearest_first: impl Iterator<Item = &'a Gitignore>,
    relative: &Path,
    is_folder: bool,
) -> bool {
    let path = Path::new("/").join(relative);
    for rules in nearest_first {
        match rules.matched(&path, is_folder) {
            ignore::Match::Ignore(_) => return true,
            ignore::Match::Whitelist(_) => return false,
            ignore::Match::None => {}
        }
    }
    false
}
