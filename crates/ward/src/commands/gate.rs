//! `ward gate`: the gate as JSON-RPC, for an editor or any host that embeds it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use gate::Actor;
use runtime_server::{standard_streams, stop_on_signals};
use store_sqlite::DataFolder;

use crate::app::{self, App};
use crate::workspace;

/// How long threads that may block have when everything else has ended.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ask for actions over JSON-RPC, decided by roles and rules
///
/// For an editor or any other host that embeds Ward. Speaks JSON-RPC 2.0 with Content-Length
/// frames, as npm's vscode-jsonrpc does. Every action goes through the gate: it is decided by the
/// role and the rules, asked about with `permission/requested` where it must be, run in the sandbox
/// and recorded.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward gate --stdio --workspace ~/src/app")]
pub(crate) struct Args {
    /// Talk over standard input and output
    #[arg(long, required = true)]
    stdio: bool,

    /// The folder that actions work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = workspace::find(args.workspace.as_deref())?;
    let folder = DataFolder::own(
        &app::data_folder(args.data.as_deref())?,
        "ward gate --stdio",
    )?;
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Ward could not start its threads")?;
    threads.block_on(async {
        let stop = stop_on_signals().context("Ward could not prepare for signals")?;
        let app = App::open(folder, &workspace).await?;
        app.gate.wake()?;
        let streams = standard_streams().context("Standard input or output cannot be used")?;
        let actor = Actor::Person(app::person());
        let end = app.gate.serve(actor, streams.0, streams.1, stop).await;
        tracing::debug!(?end, "the client has gone");
        app.gate.close().await;
        anyhow::Ok(())
    })?;
    threads.shutdown_timeout(PATIENCE);
    Ok(ExitCode::SUCCESS)
}
