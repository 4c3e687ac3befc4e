//! Measures Ward beside its peers. `cargo xtask bench` builds it in release, lays out the folder it
//! works in (see [`stage`]) and runs it as the user whose figures are wanted; it prints a table.
//!
//! Candidates always take turns within one run, so that whatever else the machine does meets all
//! of them alike. What counts is the ratio.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its figures are what it is for"
)]

mod clock;
mod memory;
mod peer;
mod rate;
mod row;
mod run;
mod samples;
mod server;
mod stage;
mod start;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::stage::{Effort, Stage};

#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Measure the runtime server and its sandbox
    Runtime {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only how quickly commands start
        #[arg(long)]
        starts: bool,
        /// A few runs of each, to see that everything works
        #[arg(long)]
        quick: bool,
    },
    /// Be a JSON-RPC server that starts commands and confines nothing
    Peer,
    /// Time a command from the inside, without the start of whatever it runs in
    Clock(clock::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().job {
        Job::Runtime {
            stage,
            starts,
            quick,
        } => {
            let effort = if quick { Effort::Quick } else { Effort::Full };
            measure(Stage::new(stage, effort), starts)
        }
        Job::Peer => peer::serve(),
        Job::Clock(args) => clock::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(stage: Stage, starts_only: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut part = |name: &str, measured: anyhow::Result<Vec<row::Row>>| {
        eprintln!("  {name}");
        measured.map(|measured| rows.extend(measured))
    };
    if starts_only {
        part("commands in an open room", run::measure(&stage))?;
        part("one command in a new sandbox", start::measure(&stage))?;
    } else {
        part("requests", rate::measure(&stage))?;
        part("commands in an open room", run::measure(&stage))?;
        part("one command in a new sandbox", start::measure(&stage))?;
        part("work inside and outside", work::measure(&stage))?;
        part("memory", memory::measure(&stage))?;
    }
    print!("{}", row::table(&rows));
    Ok(())
}
