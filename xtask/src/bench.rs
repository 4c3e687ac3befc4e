//! `cargo xtask bench`: Ward measured beside its peers, as ratios in one run.
//!
//! What measures is the package `bench`; Ward is built as it is shipped. This prepares what it needs,
//! runs it as an unprivileged user and, where it can, as root, and writes the figures to
//! docs/benchmarks.md.

mod document;
mod kernel;
mod machine;
mod page;
mod peers;
mod python;
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

    /// Only a part, nothing is written. Runtime: requests, commands, starts, work or memory; gate:
    /// decide, ledger, read, crowd, act or idle; runner: turns, deltas or hundred;
    /// broker: actions or thousand; notebook: commits, long or cells
    #[arg(long, value_name = "PART")]
    only: Vec<String>,

    /// How to build; with another profile than what is shipped nothing is written
    #[arg(long, value_name = "NAME", default_value = SHIPPED)]
    profile: String,
}

/// What is measured: a job of the package `bench`, and a section of docs/benchmarks.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Subject {
    /// The runtime server and its sandbox
    Runtime,
    /// The gate
    Gate,
    /// Sessions with agents
    Runner,
    /// Actions that are routed to editors
    Broker,
    /// Notebooks: their store, a replica, and cells on a kernel
    Notebook,
    /// The page, in a browser
    Page,
}

impl Subject {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Gate => "gate",
            Self::Runner => "runner",
            Self::Broker => "broker",
            Self::Notebook => "notebook",
            Self::Page => "page",
        }
    }

    /// The programs it takes.
    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Runtime => &["ward", "ward-layers-off", "bench"],
            Self::Gate | Self::Runner | Self::Broker | Self::Notebook => &["ward", "bench"],
            Self::Page => &["ward"],
        }
    }

    /// The parts that being root changes, which are measured as root as well.
    fn as_root(self) -> &'static [&'static str] {
        match self {
            Self::Runtime => &["commands", "starts"],
            Self::Gate | Self::Runner | Self::Broker | Self::Notebook | Self::Page => &[],
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let places = Places::find()?;
    let mut steps = Steps::new();
    let result = match args.subject {
        Subject::Page => page::measure(args, &places, &mut steps),
        Subject::Runtime
        | Subject::Gate
        | Subject::Runner
        | Subject::Broker
        | Subject::Notebook => measure(args, &places, &mut steps),
    };
    steps.total();
    result
}

fn measure(args: &Args, places: &Places, steps: &mut Steps) -> anyhow::Result<()> {
    steps.step("Build", || build(places, args.subject, &args.profile))?;
    let peers = steps.step("Peers", || peers::install(places, args.subject))?;
    let stage = steps.step("The folder to measure in", || {
        Stage::make(places, &peers, args.subject, &args.profile)
    })?;
    let machine = machine::describe(&peers, args.subject)?;
    println!("\n{machine}");

    let mut sections = Vec::new();
    for user in [User::Unprivileged, User::Root] {
        let Some(parts) = parts(args, user) else {
            continue;
        };
        let Some(mut command) = stage.measure(args.subject, user)? else {
            continue;
        };
        for part in parts {
            command.args(["--only", part]);
        }
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
    if args.quick || !args.only.is_empty() || args.profile != SHIPPED {
        println!("Nothing is written: that takes all parts and many runs of what is shipped.");
        return Ok(());
    }
    document::write(places, args.subject, &machine, &sections)
}

/// What to measure as this user; nothing named means everything.
fn parts(args: &Args, user: User) -> Option<Vec<&str>> {
    let as_root = args.subject.as_root();
    let wanted = args.only.iter().map(String::as_str);
    let parts: Vec<&str> = match user {
        User::Unprivileged => return Some(wanted.collect()),
        User::Root if args.only.is_empty() => as_root.to_vec(),
        User::Root => wanted.filter(|part| as_root.contains(part)).collect(),
    };
    (!parts.is_empty()).then_some(parts)
}

/// The profile of what is shipped.
const SHIPPED: &str = "dist";

fn build(places: &Places, subject: Subject, profile: &str) -> anyhow::Result<()> {
    let advice = "What the compiler says above is what to mend.";
    let cargo = |arguments: &[&str]| {
        let mut command = run::cargo(&places.root);
        let profile = ["build", "--profile", profile];
        run::run(command.args(profile).args(arguments), advice)
    };
    for name in subject.programs() {
        match *name {
            "bench" => cargo(&["--package", "bench"])?,
            // The same server with no layer at all: for information, never shipped.
            "ward-layers-off" => {
                let feature = ["--features", "test-layers-off"];
                cargo(&[&["--package", "ward", "--bin", name][..], &feature].concat())?;
            }
            name => cargo(&["--package", "ward", "--bin", name])?,
        }
    }
    Ok(())
}
