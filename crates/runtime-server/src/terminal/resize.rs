//! `terminal.resize`: changes a terminal's size.

use protocol::action::fs::Done;
use protocol::action::terminal::ResizeParams;
use protocol::{ActionName, Facts, Failure};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use super::open::check_size;
use super::write::{ended, pty};
use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Resize;

impl Action for Resize {
    const NAME: ActionName = ActionName::TerminalResize;
    const DESCRIPTION: &'static str = "Change the columns and rows of a terminal.";
    type Params = ResizeParams;
    type Result = Done;

    fn resolve(context: &Context, params: &ResizeParams) -> Result<Facts, Failure> {
        check_size(params.cols, params.rows)?;
        let terminal = context.terminal(&params.terminal_id)?;
        pty(&terminal)?;
        Ok(terminal.facts())
    }

    async fn execute(call: Call, params: ResizeParams) -> Result<Done, Failure> {
        check_size(params.cols, params.rows)?;
        let terminal = call.context.terminal(&params.terminal_id)?;
        let pty = pty(&terminal)?;
        let size = Winsize {
            ws_col: params.cols,
            ws_row: params.rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let before = tcgetwinsize(pty).map_err(|_| ended(&terminal))?;
        // The kernel tells the programs in it.
        tcsetwinsize(pty, size).map_err(|_| ended(&terminal))?;
        Ok(Done {
            changed: (before.ws_col, before.ws_row) != (params.cols, params.rows),
        })
    }
}
