//! `terminal.close`: ends what runs in a terminal and forgets it.

use protocol::action::fs::Done;
use protocol::action::terminal::TerminalParams;
use protocol::{ActionName, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Close;

impl Action for Close {
    const NAME: ActionName = ActionName::TerminalClose;
    const DESCRIPTION: &'static str =
        "Close a terminal or background command: end what runs in it and forget what it printed.";
    type Params = TerminalParams;
    type Result = Done;

    fn resolve(context: &Context, params: &TerminalParams) -> Result<Facts, Failure> {
        Ok(context.terminal(&params.terminal_id)?.facts())
    }

    async fn execute(call: Call, params: TerminalParams) -> Result<Done, Failure> {
        let terminal = call.context.terminal(&params.terminal_id)?;
        terminal.stop().await;
        call.context.terminals.forget(&terminal.id);
        Ok(Done { changed: true })
    }
}
