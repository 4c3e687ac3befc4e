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

mod act;
mod agents;
mod broker;
mod cells;
mod clock;
mod commits;
mod converse;
mod crowd;
mod decide;
mod double;
mod editors;
mod http;
mod hub;
mod hundred;
mod idle;
mod ledger;
mod lines;
mod long;
mod memory;
mod notebook;
mod peer;
mod peers;
mod processor;
mod rate;
mod read;
mod row;
mod run;
mod samples;
mod served;
mod server;
mod stage;
mod start;
mod talk;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::row::Row;
use crate::stage::{Effort, Stage};

#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

/// A part of the measuring, in the order in which they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Requests a second
    Requests,
    /// Commands in an open room
    Commands,
    /// One command in a sandbox of its own
    Starts,
    /// Work inside and outside
    Work,
    /// Memory of the idle server
    Memory,
}

/// A part of measuring the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GatePart {
    /// A decision with a thousand rules
    Decide,
    /// Appends to the ledger
    Ledger,
    /// Reading a file
    Read,
    /// Reading it while a thousand questions are open
    Crowd,
    /// The whole path of a command
    Act,
    /// How soon it is there, and its memory
    Idle,
}

/// A part of measuring the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RunnerPart {
    /// A turn in which a tool is called
    Turns,
    /// A word of an answer
    Deltas,
    /// A hundred conversations at once
    Hundred,
}

/// A part of measuring the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BrokerPart {
    /// An action that is routed to an editor
    Actions,
    /// The same with a thousand editors, and what they take
    Thousand,
}

/// A part of measuring notebooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum NotebookPart {
    /// Events appended one at a time
    Commits,
    /// A notebook of 100,000 events, and a replica of it
    Long,
    /// A cell that is executed
    Cells,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Measure the runtime server and its sandbox
    Runtime {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only these parts
        #[arg(long, value_name = "PART")]
        only: Vec<Part>,
        /// A few runs of each, to see that everything works
        #[arg(long)]
        quick: bool,
    },
    /// Measure the gate
    Gate {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only these parts
        #[arg(long, value_name = "PART")]
        only: Vec<GatePart>,
        /// A few runs of each, to see that everything works
        #[arg(long)]
        quick: bool,
    },
    /// Measure sessions with agents
    Runner {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only these parts
        #[arg(long, value_name = "PART")]
        only: Vec<RunnerPart>,
        /// A few runs of each, to see that everything works
        #[arg(long)]
        quick: bool,
    },
    /// Measure actions that are routed to editors
    Broker {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only these parts
        #[arg(long, value_name = "PART")]
        only: Vec<BrokerPart>,
        /// A few runs of each, to see that everything works
        #[arg(long)]
        quick: bool,
    },
    /// Measure notebooks
    Notebook {
        /// The folder that `cargo xtask bench` laid out
        stage: PathBuf,
        /// Only these parts
        #[arg(long, value_name = "PART")]
        only: Vec<NotebookPart>,
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
        Job::Runtime { stage, only, quick } => {
            let stage = Stage::new(stage, effort(quick));
            print_rows(&only, |part: Part| match part {
                Part::Requests => rate::measure(&stage),
                Part::Commands => run::measure(&stage),
                Part::Starts => start::measure(&stage),
                Part::Work => work::measure(&stage),
                Part::Memory => memory::measure(&stage),
            })
        }
        Job::Gate { stage, only, quick } => {
            let stage = Stage::new(stage, effort(quick));
            print_rows(&only, |part: GatePart| match part {
                GatePart::Decide => decide::measure(&stage),
                GatePart::Ledger => ledger::measure(&stage),
                GatePart::Read => read::measure(&stage),
                GatePart::Crowd => crowd::measure(&stage),
                GatePart::Act => act::measure(&stage),
                GatePart::Idle => idle::measure(&stage),
            })
        }
        Job::Runner { stage, only, quick } => {
            let stage = Stage::new(stage, effort(quick));
            print_rows(&only, |part: RunnerPart| match part {
                RunnerPart::Turns => talk::turns(&stage),
                RunnerPart::Deltas => talk::deltas(&stage),
                RunnerPart::Hundred => hundred::measure(&stage),
            })
        }
        Job::Broker { stage, only, quick } => {
            let stage = Stage::new(stage, effort(quick));
            print_rows(&only, |part: BrokerPart| match part {
                BrokerPart::Actions => broker::actions(&stage),
                BrokerPart::Thousand => broker::thousand(&stage),
            })
        }
        Job::Notebook { stage, only, quick } => {
            let stage = Stage::new(stage, effort(quick));
            print_rows(&only, |part: NotebookPart| match part {
                NotebookPart::Commits => commits::measure(&stage),
                NotebookPart::Long => long::measure(&stage),
                NotebookPart::Cells => cells::measure(&stage),
            })
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

fn effort(quick: bool) -> Effort {
    if quick { Effort::Quick } else { Effort::Full }
}

/// Measures the parts that are wanted, or all, in their order, and prints the table.
fn print_rows<P: ValueEnum + PartialEq + std::fmt::Debug>(
    only: &[P],
    measure: impl Fn(P) -> anyhow::Result<Vec<Row>>,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for part in P::value_variants() {
        if only.is_empty() || only.contains(part) {
            eprintln!("  {part:?}");
            rows.extend(measure(part.clone())?);
        }
    }
    print!("{}", row::table(&rows));
    Ok(())
}
