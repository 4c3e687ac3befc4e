//! `terminal.open`: a real terminal, with a shell or a program in it.

use protocol::action::terminal::{OpenParams, OpenResult, TerminalKind};
use protocol::{ActionName, ErrorKind, Facts, Failure};
use sandbox::Stdio;

use super::command::{self, Asked, Otherwise, Resolved};
use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Open;

impl Action for Open {
    const NAME: ActionName = ActionName::TerminalOpen;
    const DESCRIPTION: &'static str = "Open a terminal in the sandbox, with an interactive shell or the given program. Answers its terminal_id; what it prints arrives as output.";
    type Params = OpenParams;
    type Result = OpenResult;

    fn resolve(context: &Context, params: &OpenParams) -> Result<Facts, Failure> {
        Ok(resolve(context, params)?.facts())
    }

    async fn execute(call: Call, params: OpenParams) -> Result<OpenResult, Failure> {
        check_size(params.cols, params.rows)?;
        let stdio = Stdio::Pty {
            cols: params.cols,
            rows: params.rows,
        };
        let resolving = move |context: &Context| resolve(context, &params);
        let terminals = &call.context.terminals;
        let terminal_id = terminals
            .start(&call, TerminalKind::Pty, stdio, None, None, resolving)
            .await?;
        Ok(OpenResult { terminal_id })
    }
}

fn resolve(context: &Context, params: &OpenParams) -> Result<Resolved, Failure> {
    check_size(params.cols, params.rows)?;
    let mut env = params.env.clone();
    // Programs ask this to know how to draw.
    env.entry("TERM".to_owned())
        .or_insert_with(|| "xterm-256color".to_owned());
    command::resolve(
        context,
        Asked {
            command: params.command.as_deref(),
            argv: params.argv.as_deref(),
            cwd: params.cwd.as_deref(),
            env: &env,
            otherwise: Otherwise::Shell,
        },
    )
}

pub(crate) fn check_size(cols: u16, rows: u16) -> Result<(), Failure> {
    if cols == 0 || rows == 0 {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            "A terminal has at least one column and one row.",
        ));
    }
    Ok(())
}
