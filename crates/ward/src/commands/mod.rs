//! The sub-commands: one file each, with its arguments and what it does.

pub(crate) mod approvals;
mod approvals_watch;
pub(crate) mod aside;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod exec;
mod exec_report;
pub(crate) mod gate;
pub(crate) mod grants;
pub(crate) mod ledger;
pub(crate) mod models;
pub(crate) mod notebook;
mod notebook_agent;
mod notebook_asked;
mod notebook_cells;
mod notebook_run;
mod notebook_way;
pub(crate) mod openapi;
pub(crate) mod policy;
mod policy_files;
pub(crate) mod roles;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod serve;
pub(crate) mod tokens;
pub(crate) mod trust;
pub(crate) mod undo;

use std::future::Future;
use std::process::ExitCode;

use anyhow::Context as _;

/// What the environment says.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Runs a command that talks to the gate, to its end or until Ctrl-C.
fn run_async(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Ward could not start its threads")?
        .block_on(work)
}
