//! `ward chat`: a conversation with an agent in this terminal.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use protocol::Mode;
use protocol::runtime::RuntimeChoice;

use crate::chat::{self, Beginning};
use crate::commands::run::{mode, runtime};
use crate::workspace;

/// Talk with an agent in this terminal
///
/// The same conversation as on the page and over HTTP. The agent's words come as it says them, with
/// what it does and what its commands print. What would cross the wall, or what a rule asks about, is
/// asked here with the command or the change it is about, and answered by a key; whoever answers
/// first, here or elsewhere, has answered.
///
/// A session is kept: --resume goes on with it, after a restart too. Where a Ward runs, this is one
/// of its clients; where none does, this one is Ward for as long as it lasts, and other commands
/// find it. Without a terminal every line of standard input is a message, and what would ask is
/// denied.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Keys:\n  \
    Enter                 send, also while the agent works\n  \
    Alt-Enter, Ctrl-J     a new row in the same message; so does \\ before Enter\n  \
    Up, Down              earlier messages\n  \
    Ctrl-C                cancel what runs; at an empty line, twice leaves\n  \
    Ctrl-D                leave\n  \
    a, s, w, d            when the agent asks: allow once, for this session, in this workspace; deny\n  \
    Tab                   between the question and the line\n\n\
    /help lists what can be typed: /role /model /mode /undo /resume /new /cost /quit\n\n\
    Examples:\n  \
    ward chat\n  \
    ward chat --role architect --model claude-sonnet-4-5\n  \
    ward chat --runtime vscode\n  \
    ward chat --resume\n  \
    echo 'read README.md' | ward chat")]
pub(crate) struct Args {
    /// Who the agent is [default: system_agent]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Its model; `ward models` lists them [default: WARD_MODEL, the role's, or the usual one]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// How its actions may run, at the freest: sandbox or full [default: sandbox]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,

    /// Where its actions run: `local`, a kind of editor that shows this folder, such as `vscode`, or
    /// a runtime's id. One that is not connected is waited for
    #[arg(long, value_name = "RUNTIME", default_value = "local", value_parser = runtime)]
    runtime: RuntimeChoice,

    /// Go on with a session: the one whose id begins so, or the latest in the workspace
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["role", "model", "mode", "runtime"])]
    resume: Option<Option<String>>,

    /// The folder that the agent works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    let is_meant = args.workspace.is_some() || !args.runtime.is_one();
    let beginning = Beginning {
        role: args.role,
        model: args.model.or_else(|| std::env::var("WARD_MODEL").ok()),
        mode: args.mode,
        runtime: Some(args.runtime).filter(|choice| !choice.is_local()),
        workspace,
        is_meant,
        data: args.data,
        resume: args.resume,
    };
    // Agents and other clients are served while a key is waited for.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("Ward could not start its threads")?
        .block_on(chat::run(beginning))
}
