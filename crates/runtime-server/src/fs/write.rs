//! `fs.write`: replaces a file, or makes it.

use protocol::action::fs::{WriteParams, WriteResult};
use protocol::facts::{Access, EntryKind};
use protocol::{ActionName, Data, Digest, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;
use crate::grounds::Grounds;
use crate::workspace::{Like, Seen, Staged, kind_of, unchanged};

/// `fs.write`
#[derive(Debug)]
pub struct Write;

impl Action for Write {
    const NAME: ActionName = ActionName::FsWrite;
    const DESCRIPTION: &'static str = "Writes a file whole: makes it, and missing folders above it, or replaces it at once, keeping its mode. `expect` refuses to replace anything but what was read.";
    type Params = WriteParams;
    type Result = WriteResult;

    fn resolve(context: &Context, params: &WriteParams) -> Result<Facts, Failure> {
        let (place, old) = context.grounds.target(&params.path)?;
        let fact = place.fact(Access::Write, old.as_ref())?;
        super::expected(params.expect.as_ref(), fact.digest.as_ref(), &params.path)?;
        Ok(super::touches(vec![fact]))
    }

    async fn execute(call: Call, params: WriteParams) -> Result<WriteResult, Failure> {
        call.blocking(move |call| write(&call.context.grounds, params))
            .await
    }
}

fn write(grounds: &Grounds, params: WriteParams) -> Result<WriteResult, Failure> {
    let content = Data::decode(params.content, params.encoding)?;
    let (place, old) = grounds.target(&params.path)?;
    if params.expect.is_some() {
        let now = match &old {
            Some(stat) => place.digest(stat)?,
            None => None,
        };
        super::expected(params.expect.as_ref(), now.as_ref(), &params.path)?;
    }

    let ready = place.make_folders()?;
    let mut file = old.filter(|stat| kind_of(stat) == EntryKind::File);
    if let (Some(stat), Some(mode)) = (&mut file, params.mode) {
        stat.st_mode = mode.bits();
    }
    let like = match (&file, params.mode) {
        (Some(stat), _) => Like::Old {
            stat,
            executable: None,
        },
        (None, Some(mode)) => Like::Exactly(mode),
        (None, None) => Like::New { executable: false },
    };
    let staged = Staged::write(ready.folder(), &content, like, &params.path)?;
    {
        let _one_at_a_time = grounds.change();
        if params.expect.is_some() {
            let seen = old.as_ref().map(Seen::of);
            unchanged(ready.folder(), place.name(), seen, &params.path)?;
        }
        staged.put(place.name())?;
    }
    ready.keep();
    Ok(WriteResult {
        digest: Digest::of(&content),
        created: old.is_none(),
    })
}
