//! What is in an open folder, read by descriptor.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use protocol::facts::EntryKind;
use protocol::{ErrorKind, Failure};
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::action::Call;
use crate::workspace::{kind_of, kind_of_type, open_folder, refusal};

/// Each level that is open costs a descriptor, and those are few.
pub(super) const MAX_DEPTH: usize = 128;

/// One name in a folder.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
}

/// The names in a folder that `wanted` lets through, sorted, at most `limit` of them, and whether
/// there are more. The folder has to be open for reading.
pub(super) fn names(
    folder: &OwnedFd,
    limit: usize,
    wanted: impl Fn(&OsStr) -> bool,
) -> Result<(Vec<Name>, bool), Errno> {
    let mut names: Vec<Name> = Vec::new();
    let mut more = false;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || !wanted(name) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match kind_at(folder.as_fd(), name) {
                Ok(kind) => kind,
                // Gone by now.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            known => kind_of_type(known),
        };
        names.push(Name {
            name: name.to_owned(),
            kind,
        });
        // The first ones by name are kept, without ever holding a huge folder in memory.
        if names.len() >= limit.saturating_mul(2).max(1024) {
            more |= keep_first(&mut names, limit);
        }
    }
    more |= keep_first(&mut names, limit);
    Ok((names, more))
}

fn keep_first(names: &mut Vec<Name>, limit: usize) -> bool {
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let more = names.len() > limit;
    names.truncate(limit);
    more
}

pub(super) fn kind_at(folder: BorrowedFd<'_>, name: &OsStr) -> Result<EntryKind, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| kind_of(&stat))
}

/// Asks `check` about every path below a folder, links not followed.
pub(super) fn check_below(
    call: Option<&Call>,
    folder: BorrowedFd<'_>,
    name: &OsStr,
    asked: &str,
    check: &dyn Fn(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let refuse = |errno| refusal::of(errno, asked);
    let opened = open_folder(folder, name).map_err(refuse)?;
    let mut open: Vec<(OwnedFd, PathBuf, Vec<Name>)> = Vec::new();
    let (first, _) = names(&opened, usize::MAX, |_| true).map_err(refuse)?;
    open.push((opened, PathBuf::new(), first));

    while let Some((folder, path, left)) = open.last_mut() {
        let Some(next) = left.pop() else {
            open.pop();
            continue;
        };
        if let Some(call) = call {
            call.still_wanted()?;
        }
        let path = path.join(&next.name);
        check(&path)?;
        if next.kind != EntryKind::Directory {
            continue;
        }
        let opened = match open_folder(folder.as_fd(), &next.name) {
            Ok(opened) => opened,
            // Gone or swapped by now; what comes after looks at it again.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
            Err(errno) => return Err(refuse(errno)),
        };
        if open.len() == MAX_DEPTH {
            return Err(too_deep(asked));
        }
        let (below, _) = names(&opened, usize::MAX, |_| true).map_err(refuse)?;
        open.push((opened, path, below));
    }
    Ok(())
}

pub(super) fn too_deep(asked: &str) -> Failure {
    Failure::new(
        ErrorKind::TooLarge,
        format!(
            "{} has folders more than {MAX_DEPTH} deep. Take a folder further down, or use terminal.run.",
            refusal::quoted(asked)
        ),
    )
    .with("path", asked)
}
