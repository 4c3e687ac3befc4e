//! `terminal.write`: types into a terminal.

use protocol::action::fs::Done;
use protocol::action::terminal::WriteParams;
use protocol::{ActionName, Data, ErrorKind, Facts, Failure, Mode};

use super::stream::Sink;
use super::terminals::Terminal;
use crate::action::{Action, Call};
use crate::context::Context;

/// See the module.
pub struct Write;

impl Action for Write {
    const NAME: ActionName = ActionName::TerminalWrite;
    const DESCRIPTION: &'static str =
        "Type into a terminal. A line is only taken with its end: send `\\n` or `\\r`.";
    type Params = WriteParams;
    type Result = Done;

    fn resolve(context: &Context, params: &WriteParams) -> Result<Facts, Failure> {
        let terminal = context.terminal(&params.terminal_id)?;
        pty(&terminal)?;
        Ok(terminal.facts())
    }

    async fn execute(call: Call, params: WriteParams) -> Result<Done, Failure> {
        let bytes = Data::decode(params.data, params.encoding)?;
        let terminal = call.context.terminal(&params.terminal_id)?;
        let keyboard = pty(&terminal)?;
        refuse_beyond_permit(&terminal, call.mode())?;
        if !terminal.is_running() {
            return Err(ended(&terminal));
        }
        let typing = async {
            let _alone = terminal.typing.lock().await;
            keyboard.write(&bytes).await
        };
        tokio::select! {
            written = typing => written.map_err(|_| ended(&terminal))?,
            () = terminal.ended() => return Err(ended(&terminal)),
            () = call.cancel.cancelled() => return Err(Failure::new(
                ErrorKind::Cancelled,
                "The action was cancelled; a part of the data may have been typed.",
            )),
        }
        Ok(Done {
            changed: !bytes.is_empty(),
        })
    }
}

/// Who may act in the sandbox alone must not act through a terminal that stands outside it.
fn refuse_beyond_permit(terminal: &Terminal, mode: Mode) -> Result<(), Failure> {
    if terminal.mode <= mode {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::Forbidden,
        format!(
            "`{}` runs in {} mode and this is permitted in {mode} mode. Ask for it in {} mode, or open another terminal.",
            terminal.id, terminal.mode, terminal.mode
        ),
    )
    .with("terminal_id", terminal.id.as_str()))
}

/// Where to type; a background command has no such thing.
pub(crate) fn pty(terminal: &Terminal) -> Result<&Sink, Failure> {
    terminal.pty.as_ref().ok_or_else(|| {
        Failure::new(
            ErrorKind::UnknownTerminal,
            format!("`{}` is a background command and has no terminal. Open one with `terminal.open`, or give the command its `stdin`.", terminal.id),
        )
        .with("terminal_id", terminal.id.as_str())
    })
}

pub(crate) fn ended(terminal: &Terminal) -> Failure {
    Failure::new(
        ErrorKind::UnknownTerminal,
        format!(
            "What ran in `{}` has ended. Open another terminal.",
            terminal.id
        ),
    )
    .with("terminal_id", terminal.id.as_str())
}
