//! `terminal.run` of `/bin/true` in an open room, against the same request unconfined.

use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::{Server, client};
use crate::stage::Stage;

/// Every layer that the test build can leave out.
const LAYERS: &str = "user,root,network,pids,ipc,landlock,seccomp,capabilities,descriptors,\
    environment,limits,protection,sweep";

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut layers_off = stage.runtime("ward-layers-off");
    layers_off.env("WARD_TEST_LAYERS_OFF", LAYERS);
    let mut plain = stage.ours("bench");
    plain.arg("peer");
    let candidates = vec![stage.runtime("ward"), plain, layers_off, stage.node()];
    let [ward, plain, layers_off, node] = &turns(stage, candidates)?[..] else {
        anyhow::bail!("a candidate is missing");
    };
    let row = |peer, theirs, target| {
        let what = "(b) `terminal.run` of /bin/true, room open";
        Row::against(what, Unit::Seconds, ward, peer, theirs, target)
    };
    Ok(vec![
        row("the same request, plain spawn", plain, Target::AtMost(2.0)),
        row("Ward's own path, layers off", layers_off, Target::None),
        row("Node, vscode-jsonrpc, plain spawn", node, Target::None),
    ])
}

/// One request to each server in turn.
fn turns(stage: &Stage, candidates: Vec<Command>) -> anyhow::Result<Vec<Samples>> {
    let params = json!({"argv": ["/bin/true"]});
    client()?.block_on(async {
        let mut servers = Vec::new();
        for command in candidates {
            let server = Server::start(command).await?;
            // Opens the room.
            server.execute("terminal.run", &params).await?;
            servers.push(server);
        }
        let mut samples = vec![Samples::default(); servers.len()];
        for round in 0..=stage.rounds(300) {
            for at in order(round, servers.len()) {
                let started = Instant::now();
                servers[at].execute("terminal.run", &params).await?;
                if round > 0 {
                    samples[at].add(started.elapsed().as_secs_f64());
                }
            }
        }
        Ok(samples)
    })
}
