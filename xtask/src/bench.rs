//! `cargo xtask bench`: Ward measured beside its peers, as ratios in one run.

use anyhow::bail;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure
    subject: Subject,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// The runtime server and its sandbox
    Runtime,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match args.subject {
        Subject::Runtime => bail!("nothing is measured here yet"),
    }
}
