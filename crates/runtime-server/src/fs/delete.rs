//! `fs.delete`: deletes a file, a link, or a folder with all that is in it.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use protocol::action::fs::{DeleteParams, Done};
use protocol::facts::{Access, EntryKind};
use protocol::{ActionName, ErrorKind, Facts, Failure};
use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Place, kind_of, open_folder, refusal, refuse_protected, sync_folder};

use super::tree::{MAX_DEPTH, Name, check_below, names, too_deep};

/// `fs.delete`
#[derive(Debug)]
pub struct Delete;

impl Action for Delete {
    const NAME: ActionName = ActionName::FsDelete;
    const DESCRIPTION: &'static str = "Deletes a file, an empty folder, or a symbolic link itself; with `recursive` a folder and all that is in it, following no links.";
    type Params = DeleteParams;
    type Result = Done;

    fn resolve(context: &Context, params: &DeleteParams) -> Result<Facts, Failure> {
        let (place, stat) = plan(&context.grounds, None, params)?;
        Ok(super::touches(vec![
            place.fact(Access::Delete, Some(&stat))?,
        ]))
    }

    async fn execute(call: Call, params: DeleteParams) -> Result<Done, Failure> {
        call.blocking(move |call| delete(&call, &params)).await
    }
}

fn plan(
    grounds: &Grounds,
    call: Option<&Call>,
    params: &DeleteParams,
) -> Result<(Place, Stat), Failure> {
    let place = grounds.place(&params.path, Access::Delete)?;
    let Some(stat) = place.entry()? else {
        return Err(refusal::of(Errno::NOENT, &params.path));
    };
    if kind_of(&stat) != EntryKind::Directory {
        return Ok((place, stat));
    }
    let ready = place.make_folders()?;
    if params.recursive {
        let check = |below: &Path| {
            let (relative, real) = (place.relative().join(below), place.real().join(below));
            refuse_protected(&relative, &real, &params.path)
        };
        check_below(call, ready.folder(), place.name(), &params.path, &check)?;
    } else {
        let folder = open_folder(ready.folder(), place.name());
        let folder = folder.map_err(|errno| refusal::of(errno, &params.path))?;
        let (left, _) =
            names(&folder, 1, |_| true).map_err(|errno| refusal::of(errno, &params.path))?;
        if !left.is_empty() {
            return Err(not_empty(&params.path));
        }
    }
    Ok((place, stat))
}

fn delete(call: &Call, params: &DeleteParams) -> Result<Done, Failure> {
    let (place, stat) = plan(&call.context.grounds, Some(call), params)?;
    let ready = place.make_folders()?;
    let deleted = match kind_of(&stat) {
        EntryKind::Directory if params.recursive => {
            delete_below(call, ready.folder(), place.name(), &params.path)?;
            rustix::fs::unlinkat(ready.folder(), place.name(), AtFlags::REMOVEDIR)
        }
        EntryKind::Directory => {
            rustix::fs::unlinkat(ready.folder(), place.name(), AtFlags::REMOVEDIR)
        }
        EntryKind::File | EntryKind::Symlink | EntryKind::Other => {
            rustix::fs::unlinkat(ready.folder(), place.name(), AtFlags::empty())
        }
    };
    match deleted {
        Ok(()) => {}
        Err(Errno::NOTEMPTY) => return Err(not_empty(&params.path)),
        Err(errno) => return Err(refusal::of(errno, &params.path)),
    }
    sync_folder(ready.folder());
    Ok(Done { changed: true })
}

/// Deletes everything in a folder. Links are deleted, never followed: each folder is opened by
/// its one name in the open folder above.
fn delete_below(
    call: &Call,
    folder: BorrowedFd<'_>,
    name: &OsStr,
    asked: &str,
) -> Result<(), Failure> {
    let refuse = |errno| refusal::of(errno, asked);
    let enter = |folder: OwnedFd| -> Result<(OwnedFd, Vec<Name>), Failure> {
        let (left, _) = names(&folder, usize::MAX, |_| true).map_err(refuse)?;
        Ok((folder, left))
    };
    let mut open = vec![enter(open_folder(folder, name).map_err(refuse)?)?];
    let mut deleted: u64 = 0;

    while let Some((folder, left)) = open.last_mut() {
        let Some(next) = left.last() else {
            open.pop();
            continue;
        };
        if call.cancel.is_cancelled() {
            return Err(Failure::new(
                ErrorKind::Cancelled,
                format!(
                    "Deleting {} was cancelled; {deleted} entries were deleted by then.",
                    refusal::quoted(asked)
                ),
            )
            .with("path", asked)
            .with("deleted", deleted));
        }
        let how = match next.kind {
            EntryKind::Directory => AtFlags::REMOVEDIR,
            EntryKind::File | EntryKind::Symlink | EntryKind::Other => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(&*folder, &next.name, how) {
            Ok(()) => deleted += 1,
            Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY) => {
                let below = open_folder(folder.as_fd(), &next.name).map_err(refuse)?;
                if open.len() == MAX_DEPTH {
                    return Err(too_deep(asked));
                }
                // It stays on the list and is deleted once it is empty.
                open.push(enter(below)?);
                continue;
            }
            Err(errno) => return Err(refuse(errno)),
        }
        left.pop();
    }
    Ok(())
}

fn not_empty(path: &str) -> Failure {
    Failure::new(
        ErrorKind::NotEmpty,
        format!(
            "{} still has entries. Set `recursive` to delete them as well.",
            refusal::quoted(path)
        ),
    )
    .with("path", path)
}
