//! `fs.move`: moves or renames.

use std::path::Path;

use protocol::action::fs::{Done, MoveParams};
use protocol::facts::{Access, EntryKind};
use protocol::{ActionName, ErrorKind, Facts, Failure};
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Place, kind_of, refusal, refuse_protected, rename_new, sync_folder};

use super::tree::check_below;

/// `fs.move`
#[derive(Debug)]
pub struct Move;

impl Action for Move {
    const NAME: ActionName = ActionName::FsMove;
    const DESCRIPTION: &'static str = "Moves or renames a file, a folder or a symbolic link. Nothing may be at `to`, unless `replace` says that a file there is replaced.";
    type Params = MoveParams;
    type Result = Done;

    fn resolve(context: &Context, params: &MoveParams) -> Result<Facts, Failure> {
        let planned = plan(&context.grounds, params)?;
        planned.check_protected(None)?;
        Ok(super::touches(vec![
            planned.from.fact(Access::Delete, Some(&planned.what))?,
            planned.to.fact(Access::Write, planned.there.as_ref())?,
        ]))
    }

    async fn execute(call: Call, params: MoveParams) -> Result<Done, Failure> {
        call.blocking(move |call| moving(&call, &params)).await
    }
}

struct Planned {
    from: Place,
    what: Stat,
    to: Place,
    there: Option<Stat>,
}

fn plan(grounds: &Grounds, params: &MoveParams) -> Result<Planned, Failure> {
    let from = grounds.place(&params.from, Access::Delete)?;
    let Some(what) = from.entry()? else {
        return Err(refusal::of(Errno::NOENT, &params.from));
    };
    let to = grounds.place(&params.to, Access::Write)?;
    if to.real().starts_with(from.real()) && to.real() != from.real() {
        return Err(into_itself(params));
    }
    let there = if params.replace {
        grounds.replaceable(&to, to.entry()?)?
    } else {
        to.entry()?
    };
    if there.is_some() && !params.replace {
        return Err(taken(&params.to));
    }
    Ok(Planned {
        from,
        what,
        to,
        there,
    })
}

impl Planned {
    /// Also what is in a folder may be protected, by where it is or by where it would be.
    fn check_protected(&self, call: Option<&Call>) -> Result<(), Failure> {
        if kind_of(&self.what) != EntryKind::Directory {
            return Ok(());
        }
        let check = |below: &Path| {
            [&self.from, &self.to].into_iter().try_for_each(|place| {
                let (relative, real) = (place.relative().join(below), place.real().join(below));
                refuse_protected(&relative, &real, place.asked())
            })
        };
        let ready = self.from.make_folders()?;
        check_below(
            call,
            ready.folder(),
            self.from.name(),
            self.from.asked(),
            &check,
        )
    }
}

fn moving(call: &Call, params: &MoveParams) -> Result<Done, Failure> {
    let grounds = &call.context.grounds;
    let planned = plan(grounds, params)?;
    planned.check_protected(Some(call))?;
    let (from, to) = (&planned.from, &planned.to);
    if from.real() == to.real() {
        return Ok(Done { changed: false });
    }

    let source = from.make_folders()?;
    let target = to.make_folders()?;
    let moved = {
        let _one_at_a_time = grounds.change();
        if planned.there.is_some() {
            rustix::fs::renameat(source.folder(), from.name(), target.folder(), to.name())
        } else {
            rename_new(source.folder(), from.name(), target.folder(), to.name())
        }
    };
    match moved {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(taken(&params.to)),
        Err(Errno::INVAL) => return Err(into_itself(params)),
        Err(Errno::XDEV) => {
            return Err(Failure::new(
                ErrorKind::Io,
                format!(
                    "{} and {} are on different file systems, so it cannot be moved in one step. Copy it with terminal.run, then delete it.",
                    refusal::quoted(&params.from),
                    refusal::quoted(&params.to)
                ),
            ));
        }
        Err(errno @ (Errno::NOTDIR | Errno::ISDIR)) => {
            return Err(refusal::of(errno, &params.to));
        }
        Err(errno) => return Err(refusal::of(errno, &params.from)),
    }
    sync_folder(target.folder());
    sync_folder(source.folder());
    source.keep();
    target.keep();
    Ok(Done { changed: true })
}

fn taken(path: &str) -> Failure {
    Failure::new(
        ErrorKind::AlreadyExists,
        format!(
            "{} is there already. Choose another name, or set `replace` to replace a file.",
            refusal::quoted(path)
        ),
    )
    .with("path", path)
}

fn into_itself(params: &MoveParams) -> Failure {
    Failure::new(
        ErrorKind::InvalidParams,
        format!(
            "{} cannot be moved into itself, to {}.",
            refusal::quoted(&params.from),
            refusal::quoted(&params.to)
        ),
    )
    .with("path", params.to.as_str())
}
