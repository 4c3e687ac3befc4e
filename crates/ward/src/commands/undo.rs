//! `ward undo`: puts back what file actions replaced.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use protocol::gate::Failed;
use protocol::undo::{State, UndoParams, Undone};

use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;
use crate::workspace;

/// Put back what file actions replaced
///
/// Without arguments, the last file action in the workspace; else one action, or with --session all
/// of a session, the newest first. Where a file has changed since, nothing is put back and the
/// difference is shown. An undo is an action as well: it is recorded and can be undone.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward undo\n  \
    ward undo 4f2ac01d9be37710a6c2d5e4\n  \
    ward undo --session review")]
pub(crate) struct Args {
    /// The action to take back
    #[arg(value_name = "ACTION")]
    action: Option<String>,

    /// Take back everything that this session did to files
    #[arg(long, value_name = "SESSION", conflicts_with = "action")]
    session: Option<String>,

    /// The workspace whose last action is meant [default: the current folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let last = args.action.is_none() && args.session.is_none();
    let workspace = match (&args.workspace, last) {
        (None, false) => None,
        (named, _) => Some(workspace::find(named.as_deref())?),
    };
    let params = UndoParams {
        action: args.action,
        session: args.session,
        workspace: workspace.map(|path| path.to_string_lossy().into_owned()),
    };
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward undo").await?;
        let done = undo(&client, &params).await;
        client.close().await;
        done
    })
}

async fn undo(client: &Client, params: &UndoParams) -> anyhow::Result<ExitCode> {
    let undone: Undone = match client.post("/undo", params).await {
        Ok(undone) => undone,
        Err(error) => {
            let diff = error.downcast_ref::<Failed>();
            let diff = diff.and_then(|failed| failed.details.get("diff")?.as_str());
            if let Some(diff) = diff {
                let mut out = std::io::stdout().lock();
                for line in diff.lines() {
                    writeln!(out, "{}", printable(line))?;
                }
            }
            return Err(error);
        }
    };
    let mut out = std::io::stdout().lock();
    for action in &undone.actions {
        writeln!(out, "Undone: {}", printable(&action.action_id))?;
        for file in &action.files {
            let what = match (&file.before, &file.after) {
                (_, State::Absent) => "removed",
                (State::Absent, _) => "put back",
                (_, _) => "restored",
            };
            writeln!(out, "  {what:<9} {}", printable(&file.path))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
