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
fn resident_of_tree(pid: u32) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        // One that is ending holds no memory any more, and is soon gone altogether.
        let Ok(resident) = field(&format!("/proc/{pid}/status"), "VmRSS:") else {
            continue;
        };
        sum += resident;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let children = task?.path().join("children");
            waiting.extend(numbers(&children)?);
        }
    }
    Ok(sum)
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
