//! One command in a sandbox that is made for it: `ward exec -- true`, bwrap, codex.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::bail;

use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, Turn, interleave};
use crate::stage::{Stage, prepare};

struct Candidate {
    name: &'static str,
    target: Target,
    command: Result<Command, String>,
}

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let repository = stage.work().join("small-repository");
    if !repository.exists() {
        prepare(
            stage
                .command("git")
                .args(["init", "--quiet"])
                .arg(&repository),
        )?;
    }
    let candidates = vec![
        Candidate {
            name: "bwrap, like policy",
            target: Target::AtMost(1.0),
            command: bwrap(stage, &repository),
        },
        Candidate {
            name: "codex sandbox, its program",
            target: Target::AtMost(0.125),
            command: codex(stage),
        },
        Candidate {
            name: "codex sandbox, as npm starts it",
            target: Target::None,
            command: codex_by_npm(stage),
        },
        Candidate {
            name: "no sandbox",
            target: Target::None,
            command: Ok(stage.command("true")),
        },
    ];
    let mut ward = stage.ours("ward");
    ward.args(["exec", "--", "true"]);
    let mut commands = vec![&mut ward];
    let mut candidates = candidates;
    for candidate in &mut candidates {
        if let Ok(command) = &mut candidate.command {
            commands.push(command);
        }
    }
    for command in &mut commands {
        command.current_dir(&repository);
        prepare(command)?;
    }
    let mut turns: Vec<Turn<'_>> = commands.into_iter().map(turn).collect();
    let mut samples = interleave(stage.rounds(120), &mut turns)?.into_iter();
    drop(turns);
    let ours = samples.next().unwrap_or_default();
    Ok(rows(&ours, &candidates, samples))
}

fn rows(
    ours: &Samples,
    candidates: &[Candidate],
    mut samples: impl Iterator<Item = Samples>,
) -> Vec<Row> {
    let what = "(b) `ward exec -- true`";
    let row = |candidate: &Candidate| {
        let Candidate { name, target, .. } = candidate;
        match &candidate.command {
            Ok(_) => {
                let theirs = samples.next().unwrap_or_default();
                Row::against(what, Unit::Seconds, ours, name, &theirs, *target)
            }
            Err(why) => Row::without(what, Unit::Seconds, ours, name, why, *target),
        }
    };
    candidates.iter().map(row).collect()
}

/// Starts it and waits for its end; nothing else of it counts.
fn turn(command: &mut Command) -> Turn<'_> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Box::new(move || {
        let started = Instant::now();
        let status = command.status()?;
        let took = started.elapsed().as_secs_f64();
        if !status.success() {
            bail!("`{}` failed ({status})", command.get_program().display());
        }
        Ok(vec![took])
    })
}

/// What Ward's wall says, as far as bwrap can say it: the system to read, the workspace to write
/// but for its repository's hooks and settings, an empty home and /tmp, no network, and nothing of
/// the environment.
fn bwrap(stage: &Stage, workspace: &Path) -> Result<Command, String> {
    if !Path::new("/usr/bin/bwrap").exists() {
        return Err("not installed; Debian's package is bubblewrap".into());
    }
    let mut command = stage.command("/usr/bin/bwrap");
    command.args([
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ]);
    for path in ["/usr", "/etc", "/opt"] {
        if Path::new(path).exists() {
            command.args(["--ro-bind", path, path]);
        }
    }
    for path in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        match std::fs::read_link(path) {
            Ok(target) => command.arg("--symlink").arg(target).arg(path),
            Err(_) if Path::new(path).exists() => command.args(["--ro-bind", path, path]),
            Err(_) => &mut command,
        };
    }
    command.args([
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run",
    ]);
    command.arg("--tmpfs").arg(stage.path("home"));
    command.arg("--bind").args([workspace, workspace]);
    for protected in [".git/hooks", ".git/config", ".git/info"] {
        let path = workspace.join(protected);
        if path.exists() {
            command.arg("--ro-bind").args([&path, &path]);
        }
    }
    command
        .arg("--setenv")
        .args([OsString::from("HOME"), stage.path("home").into()]);
    command.args(["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    command.arg("--chdir").arg(workspace);
    command.args(["--", "true"]);
    Ok(command)
}

fn codex(stage: &Stage) -> Result<Command, String> {
    let program = stage.codex();
    sandboxed_by(stage.command(&program), &program)
}

fn codex_by_npm(stage: &Stage) -> Result<Command, String> {
    let script = stage.path("node_modules/@openai/codex/bin/codex.js");
    let mut command = stage.command("node");
    command.arg(&script);
    sandboxed_by(command, &script)
}

fn sandboxed_by(mut command: Command, needs: &Path) -> Result<Command, String> {
    if !needs.exists() {
        return Err("not installed; npm's package is @openai/codex".into());
    }
    command.args(["sandbox", "--", "true"]);
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(command),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or("it failed").to_owned();
            Err(format!("does not work here ({last})"))
        }
        Err(error) => Err(format!("does not start ({error})")),
    }
}
