//! `fs.mkdir`: makes a folder.

use protocol::action::fs::{Done, MkdirParams};
use protocol::facts::{Access, EntryKind};
use protocol::{ActionName, ErrorKind, Facts, Failure, Permissions};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Final, refusal, sync_folder};

/// `fs.mkdir`
#[derive(Debug)]
pub struct Mkdir;

impl Action for Mkdir {
    const NAME: ActionName = ActionName::FsMkdir;
    const DESCRIPTION: &'static str =
        "Makes a folder, and missing folders above it. A folder that is there already is fine.";
    type Params = MkdirParams;
    type Result = Done;

    fn resolve(context: &Context, params: &MkdirParams) -> Result<Facts, Failure> {
        if exists(&context.grounds, &params.path)? {
            return Ok(super::reads(&context.grounds.folder(&params.path)?));
        }
        let place = context.grounds.place(&params.path, Access::Write)?;
        Ok(super::touches(vec![place.fact(Access::Write, None)?]))
    }

    async fn execute(call: Call, params: MkdirParams) -> Result<Done, Failure> {
        call.blocking(move |call| mkdir(&call.context.grounds, &params))
            .await
    }
}

fn exists(grounds: &Grounds, path: &str) -> Result<bool, Failure> {
    match grounds.find(path, Final::Followed) {
        Ok(found) if found.kind() == EntryKind::Directory => Ok(true),
        Ok(_) => Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!(
                "{} is there already and is not a folder. Delete it first, or choose another name.",
                refusal::quoted(path)
            ),
        )
        .with("path", path)),
        Err(failure) if failure.kind == ErrorKind::NotFound => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn mkdir(grounds: &Grounds, params: &MkdirParams) -> Result<Done, Failure> {
    let path = params.path.as_str();
    let mode = params.mode.map_or(0o777, Permissions::bits);
    if exists(grounds, path)? {
        return Ok(Done { changed: false });
    }
    let place = grounds.place(path, Access::Write)?;
    let ready = place.make_folders()?;
    let made = rustix::fs::mkdirat(ready.folder(), place.name(), Mode::from_raw_mode(mode));
    match made {
        Ok(()) => {
            sync_folder(ready.folder());
            ready.keep();
            Ok(Done { changed: true })
        }
        // Somebody else was faster, or a link that leads nowhere is in the way.
        Err(Errno::EXIST) => {
            grounds.folder(path)?;
            ready.keep();
            Ok(Done { changed: false })
        }
        Err(errno) => Err(refusal::of(errno, path)),
    }
}
