//! Processor time of conversations: a turn in which a tool is called, and a word of an answer.

use std::time::Duration;

use futures_util::future::try_join_all;

use crate::agents::{AGENTS, Agents};
use crate::converse::Converse;
use crate::double::{self, Script};
use crate::peers::had;
use crate::processor;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::client;
use crate::stage::Stage;

/// What Ward may take of what the peer takes.
const FIFTH: Target = Target::AtMost(0.2);

/// How many conversations at once, how many one after the other in each, and what each is.
#[derive(Debug, Clone, Copy)]
struct Load {
    at_once: usize,
    in_a_row: usize,
    script: Script,
    /// What a conversation has of what is counted.
    counted: usize,
}

/// A turn with a call, and all that belongs to it.
pub(crate) fn turns(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let turns = 3;
    let load = Load {
        at_once: 1,
        in_a_row: stage.often(300),
        script: Script::Tools(turns),
        counted: turns,
    };
    let what = "(a) a short tool turn: processor time";
    Ok(vec![measure(stage, "turns", what, load, FIFTH)?])
}

/// A word of a long answer, from the provider's chunk to the client's event.
pub(crate) fn deltas(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let words = stage.often(2000);
    let load = |pause| Load {
        at_once: 4,
        in_a_row: 1,
        script: Script::Words(words, pause),
        counted: words,
    };
    let apart = load(Duration::from_millis(2));
    let mut at_once = load(Duration::ZERO);
    at_once.in_a_row = 3;
    Ok(vec![
        measure(
            stage,
            "apart",
            "(b) a streamed delta, one every 2 ms: processor time",
            apart,
            FIFTH,
        )?,
        measure(
            stage,
            "at-once",
            "(b) a streamed delta, as fast as they are taken: processor time",
            at_once,
            FIFTH,
        )?,
    ])
}

/// `name` is the data folder's: to Ward one that is suddenly empty is one that somebody was at.
fn measure(
    stage: &Stage,
    name: &str,
    what: &str,
    load: Load,
    target: Target,
) -> anyhow::Result<Row> {
    let file = stage.small_file()?;
    client()?.block_on(async {
        let double = double::start(file).await?;
        let ward = Agents::ward(stage, double, name)?;
        let node = had(Agents::node(stage, double));
        let mut candidates = vec![ward];
        let missing = match node {
            Ok(node) => {
                candidates.push(node);
                None
            }
            Err(why) => Some(why),
        };
        let mut samples = [Samples::default(), Samples::default()];
        for round in 0..=stage.rounds(7) {
            for at in order(round, candidates.len()) {
                let took = take(&candidates[at], load).await?;
                if round > 0 {
                    samples[at].add(took);
                }
            }
        }
        let [ours, theirs] = &samples;
        Ok(match missing {
            None => Row::against(what, Unit::Seconds, ours, AGENTS, theirs, target),
            Some(why) => Row::without(what, Unit::Seconds, ours, AGENTS, &why, target),
        })
    })
}

/// The processor time of all its processes, for each of what is counted.
async fn take(agents: &Agents, load: Load) -> anyhow::Result<f64> {
    let before = processor::of_tree(agents.pid())?;
    let talks = (0..load.at_once).map(|_| async {
        let mut converse = Converse::connect(agents.host()).await?;
        let mut heard = Vec::with_capacity(load.in_a_row);
        for _ in 0..load.in_a_row {
            heard.push(converse.about(load.script).await?);
        }
        anyhow::Ok(heard)
    });
    let heard = try_join_all(talks).await?;
    let used = processor::of_tree(agents.pid())? - before;
    for heard in heard.iter().flatten() {
        heard.check()?;
    }
    Ok(used / (load.at_once * load.in_a_row * load.counted) as f64)
}
