//! `terminal.read`: what a terminal or background command has printed lately.

use protocol::action::terminal::{OutputReadParams, OutputReadResult};
use protocol::{ActionName, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Read;

impl Action for Read {
    const NAME: ActionName = ActionName::TerminalRead;
    const DESCRIPTION: &'static str = "Read what a terminal or background command has printed, from where the last answer ended (`from`: its `next`).";
    type Params = OutputReadParams;
    type Result = OutputReadResult;

    fn resolve(context: &Context, params: &OutputReadParams) -> Result<Facts, Failure> {
        Ok(context.terminal(&params.terminal_id)?.facts())
    }

    async fn execute(call: Call, params: OutputReadParams) -> Result<OutputReadResult, Failure> {
        let terminal = call.context.terminal(&params.terminal_id)?;
        let (part, running) = terminal.read(params.from);
        Ok(OutputReadResult {
            data: part.data.text,
            encoding: part.data.encoding,
            dropped: part.dropped,
            next: part.next,
            running,
        })
    }
}
