//! `terminal.stop`: ends what runs, and keeps what it printed.

use protocol::action::fs::Done;
use protocol::action::terminal::TerminalParams;
use protocol::{ActionName, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Stop;

impl Action for Stop {
    const NAME: ActionName = ActionName::TerminalStop;
    const DESCRIPTION: &'static str =
        "Stop a background command or what runs in a terminal. What it printed can still be read.";
    type Params = TerminalParams;
    type Result = Done;

    fn resolve(context: &Context, params: &TerminalParams) -> Result<Facts, Failure> {
        Ok(context.terminal(&params.terminal_id)?.facts())
    }

    async fn execute(call: Call, params: TerminalParams) -> Result<Done, Failure> {
        let terminal = call.context.terminal(&params.terminal_id)?;
        let changed = terminal.stop().await;
        Ok(Done { changed })
    }
}
