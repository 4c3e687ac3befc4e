//! `cargo xtask bench`: Ward measured beside its peers, as ratios in one run.
//!
//! What measures is the package `bench`, in release. This prepares what it needs, runs it as an
//! unprivileged user and, where it can, as root, and writes the figures to docs/benchmarks.md.

mod document;
mod machine;
mod peers;
mod stage;

use crate::cache::Places;
use crate::run;
use crate::steps::Steps;

use self::document::Section;
use self::stage::{Stage, User};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure
    subject: Subject,

    /// Only a few runs of each, to see that everything works; nothing is written
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// The runtime server and its sandbox
    Runtime,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    let mut steps = Steps::new();
    let result = match args.subject {
        Subject::Runtime => runtime(args, &places, &mut steps),
    };
    steps.total();
    result
}

fn runtime(args: &Args, places: &Places, steps: &mut Steps) -> anyhow::Result<()> {
    steps.step("Build", || build(places))?;
    let peers = steps.step("Peers", || peers::install(places))?;
    let stage = steps.step("The folder to measure in", || Stage::make(places, &peers))?;
    let machine = machine::describe(&peers)?;
    println!("\n{machine}");

    let mut sections = Vec::new();
    for (user, extra) in [(User::Unprivileged, None), (User::Root, Some("--starts"))] {
        let Some(mut command) = stage.measure(user)? else {
            continue;
        };
        command.args(extra);
        if args.quick {
            command.arg("--quick");
        }
        let table = steps.step(&format!("Measuring, {}", user.shown()), || {
            run::output(&mut command)
        })?;
        println!("\n{table}");
        sections.push(Section {
            heading: user.shown(),
            table,
        });
    }
    if args.quick {
        println!("Nothing is written: these were too few runs.");
        return Ok(());
    }
    document::write(places, &machine, &sections)
}

fn build(places: &Places) -> anyhow::Result<()> {
    let advice = "What the compiler says above is what to mend.";
    let cargo = |arguments: &[&str]| {
        let mut command = run::cargo(&places.root);
        run::run(command.args(["build", "--release"]).args(arguments), advice)
    };
    cargo(&["--package", "ward", "--bin", "ward"])?;
    // The same server with no layer at all: for information, never shipped.
    cargo(&[
        "--package",
        "ward",
        "--bin",
        "ward-layers-off",
        "--features",
        "test-layers-off",
    ])?;
    cargo(&["--package", "bench"])
}
