//! `fs.list`: the entries of a folder.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use protocol::action::fs::{EntriesResult, Entry, ListParams};
use protocol::facts::EntryKind;
use protocol::{ActionName, ErrorKind, Facts, Failure};
use rustix::fs::AtFlags;

use crate::action::{Action, Call, Look};
use crate::context::Context;
use crate::workspace::{open_folder, refusal};

use super::MAX_ENTRIES;
use super::tree::{MAX_DEPTH, names};

/// `fs.list`
#[derive(Debug)]
pub struct List;

impl Action for List {
    const NAME: ActionName = ActionName::FsList;
    const DESCRIPTION: &'static str = "Lists the entries of a folder, `depth` levels deep (1 where left out), with kind, size and time of last change. Links are told, not followed. At most 10,000 entries.";
    type Params = ListParams;
    type Result = EntriesResult;
    const LOOK: Look = Look::Short;

    fn resolve(context: &Context, params: &ListParams) -> Result<Facts, Failure> {
        check(params)?;
        Ok(super::reads(&context.grounds.folder(&params.path)?))
    }

    async fn execute(call: Call, params: ListParams) -> Result<EntriesResult, Failure> {
        check(&params)?;
        call.blocking(move |call| list(&call, &params)).await
    }
}

fn check(params: &ListParams) -> Result<(), Failure> {
    match params.depth {
        Some(0) => Err(Failure::new(
            ErrorKind::InvalidParams,
            "`depth` of fs.list is 0. 1 lists the folder's own entries.",
        )
        .with("field", "depth")),
        Some(_) | None => Ok(()),
    }
}

fn list(call: &Call, params: &ListParams) -> Result<EntriesResult, Failure> {
    let folder = call.context.grounds.folder(&params.path)?;
    let refuse = |errno| refusal::of(errno, &params.path);
    let root = folder.open_folder().map_err(refuse)?;
    let depth = (params.depth.unwrap_or(1) as usize).min(MAX_DEPTH);

    let mut found: Vec<(PathBuf, Entry)> = Vec::new();
    let mut truncated = false;
    // Level by level, so that a limit cuts off what is deep before what is near.
    let mut waiting = VecDeque::from([(PathBuf::new(), 0)]);
    while let Some((below, level)) = waiting.pop_front() {
        call.still_wanted()?;
        let opened = match open_below(&root, &below) {
            Ok(opened) => opened,
            Err(errno) if level == 0 => return Err(refuse(errno)),
            // Gone, swapped or closed to us by now: it was listed, its entries are not.
            Err(_) => continue,
        };
        let left = MAX_ENTRIES - found.len();
        let hidden = |name: &OsStr| params.hidden || !name.as_bytes().starts_with(b".");
        let (entries, more) = names(&opened, left, hidden).map_err(refuse)?;
        truncated |= more;
        for next in entries {
            let Ok(stat) = rustix::fs::statat(&opened, &next.name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            let path = below.join(&next.name);
            let target = match next.kind {
                EntryKind::Symlink => rustix::fs::readlinkat(&opened, &next.name, Vec::new()).ok(),
                EntryKind::File | EntryKind::Directory | EntryKind::Other => None,
            };
            let target = target.as_ref().map(|target| target.as_bytes());
            let told = super::entry(&folder.relative().join(&path), &stat, target);
            let closed = || {
                call.context
                    .grounds
                    .is_closed(&folder.relative().join(&path))
            };
            if told.kind == EntryKind::Directory && level + 1 < depth && !closed() {
                waiting.push_back((path.clone(), level + 1));
            }
            found.push((path, told));
        }
        if found.len() == MAX_ENTRIES && !waiting.is_empty() {
            truncated = true;
            break;
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(EntriesResult {
        entries: found.into_iter().map(|(_, entry)| entry).collect(),
        truncated,
    })
}

/// Opens a folder some levels down, each step without following links.
fn open_below(root: &OwnedFd, below: &Path) -> rustix::io::Result<OwnedFd> {
    let mut folder = open_folder(root.as_fd(), ".")?;
    for name in below {
        folder = open_folder(folder.as_fd(), name)?;
    }
    Ok(folder)
}
