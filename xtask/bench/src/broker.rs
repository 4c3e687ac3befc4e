//! Actions that are routed to editors: the processor time of one, and what a thousand connected
//! editors change about that and take.

use std::time::Instant;

use anyhow::ensure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::editors::{ANSWER, Editors};
use crate::http::Http;
use crate::hub::{Hub, NODE, NODE_GATE, WARD};
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
    let people = CLIENTS;
    let all = [
        (WARD, Ok(Hub::ward(stage, "few", people)?)),
        (NODE, Hub::node(stage, people)),
        (NODE_GATE, Hub::node_gate(stage, people)),
    ];
    let [ward, node, gate] = measure(stage, CLIENTS, all)?;
    Ok(vec![
        row(
            "(a) an action to an editor and back: processor time",
            Unit::Seconds,
            [&ward, &node],
            |one| &one.processor,
            Target::AtMost(0.65),
        ),
        row(
            "(a) the same: actions, 8 clients at once",
            Unit::PerSecond,
            [&ward, &node],
            |one| &one.rate,
            Target::None,
        ),
        row(
            "(a) the same beside who does all of it: processor time",
            Unit::Seconds,
            [&ward, &gate],
            |one| &one.processor,
            Target::AtMost(0.65),
        ),
        row(
            "(a) the same beside who does all of it: actions, 8 clients at once",
            Unit::PerSecond,
            [&ward, &gate],
            |one| &one.rate,
            Target::None,
        ),
    ])
}

/// With a thousand.
pub(crate) fn thousand(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    // One peer at a time: two of Node's would share the pages of its program.
    let all = [
        (WARD, Ok(Hub::ward(stage, "thousand", PEOPLE)?)),
        (NODE, Hub::node(stage, PEOPLE)),
    ];
    let [ward, node] = measure(stage, EDITORS, all)?;
    let pair = [&ward, &node];
    let all = [
        (WARD, Ok(Hub::ward(stage, "thousand-more", PEOPLE)?)),
        (NODE_GATE, Hub::node_gate(stage, PEOPLE)),
    ];
    let [ward_beside, gate] = measure(stage, EDITORS, all)?;
    let beside = [&ward_beside, &gate];
    Ok(vec![
        row(
            "(b) 1,000 editors connected: an action, p99",
            Unit::Seconds,
            pair,
            |one| &one.slowest,
            Target::AtMost(1.0),
        ),
        row(
            "(b) the same: half of them took less than",
            Unit::Seconds,
            pair,
            |one| &one.middle,
            Target::None,
        ),
        row(
            "(b) the same: processor time",
            Unit::Seconds,
            pair,
            |one| &one.processor,
            Target::AtMost(0.65),
        ),
        row(
            "(b) the same beside who does all of it: an action, p99",
            Unit::Seconds,
            beside,
            |one| &one.slowest,
            Target::AtMost(1.0),
        ),
        row(
            "(b) the same beside who does all of it: processor time",
            Unit::Seconds,
            beside,
            |one| &one.processor,
            Target::AtMost(0.65),
        ),
        row(
            "(c) 1,000 editors connected: memory, share (PSS) of all processes",
            Unit::Bytes,
            pair,
            |one| &one.share,
            Target::AtMost(0.6),
        ),
        row(
            "(c) the same, resident, what is shared counted for each",
            Unit::Bytes,
            pair,
            |one| &one.resident,
            Target::None,
        ),
    ])
}

/// What was measured of somebody, or why it could not be had.
struct Measured {
    name: &'static str,
    figures: Result<Figures, String>,
}

fn row(
    what: &str,
    unit: Unit,
    [ward, peer]: [&Measured; 2],
    part: impl Fn(&Figures) -> &Samples,
    target: Target,
) -> Row {
    let none = Samples::default();
    let ours = ward.figures.as_ref().map_or(&none, &part);
    match &peer.figures {
        Ok(theirs) => Row::against(what, unit, ours, peer.name, part(theirs), target),
        Err(why) => Row::without(what, unit, ours, peer.name, why, target),
    }
}

/// Ward and its peers, in this order.
fn measure<const ALL: usize>(
    stage: &Stage,
    editors: usize,
    all: [(&'static str, anyhow::Result<Hub>); ALL],
) -> anyhow::Result<[Measured; ALL]> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    more_files()?;
    // Editors are asked for files that there are.
    let file = stage.small_file()?;
    let mut candidates = Vec::new();
    let mut measured = all.map(|(name, hub)| Measured {
        name,
        figures: had(hub).map(|hub| {
            candidates.push(hub);
            Figures::default()
        }),
    });
    let candidates: Vec<Candidate> = candidates
        .into_iter()
        .map(|hub| with_editors(stage, &runtime, hub, editors))
        .collect::<anyhow::Result<_>>()?;
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
            let mut there = measured
                .iter_mut()
                .filter_map(|one| one.figures.as_mut().ok());
            let Some(figures) = there.nth(at).filter(|_| round > 0) else {
                continue;
            };
            let count = seconds.len() as f64;
            figures.processor.add(used / count);
            figures.rate.add(count / took);
            figures.slowest.add(rank(&seconds, 0.99));
            figures.middle.add(rank(&seconds, 0.5));
            figures.share.add(share_of_tree(pid)?);
            figures.resident.add(resident_of_tree(pid)?);
        }
    }
    Ok(measured)
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
