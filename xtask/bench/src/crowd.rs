//! A thousand open questions: does an action that has nothing to do with them take longer?

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;

use crate::processor;
use crate::read::{reads, write_file};
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::{Server, client};
use crate::stage::Stage;

const QUESTIONS: u64 = 1_000;
/// How long it may take until all of them are asked.
const PATIENCE: Duration = Duration::from_secs(120);
/// It is at rest when it took no time between so many looks, which are so far apart.
const STILL: u32 = 5;
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    write_file(stage)?;
    let (asked, quiet) = (stage.scratch("asked")?, stage.scratch("quiet")?);
    client()?.block_on(async {
        let asked = Server::start(stage.gate(&asked)).await?;
        let quiet = Server::start(stage.gate(&quiet)).await?;
        // None of them is ever answered; they go with the server.
        for _ in 0..QUESTIONS {
            let outside = stage.path("home").join("letter");
            let params = json!({"path": outside, "content": "a letter\n"});
            asked.begin("fs.write", &params, "backend");
        }
        wait(&asked).await?;
        // What it took to ask them is over, too.
        rest(&asked).await?;
        let servers = [&asked, &quiet];
        let mut samples: [Samples; 2] = Default::default();
        for round in 0..=stage.rounds(150) {
            for at in order(round, servers.len()) {
                let took = reads(servers[at]).await?;
                if round > 0 {
                    took.into_iter().for_each(|sample| samples[at].add(sample));
                }
            }
        }
        ensure!(
            open_questions(&asked).await? == QUESTIONS,
            "not all questions stayed open"
        );
        let [crowded, alone] = &samples;
        let what = "(d) the same with 1,000 questions open";
        let target = Target::AtMost(1.1);
        Ok(vec![Row::against(
            what,
            Unit::Seconds,
            crowded,
            "with none open",
            alone,
            target,
        )])
    })
}

async fn wait(server: &Server) -> anyhow::Result<()> {
    let began = Instant::now();
    while open_questions(server).await? < QUESTIONS {
        ensure!(began.elapsed() < PATIENCE, "the questions are not asked");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Waits until a server has nothing to do any more.
async fn rest(server: &Server) -> anyhow::Result<()> {
    let (pid, began) = (server.pid()?, Instant::now());
    let (mut used, mut still) = (0.0, 0);
    while still < STILL {
        ensure!(began.elapsed() < PATIENCE, "it does not come to rest");
        tokio::time::sleep(LOOK).await;
        let now = processor::of_process(pid)?;
        still = if now == used { still + 1 } else { 0 };
        used = now;
    }
    Ok(())
}

async fn open_questions(server: &Server) -> anyhow::Result<u64> {
    let status = server.status().await?;
    Ok(status["open_questions"].as_u64().unwrap_or_default())
}
