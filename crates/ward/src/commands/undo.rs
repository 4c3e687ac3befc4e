//! `ward undo`: puts back what file actions replaced.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use protocol::ErrorKind;
use protocol::gate::Failed;
use protocol::undo::{State, UndoParams, Undone};

use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;
use crate::workspace;

/// Put back what file actions replaced
///
/// Without arguments, the last file action in the workspace; else one action, or all of a session,
/// the newest first. Where a file has changed since, nothing is put back and the difference is
/// shown. An undo is an action as well: it is recorded and can be undone, by the id that it prints.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward undo\n  \
    ward undo 4f2ac01d9be37710a6c2d5e4\n  \
    ward undo review")]
pub(crate) struct Args {
    /// The action to take back, or the session whose actions
    #[arg(value_name = "ACTION|SESSION")]
    what: Option<String>,

    /// The workspace whose last action is meant [default: the current folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workspace = match (&args.workspace, &args.what) {
        (None, Some(_)) => None,
        (named, _) => Some(workspace::find(named.as_deref())?),
    };
    let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward undo").await?;
        let done = match undo(&client, args.what, workspace).await {
            Ok(undone) => show(&undone),
            Err(error) => show_difference(&error).and(Err(error)),
        };
        client.close().await;
        done
    })
}

/// Undoes an action of this id or, where there is none, a session.
async fn undo(
    client: &Client,
    what: Option<String>,
    workspace: Option<String>,
) -> anyhow::Result<Undone> {
    let mut params = UndoParams {
        action: what,
        session: None,
        workspace,
    };
    match client.post("/undo", &params).await {
        Err(error) if params.action.is_some() && is_unknown(&error) => {
            params.session = params.action.take();
            client.post("/undo", &params).await
        }
        undone => undone,
    }
}

fn is_unknown(error: &anyhow::Error) -> bool {
    let failed = error.downcast_ref::<Failed>();
    failed.is_some_and(|failed| failed.kind == ErrorKind::Unknown)
}

fn show_difference(error: &anyhow::Error) -> anyhow::Result<()> {
    let failed = error.downcast_ref::<Failed>();
    let Some(diff) = failed.and_then(|failed| failed.details.get("diff")?.as_str()) else {
        return Ok(());
    };
    let mut out = std::io::stdout().lock();
    for line in diff.lines() {
        writeln!(out, "{}", printable(line))?;
    }
    Ok(())
}

fn show(undone: &Undone) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for action in &undone.actions {
        writeln!(out, "Undone: {}", printable(&action.action_id))?;
        if action.files.is_empty() {
            writeln!(out, "  nothing to do: all was as before already")?;
        }
        for file in &action.files {
            let what = match (&file.before, &file.after) {
                (_, State::Absent) => "removed",
                (State::Absent, _) => "put back",
                (_, _) => "restored",
            };
            writeln!(out, "  {what:<9} {}", printable(&file.path))?;
        }
        if !action.files.is_empty() {
            writeln!(out, "  ward undo {} takes this back", action.undo_id)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
