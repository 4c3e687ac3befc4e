//! Actions that are routed to editors: the processor time of one, and what a thousand connected
//! editors change about that and take.

use std::time::Instant;

use anyhow::ensure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::editors::{ANSWER, Editors};
use crate::http::Http;
use crate::hub::{Hub, NODE};
use crate::hundred::rank;
use crate::memory::{resident_of_tree, share_of_tree};
use crate::peers::had;
use crate::processor;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::stage::Stage;

/// Clients that ask at once, each for one action after the other.
const CLIENTS: usize = 8;
/// People with editors. One person has a limit, which a thousand editors are beyond.
const PEOPLE: usize = 20;
const EDITORS: usize = 1000;

/// A hub with its editors.
struct Candidate {
    hub: Hub,
    editors: Editors,
}

/// What was measured of one of them.
#[derive(Debug, Default)]
struct Figures {
    processor: Samples,
    rate: Samples,
    slowest: Samples,
    middle: Samples,
    share: Samples,
    resident: Samples,
}

/// With eight editors.
pub(crate) fn actions(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (figures, missing) = measure(stage, "few", CLIENTS, CLIENTS)?;
    let row = rows_of(missing.as_deref());
    let [ward, node] = &figures;
    Ok(vec![
        row(
            "(a) an action to an editor and back: processor time",
            Unit::Seconds,
            [&ward.processor, &node.processor],
            Target::AtMost(0.65),
        ),
        row(
            "(a) the same: actions, 8 clients at once",
            Unit::PerSecond,
            [&ward.rate, &node.rate],
            Target::None,
        ),
    ])
}

/// With a thousand.
pub(crate) fn thousand(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (figures, missing) = measure(stage, "thousand", PEOPLE, EDITORS)?;
    let row = rows_of(missing.as_deref());
    let [ward, node] = &figures;
    Ok(vec![
        row(
            "(b) 1,000 editors connected: an action, p99",
            Unit::Seconds,
            [&ward.slowest, &node.slowest],
            Target::AtMost(1.0),
        ),
        row(
            "(b) the same: half of them took less than",
            Unit::Seconds,
            [&ward.middle, &node.middle],
            Target::None,
        ),
        row(
            "(b) the same: processor time",
            Unit::Seconds,
            [&ward.processor, &node.processor],
            Target::AtMost(0.65),
        ),
        row(
            "(c) 1,000 editors connected: memory, share (PSS) of all processes",
            Unit::Bytes,
            [&ward.share, &node.share],
            Target::AtMost(0.6),
        ),
        row(
            "(c) the same, resident, what is shared counted for each",
            Unit::Bytes,
            [&ward.resident, &node.resident],
            Target::None,
        ),
    ])
}

fn rows_of(missing: Option<&str>) -> impl Fn(&str, Unit, [&Samples; 2], Target) -> Row {
    move |what, unit, [ours, theirs], target| match missing {
        None => Row::against(what, unit, ours, NODE, theirs, target),
        Some(why) => Row::without(what, unit, ours, NODE, why, target),
    }
}

fn measure(
    stage: &Stage,
    name: &str,
    people: usize,
    editors: usize,
) -> anyhow::Result<([Figures; 2], Option<String>)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    more_files()?;
    // Editors are asked for files that there are.
    let file = stage.small_file()?;
    let mut figures = [Figures::default(), Figures::default()];
    let ward = Hub::ward(stage, name, people)?;
    let mut candidates = vec![with_editors(stage, &runtime, ward, editors)?];
    let missing = match had(Hub::node(stage, people)) {
        Ok(node) => {
            candidates.push(with_editors(stage, &runtime, node, editors)?);
            None
        }
        Err(why) => Some(why),
    };
    // The first round warms up.
    for round in 0..=stage.rounds(9) {
        for at in order(round, candidates.len()) {
            let candidate = &candidates[at];
            let often = stage.often(2000);
            let pid = candidate.hub.pid();
            let (before, began) = (processor::of_tree(pid)?, Instant::now());
            let seconds = load(candidate, file, often)?;
            let took = began.elapsed().as_secs_f64();
            let used = processor::of_tree(pid)? - before;
            if round == 0 {
                continue;
            }
            let count = seconds.len() as f64;
            let figures = &mut figures[at];
            figures.processor.add(used / count);
            figures.rate.add(count / took);
            figures.slowest.add(rank(&seconds, 0.99));
            figures.middle.add(rank(&seconds, 0.5));
            figures.share.add(share_of_tree(pid)?);
            figures.resident.add(resident_of_tree(pid)?);
        }
    }
    Ok((figures, missing))
}

/// A thousand editors of each candidate are more files than many systems allow at first.
fn more_files() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, more)?)
}

fn with_editors(
    stage: &Stage,
    runtime: &Runtime,
    hub: Hub,
    editors: usize,
) -> anyhow::Result<Candidate> {
    let each = editors / hub.tokens.len();
    let workspace = stage.work().canonicalize()?;
    let workspace = workspace.to_string_lossy();
    let connecting = Editors::connect(hub.address(), &hub.tokens, each, &workspace);
    let editors = runtime.block_on(connecting)?;
    Ok(Candidate { hub, editors })
}

/// So many actions of each client, one after the other, to one editor after the other of a person's;
/// the seconds of each.
fn load(candidate: &Candidate, file: &str, often: usize) -> anyhow::Result<Vec<f64>> {
    let Candidate { hub, editors } = candidate;
    let address = hub.address();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (token, ids) = &editors.of[client % editors.of.len()];
                scope.spawn(move || {
                    let mut http = Http::connect(address, Some(token.clone()))?;
                    let mut seconds = Vec::with_capacity(often);
                    for runtime in ids.iter().cycle().take(often) {
                        let body = json!({
                            "action": "fs.read",
                            "params": {"path": file},
                            "runtime": runtime,
                        });
                        let began = Instant::now();
                        let answer = http.ask("POST", "/actions", &body.to_string())?;
                        seconds.push(began.elapsed().as_secs_f64());
                        ensure!(answer.contains(ANSWER), "it answered {answer}");
                    }
                    anyhow::Ok(seconds)
                })
            })
            .collect();
        let mut all = Vec::with_capacity(CLIENTS * often);
        for client in clients {
            let seconds = client.join();
            all.extend(seconds.map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        Ok(all)
    })
}
