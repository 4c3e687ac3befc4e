//! `fs.read` of 1 KiB through the gate: decided, recorded, done. Beside the same request to the
//! runtime server itself, and beside a file system server of the Model Context Protocol.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;

use crate::peers::{FILESYSTEM, Filesystem, had};
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::{Server, client};
use crate::stage::{Effort, Stage};

/// What the gate adds is at most twice the time of the read itself.
const WITH_THE_GATE: Target = Target::AtMost(3.0);
const IN_FLIGHT: usize = 64;
/// Reads in one turn, one after the other.
const READS: usize = 20;

/// The file that is read.
pub(crate) const FILE: &str = "kibibyte";

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    write_file(stage)?;
    let data = stage.scratch("read")?;
    client()?.block_on(async {
        let gate = Server::start(stage.gate(&data)).await?;
        let runtime = Server::start(stage.runtime("ward")).await?;
        let mut rows = one_by_one(stage, &gate, &runtime).await?;
        rows.insert(1, together(stage, &gate, &runtime).await?);
        Ok(rows)
    })
}

pub(crate) fn write_file(stage: &Stage) -> anyhow::Result<()> {
    let line = "A line of sixty-four bytes, as many as it takes for a kibibyte.\n";
    Ok(std::fs::write(stage.work().join(FILE), line.repeat(16))?)
}

/// Reads the file once.
pub(crate) async fn read(server: &Server) -> anyhow::Result<()> {
    server.execute("fs.read", &json!({"path": FILE})).await
}

/// Reads a few times, one after the other; what each took.
pub(crate) async fn reads(server: &Server) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::with_capacity(READS);
    for _ in 0..READS {
        let started = Instant::now();
        read(server).await?;
        took.push(started.elapsed().as_secs_f64());
    }
    Ok(took)
}

async fn one_by_one(stage: &Stage, gate: &Server, runtime: &Server) -> anyhow::Result<Vec<Row>> {
    let mut filesystem = had(Filesystem::start(stage, FILE));
    let mut samples: [Samples; 3] = Default::default();
    for round in 0..=stage.rounds(100) {
        for at in order(round, samples.len()) {
            let took = match (at, &mut filesystem) {
                (0, _) => reads(gate).await?,
                (1, _) => reads(runtime).await?,
                (_, Ok(peer)) => reads_of(peer)?,
                (_, Err(_)) => Vec::new(),
            };
            if round > 0 {
                took.into_iter().for_each(|sample| samples[at].add(sample));
            }
        }
    }
    let [ours, direct, theirs] = &samples;
    let what = "(c) `fs.read` of 1 KiB through the gate, one at a time";
    let target = Target::AtMost(0.7);
    Ok(vec![
        Row::against(what, Unit::Seconds, ours, DIRECT, direct, WITH_THE_GATE),
        match &filesystem {
            Ok(_) => Row::against(what, Unit::Seconds, ours, FILESYSTEM, theirs, target),
            Err(why) => Row::without(what, Unit::Seconds, ours, FILESYSTEM, why, target),
        },
    ])
}

const DIRECT: &str = "ward runtime, direct";

fn reads_of(peer: &mut Filesystem) -> anyhow::Result<Vec<f64>> {
    let mut took = Vec::with_capacity(READS);
    for _ in 0..READS {
        let started = Instant::now();
        peer.read()?;
        took.push(started.elapsed().as_secs_f64());
    }
    Ok(took)
}

async fn together(stage: &Stage, gate: &Server, runtime: &Server) -> anyhow::Result<Row> {
    let servers = [gate, runtime];
    let mut samples: [Samples; 2] = Default::default();
    for round in 0..=stage.rounds(15) {
        for at in order(round, servers.len()) {
            let took = load(servers[at], time(stage)).await?;
            if round > 0 {
                samples[at].add(took);
            }
        }
    }
    let [ours, direct] = &samples;
    let what = "(c) `fs.read` of 1 KiB through the gate, 64 in flight: time a read";
    let target = WITH_THE_GATE;
    Ok(Row::against(
        what,
        Unit::Seconds,
        ours,
        DIRECT,
        direct,
        target,
    ))
}

fn time(stage: &Stage) -> Duration {
    match stage.effort() {
        Effort::Full => Duration::from_millis(500),
        Effort::Quick => Duration::from_millis(100),
    }
}

/// Keeps so many reads under way; the time of one.
async fn load(server: &Server, time: Duration) -> anyhow::Result<f64> {
    let done = Cell::new(0_u32);
    let started = Instant::now();
    let reading = (0..IN_FLIGHT).map(|_| async {
        while started.elapsed() < time {
            read(server).await?;
            done.set(done.get() + 1);
        }
        anyhow::Ok(())
    });
    try_join_all(reading).await?;
    Ok(started.elapsed().as_secs_f64() / f64::from(done.get()))
}
