//! `ward aside`: what the sandbox set aside because it would have run by itself.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use sandbox::aside::Aside;

use crate::console::printable;
use crate::folders;

/// Show what the sandbox set aside, or put it back
///
/// What a command makes that would run code by itself later (a git hook, an editor task, a setting
/// that names a program) is moved out of the workspace before the next action. Nothing is lost:
/// look at it here, and put it back if you want it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward aside list\n  \
    ward aside restore 19a8f3c2b10-0")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List what was set aside, oldest first
    List {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Put one back where it was
    Restore {
        /// As `ward aside list` shows it
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let aside = Aside::new(&folders::state()?);
    let mut out = std::io::stdout().lock();
    match &args.what {
        What::List { json: true } => {
            let kept = aside
                .list()
                .context("What was set aside could not be read")?;
            serde_json::to_writer_pretty(&mut out, &kept)?;
            writeln!(out)?;
        }
        What::List { json: false } => {
            let kept = aside
                .list()
                .context("What was set aside could not be read")?;
            if kept.is_empty() {
                writeln!(out, "Nothing is set aside.")?;
            }
            for kept in kept {
                let path = kept.workspace.join(&kept.path);
                writeln!(
                    out,
                    "{}  {}",
                    kept.id,
                    printable(&path.display().to_string())
                )?;
                writeln!(out, "  {}", printable(&kept.reason))?;
            }
        }
        What::Restore { id } => {
            let kept = aside.restore(id)?;
            let path = kept.workspace.join(&kept.path);
            writeln!(out, "{} is back.", printable(&path.display().to_string()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
