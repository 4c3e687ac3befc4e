//! A hundred conversations at once, with three tool turns each: how long they take, and how much
//! memory their host holds meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::agents::{AGENTS, Agents};
use crate::converse::Converse;
use crate::double::{self, Script};
use crate::memory::{resident_of_tree, share_of_tree};
use crate::peers::had;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::client;
use crate::stage::Stage;

const AT_ONCE: usize = 100;
const SCRIPT: Script = Script::Tools(3);
/// How many hundreds come before the one that counts.
const WARM: usize = 3;
/// How often memory is looked at while they talk.
const LOOK: Duration = Duration::from_millis(5);

/// What Ward may take of what the peer takes.
const FIFTH: Target = Target::AtMost(0.2);

/// What one host took.
#[derive(Debug, Default)]
struct Figures {
    slowest: Samples,
    middle: Samples,
    share: Samples,
    resident: Samples,
}

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let file = stage.small_file()?;
    let runtime = client()?;
    let double = runtime.block_on(double::start(file))?;
    let mut figures = [Figures::default(), Figures::default()];
    let mut missing = None;
    // The first round only shows that it works.
    for round in 0..=stage.rounds(9) {
        for at in order(round, 2) {
            // A new one each time: what one held before is not what these hundred take.
            let agents = match at {
                0 => Agents::ward(stage, double, &format!("hundred-{round}"))?,
                _ => match had(Agents::node(stage, double)) {
                    Ok(agents) => agents,
                    Err(why) => {
                        missing = Some(why);
                        continue;
                    }
                },
            };
            // Warm: compiled, connected, with its caches filled.
            for _ in 0..WARM {
                runtime.block_on(wave(&agents))?;
            }
            let seconds = runtime.block_on(wave(&agents))?;
            let held = held_while(&agents, || runtime.block_on(wave(&agents)))?;
            if round > 0 {
                let figures = &mut figures[at];
                figures.slowest.add(rank(&seconds, 0.99));
                figures.middle.add(rank(&seconds, 0.5));
                figures.share.add(held.share);
                figures.resident.add(held.resident);
            }
        }
    }
    Ok(rows(&figures, missing.as_deref()))
}

fn rows([ward, node]: &[Figures; 2], missing: Option<&str>) -> Vec<Row> {
    let row = |what: &str, unit, ours: &Samples, theirs: &Samples, target| match missing {
        None => Row::against(what, unit, ours, AGENTS, theirs, target),
        Some(why) => Row::without(what, unit, ours, AGENTS, why, target),
    };
    vec![
        row(
            "(c) 100 sessions at once, three tool turns each: p99",
            Unit::Seconds,
            &ward.slowest,
            &node.slowest,
            FIFTH,
        ),
        row(
            "(c) the same: half of them took less than",
            Unit::Seconds,
            &ward.middle,
            &node.middle,
            Target::None,
        ),
        row(
            "(c) the most memory meanwhile, share (PSS) of all processes",
            Unit::Bytes,
            &ward.share,
            &node.share,
            FIFTH,
        ),
        row(
            "(c) the same, resident, what is shared counted for each",
            Unit::Bytes,
            &ward.resident,
            &node.resident,
            Target::None,
        ),
    ]
}

/// How long each of a hundred took that began together.
async fn wave(agents: &Agents) -> anyhow::Result<Vec<f64>> {
    let connections = (0..AT_ONCE).map(|_| Converse::connect(agents.host()));
    let mut connections = try_join_all(connections).await?;
    let talks = connections.iter_mut().map(|one| one.about(SCRIPT));
    let heard = try_join_all(talks).await?;
    for heard in &heard {
        heard.check()?;
    }
    Ok(heard.iter().map(|heard| heard.seconds).collect())
}

#[derive(Debug, Default)]
struct Held {
    share: f64,
    resident: f64,
}

/// The most that was held while something happened.
fn held_while<T>(
    agents: &Agents,
    happens: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<Held> {
    let over = AtomicBool::new(false);
    let pid = agents.pid();
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = Held::default();
            while !over.load(Ordering::Relaxed) {
                most.share = most.share.max(share_of_tree(pid)?);
                most.resident = most.resident.max(resident_of_tree(pid)?);
                std::thread::sleep(LOOK);
            }
            anyhow::Ok(most)
        });
        let happened = happens();
        over.store(true, Ordering::Relaxed);
        let held = looking.join();
        happened?;
        held.unwrap_or_else(|_| anyhow::bail!("memory could not be looked at"))
    })
}

/// The value that this part of them does not exceed.
pub(crate) fn rank(seconds: &[f64], part: f64) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * part).ceil() as usize;
    sorted
        .get(place.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_ninety_ninth_is_the_p99() {
        let seconds: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((rank(&seconds, 0.99), rank(&seconds, 0.5)), (99.0, 50.0));
    }
}
