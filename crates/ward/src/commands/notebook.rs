//! `ward notebook`: notebooks from the command line.

use std::process::ExitCode;

use clap::Subcommand;
use protocol::sandbox::Tier;
use runtime_native::{Capabilities, KernelOptions, KernelSpec};
use sandbox::{Net, RoomOptions, Wall};

use super::{notebook_agent, notebook_run};
use crate::{folders, settings};

/// Run a notebook, or be the runtime of one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Run(notebook_run::Args),
    Agent(notebook_agent::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        What::Run(args) => notebook_run::run(args),
        What::Agent(args) => notebook_agent::run(args),
    }
}

/// A kernel behind the wall of a workspace: no network, no home folder.
pub(super) fn behind_a_wall(
    spec: KernelSpec,
    workspace: std::path::PathBuf,
    asks: bool,
) -> anyhow::Result<(KernelOptions, Capabilities)> {
    let settings = settings::read()?;
    let state = folders::state()?;
    let tier = sandbox::probe(settings.minimum, &state).tier;
    let room = RoomOptions {
        wall: Wall {
            workspace,
            net: Net::Listening,
            limits: settings.limits,
        },
        state,
        own: folders::own()?,
        minimum: settings.minimum,
    };
    let capabilities = Capabilities {
        can_execute_code: true,
        confined: tier != Tier::None,
        ..Capabilities::default()
    };
    let options = KernelOptions { spec, room, asks };
    Ok((options, capabilities))
}
