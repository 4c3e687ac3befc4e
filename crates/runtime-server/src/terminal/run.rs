//! `terminal.run`: one command, to its end or in the background.

use std::sync::Arc;

use protocol::action::terminal::{Cut, OpenResult, RunParams, RunResult, TerminalKind};
use protocol::method::OutputStream;
use protocol::{ActionName, Data, ErrorKind, Facts, Failure};
use sandbox::{Outcome, Stdio};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::command::{self, Asked, Otherwise, Resolved};
use super::kept::Kept;
use super::process::{self, Process};
use super::pump::Pump;
use super::stream::Sink;
use crate::action::{Action, Call, Look};
use crate::context::Context;
use crate::output::Cap;

/// See the module.
pub struct Run;

/// Either result of `terminal.run`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum RunAnswer {
    /// It ran to its end.
    Ended(Box<RunResult>),
    /// It goes on in the background.
    Started(OpenResult),
}

impl Action for Run {
    const NAME: ActionName = ActionName::TerminalRun;
    const DESCRIPTION: &'static str = "Run a command in the sandbox: a shell line (`command`) or words (`argv`). Answers with its output and exit code when it ends, or, with `background`, at once with a terminal_id.";
    type Params = RunParams;
    type Result = RunAnswer;
    const LOOK: Look = Look::Short;

    fn resolve(context: &Context, params: &RunParams) -> Result<Facts, Failure> {
        Ok(resolve(context, params)?.facts())
    }

    async fn execute(call: Call, params: RunParams) -> Result<RunAnswer, Failure> {
        let stdin = match &params.stdin {
            Some(text) => Some(Data::decode(text.clone(), params.stdin_encoding)?),
            None => None,
        };
        if params.background {
            let terminal_id = background(call, params, stdin).await?;
            return Ok(RunAnswer::Started(OpenResult { terminal_id }));
        }
        let result = foreground(call, params, stdin).await?;
        Ok(RunAnswer::Ended(Box::new(result)))
    }
}

fn resolve(context: &Context, params: &RunParams) -> Result<Resolved, Failure> {
    command::resolve(
        context,
        Asked {
            command: params.command.as_deref(),
            argv: params.argv.as_deref(),
            cwd: params.cwd.as_deref(),
            env: &params.env,
            otherwise: Otherwise::Refuse,
        },
    )
}

async fn foreground(
    call: Call,
    params: RunParams,
    stdin: Option<Vec<u8>>,
) -> Result<RunResult, Failure> {
    let stdio = Stdio::Piped {
        stdin: stdin.is_some(),
    };
    let context = Arc::clone(&call.context);
    let make = move || Ok(resolve(&context, &params)?.command(stdio, params.timeout_ms));
    let rooms = call.context.terminals.rooms()?;
    let mut process = tokio::select! {
        process = Process::start(rooms, &call, make) => process?,
        () = call.cancel.cancelled() => return Err(cancelled()),
    };
    let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
    let pump = Pump {
        output: call.output.clone(),
        cap: Cap::Bounded,
        end: Arc::clone(&process.end),
        mute: CancellationToken::new(),
    };
    let input = process.stdin.take();
    let to_the_end = async {
        tokio::join!(
            feed(input, stdin),
            pump.run(process.stdout.as_ref(), OutputStream::Stdout, |bytes| {
                stdout.add(bytes);
            }),
            pump.run(process.stderr.as_ref(), OutputStream::Stderr, |bytes| {
                stderr.add(bytes);
            }),
        );
        pump.output.finish().await;
        process.end.wait().await.clone()
    };
    let ended = tokio::select! {
        outcome = to_the_end => Some(outcome),
        () = call.cancel.cancelled() => None,
    };
    match ended {
        Some(outcome) => Ok(result(outcome, stdout, stderr)),
        None => {
            process.stop().await;
            Err(cancelled())
        }
    }
}

async fn background(
    call: Call,
    params: RunParams,
    stdin: Option<Vec<u8>>,
) -> Result<String, Failure> {
    let stdio = Stdio::Piped {
        stdin: stdin.is_some(),
    };
    let timeout = params.timeout_ms;
    let terminals = &call.context.terminals;
    let resolving = move |context: &Context| resolve(context, &params);
    terminals
        .start(
            &call,
            TerminalKind::Background,
            stdio,
            timeout,
            stdin,
            resolving,
        )
        .await
}

/// Gives a command what it reads, and then the end of it.
pub(crate) async fn feed(sink: Option<Sink>, bytes: Option<Vec<u8>>) {
    if let (Some(sink), Some(bytes)) = (sink, bytes)
        && let Err(error) = sink.write(&bytes).await
    {
        // Many commands stop reading before the end; that is theirs to decide.
        tracing::debug!(%error, "a command did not read all of its input");
    }
}

fn result(outcome: Outcome, stdout: Kept, stderr: Kept) -> RunResult {
    let (exit_code, signal) = process::told(outcome.end);
    let (stdout, cut_stdout) = stdout.finish();
    let (stderr, cut_stderr) = stderr.finish();
    let cut = Cut {
        stdout: cut_stdout,
        stderr: cut_stderr,
    };
    RunResult {
        exit_code,
        signal,
        stdout: stdout.text,
        stderr: stderr.text,
        stdout_encoding: stdout.encoding,
        stderr_encoding: stderr.encoding,
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        timed_out: outcome.timed_out,
        truncated: !cut.is_nothing(),
        cut,
        sandbox: outcome.report,
    }
}

fn cancelled() -> Failure {
    Failure::new(
        ErrorKind::Cancelled,
        "The command was cancelled; nothing of it is left running.",
    )
}
