//! Work inside the sandbox against the same work outside, without the start: timed by a small
//! program that runs in both places.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::row::{Row, Target, Unit};
use crate::samples::{Turn, interleave};
use crate::stage::{Stage, prepare};

/// Files in the tree, and in each of its folders.
const FILES: usize = 5_000;
const PER_FOLDER: usize = 50;

/// C files in the build.
const SOURCES: usize = 150;

/// Something to do, in a folder of the workspace.
struct Task {
    what: &'static str,
    target: Target,
    folder: &'static str,
    command: &'static [&'static str],
    /// Untimed, before each run.
    before: Option<&'static str>,
    /// How often in one turn.
    runs: usize,
    rounds: usize,
}

const TASKS: &[Task] = &[
    Task {
        what: "(c) `grep -r` over 5,000 files",
        target: Target::AtMost(1.15),
        folder: "tree",
        command: &["grep", "-r", "needle in line 7", "."],
        before: None,
        runs: 4,
        rounds: 15,
    },
    Task {
        what: "(c) `git status` over 5,000 files",
        target: Target::AtMost(1.15),
        folder: "tree",
        command: &["git", "status", "--porcelain"],
        before: None,
        runs: 6,
        rounds: 15,
    },
    Task {
        what: "(c) build: make with 150 C files",
        target: Target::AtMost(1.15),
        folder: "build",
        command: &["make", "--silent", "all"],
        before: Some("make --silent clean"),
        runs: 1,
        rounds: 9,
    },
    Task {
        what: "(c) shell loop of 300 processes",
        target: Target::None,
        folder: "build",
        command: &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done",
        ],
        before: None,
        runs: 2,
        rounds: 12,
    },
    Task {
        what: "(c) `tar` of 5,000 files, on disk",
        target: Target::AtMost(1.5),
        folder: ".",
        command: &["tar", "-xf", "tree.tar", "-C", "out"],
        before: Some("rm -rf out && mkdir out"),
        runs: 1,
        rounds: 15,
    },
];

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let bench = stage.work();
    if !bench.join("clock").exists() {
        std::fs::copy(stage.path("bin/bench"), bench.join("clock"))?;
        tree(stage, &bench.join("tree"))?;
        build(&bench.join("build"))?;
    }
    TASKS.iter().map(|task| one(stage, task)).collect()
}

fn one(stage: &Stage, task: &Task) -> anyhow::Result<Row> {
    let folder = stage.work().join(task.folder);
    let clock = stage.work().join("clock");
    let timed = |mut command: Command| {
        command
            .arg("clock")
            .args(["--runs", &task.runs.to_string()]);
        if let Some(before) = task.before {
            command.args(["--before", before]);
        }
        command.arg("--").args(task.command);
        command.current_dir(&folder);
        command
    };
    let mut inside = stage.ours("ward");
    inside.arg("exec").arg("--workspace").arg(stage.work());
    inside.arg("--").arg(&clock);
    let turn = |mut command: Command| -> Turn<'_> { Box::new(move || times(&mut command)) };
    let mut turns = [turn(timed(inside)), turn(timed(stage.command(&clock)))];
    let samples = interleave(stage.rounds(task.rounds), &mut turns)?;
    let [inside, outside] = &samples[..] else {
        bail!("a candidate is missing");
    };
    let peer = "outside";
    Ok(Row::against(
        task.what,
        Unit::Seconds,
        inside,
        peer,
        outside,
        task.target,
    ))
}

/// Runs the clock; the seconds that it tells.
fn times(command: &mut Command) -> anyhow::Result<Vec<f64>> {
    let output = command.output()?;
    if !output.status.success() {
        bail!(
            "`{}` failed ({}): {}",
            command.get_program().display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let text = String::from_utf8(output.stdout)?;
    let seconds = |line: &str| anyhow::Ok(line.parse::<f64>().context("no time")? / 1e9);
    text.lines().map(seconds).collect()
}

/// A repository of text files, all of them committed, and an archive of them.
fn tree(stage: &Stage, folder: &Path) -> anyhow::Result<()> {
    for number in 0..FILES {
        let inner = folder.join(format!("part-{:02}", number / PER_FOLDER));
        std::fs::create_dir_all(&inner)?;
        let mut text = String::new();
        for line in 0..40 {
            let _ = writeln!(
                text,
                "file {number}, line {line}: some words to look through"
            );
        }
        if number.is_multiple_of(100) {
            text.push_str("the needle in line 7 is here\n");
        }
        std::fs::write(inner.join(format!("file-{number}.txt")), text)?;
    }
    let tar = |command: &mut Command| prepare(command.args(["-cf", "../tree.tar", "."]));
    tar(stage.command("tar").current_dir(folder))?;
    let git = |arguments: &[&str]| {
        let mut git = stage.command("git");
        git.current_dir(folder);
        git.args(["-c", "user.name=Bench", "-c", "user.email=bench@localhost"]);
        prepare(git.args(arguments))
    };
    git(&["init", "--quiet"])?;
    // Packed now, else git would do so in the background, later.
    git(&["config", "gc.auto", "0"])?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "--message", "A tree"])?;
    git(&["gc", "--quiet"])?;
    // Files as new as the index are read again at every look; one look later they no longer are.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    git(&["update-index", "--refresh", "--really-refresh"])?;
    git(&["status", "--porcelain"])
}

/// Small C files that are compiled one by one. Through pipes, because where temporary files lie
/// differs between inside and outside.
fn build(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut makefile = String::from("CFLAGS = -O1 -pipe\nall:");
    for number in 0..SOURCES {
        let source = format!(
            "int part_{number}(int x)\n{{\n    return x * {number} + {};\n}}\n",
            number % 7
        );
        std::fs::write(folder.join(format!("part_{number}.c")), source)?;
        let _ = write!(makefile, " part_{number}.o");
    }
    makefile.push_str("\n\nclean:\n\trm -f *.o\n");
    std::fs::write(folder.join("Makefile"), makefile)?;
    Ok(())
}
