//! What an idle server holds in memory.

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::row::{Row, Target, Unit};
use crate::samples::Samples;
use crate::server::{Server, client};
use crate::stage::Stage;

/// The most that an idle server may hold.
const MOST: f64 = 10e6;

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (mut resident, mut share) = (Samples::default(), Samples::default());
    let (mut tree, mut node) = (Samples::default(), Samples::default());
    client()?.block_on(async {
        for _ in 0..stage.rounds(7) {
            let server = Server::start(stage.runtime("ward")).await?;
            let pid = server.pid()?;
            resident.add(field(&format!("/proc/{pid}/status"), "VmRSS:")?);
            share.add(field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?);
            server
                .execute("terminal.run", &json!({"argv": ["/bin/true"]}))
                .await?;
            tree.add(resident_of_tree(pid)?);
            let peer = Server::start(stage.node()).await?;
            node.add(field(&format!("/proc/{}/status", peer.pid()?), "VmRSS:")?);
        }
        anyhow::Ok(())
    })?;
    let peer = "Node, vscode-jsonrpc";
    let alone = |what, samples, target| Row::alone(what, Unit::Bytes, samples, target);
    Ok(vec![
        Row::against(
            "(d) idle server, resident",
            Unit::Bytes,
            &resident,
            peer,
            &node,
            Target::Below(MOST),
        ),
        alone("(d) idle server, its share (PSS)", &share, Target::None),
        alone(
            "(d) with an open room, all processes, resident",
            &tree,
            Target::None,
        ),
    ])
}

/// Adds up a process and all below it. What they share is counted for each.
pub(crate) fn resident_of_tree(pid: u32) -> anyhow::Result<f64> {
    sum_of_tree(pid, "status", "VmRSS:")
}

/// The same, with what is shared counted once.
pub(crate) fn share_of_tree(pid: u32) -> anyhow::Result<f64> {
    sum_of_tree(pid, "smaps_rollup", "Pss:")
}

fn sum_of_tree(pid: u32, file: &str, name: &str) -> anyhow::Result<f64> {
    let held = tree(pid)?
        .into_iter()
        // One that is ending holds no memory any more, and is soon gone altogether.
        .filter_map(|pid| field(&format!("/proc/{pid}/{file}"), name).ok());
    Ok(held.sum())
}

/// A process and all below it.
pub(crate) fn tree(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks {
            // A thread may end while it is looked at.
            if let Ok(children) = numbers(&task?.path().join("children")) {
                found.extend(children);
            }
        }
    }
    Ok(found)
}

fn numbers(path: &Path) -> anyhow::Result<Vec<u32>> {
    let text = std::fs::read_to_string(path)?;
    let numbers = text.split_whitespace().map(str::parse);
    numbers.collect::<Result<_, _>>().context("no pid")
}

/// A line of a file below /proc, in bytes.
fn field(path: &str, name: &str) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kilobytes| kilobytes.parse::<f64>().ok())
        .map(|kilobytes| kilobytes * 1024.0)
        .with_context(|| format!("{path} has no {name}"))
}
