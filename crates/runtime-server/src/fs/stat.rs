//! `fs.stat`: what is at a path.

use protocol::action::fs::{EntriesResult, StatParams};
use protocol::facts::EntryKind;
use protocol::{ActionName, Facts, Failure};

use crate::action::{Action, Call, Look};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Final, refusal};

/// `fs.stat`
#[derive(Debug)]
pub struct Stat;

impl Action for Stat {
    const NAME: ActionName = ActionName::FsStat;
    const DESCRIPTION: &'static str = "Tells what is at a path: its kind, size and time of last change. A symbolic link is told as one, with its target.";
    type Params = StatParams;
    type Result = EntriesResult;
    const LOOK: Look = Look::Short;

    fn resolve(context: &Context, params: &StatParams) -> Result<Facts, Failure> {
        let found = context.grounds.find(&params.path, Final::Itself)?;
        Ok(super::reads(&found))
    }

    async fn execute(call: Call, params: StatParams) -> Result<EntriesResult, Failure> {
        // A few system calls that touch no content: quicker done here than handed to a thread.
        stat(&call.context.grounds, &params.path)
    }
}

fn stat(grounds: &Grounds, path: &str) -> Result<EntriesResult, Failure> {
    if let Some((name, stat)) = grounds.glance(path) {
        return Ok(EntriesResult {
            entries: vec![super::entry(name, &stat, None)],
            truncated: false,
        });
    }
    let found = grounds.find(path, Final::Itself)?;
    let target = match found.kind() {
        EntryKind::Symlink => Some(
            found
                .link_target()
                .map_err(|errno| refusal::of(errno, path))?,
        ),
        EntryKind::File | EntryKind::Directory | EntryKind::Other => None,
    };
    Ok(EntriesResult {
        entries: vec![super::entry(
            found.relative(),
            found.stat(),
            target.as_deref(),
        )],
        truncated: false,
    })
}
