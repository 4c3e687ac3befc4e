//! A notebook of 100,000 events: what a replica that follows it holds, and how soon it is opened by
//! a Ward that was just started.

use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::memory::{resident_of_tree, share_of_tree};
use crate::notebook::{Agent, Following, Notebook};
use crate::row::{Row, Target, Unit};
use crate::samples::Samples;
use crate::served::Served;
use crate::stage::Stage;

/// The events, the cells that they are about, and how many are appended at once.
const EVENTS: usize = 100_000;
const CELLS: usize = 1_000;
const AT_ONCE: usize = 200;
/// How soon it has to be open, and what a replica of it may hold.
const SOON: Target = Target::Below(1.0);
const MOST: Target = Target::Below(100e6);

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let data = stage.scratch("long")?;
    let served = Served::start(stage, &data)?;
    let mut notebook = Notebook::make(stage, &served)?;
    // Large enough that all of it is edits of these cells, however few events are wanted.
    let events = stage.often(EVENTS).max(2 * CELLS);
    let (mut followed, mut followed_share) = (Samples::default(), Samples::default());
    let mut opened = Samples::default();
    let agent = notebook.agent(stage, &served, "echo")?;
    let mut head = append(&mut notebook, events)?;
    // When it has run a cell, it has taken in all that came before.
    run(stage, &served, &mut notebook, &mut head)?;
    hold(&agent, &mut followed, Some(&mut followed_share))?;
    drop(agent);
    for _ in 0..stage.rounds(5) {
        let agent = notebook.agent(stage, &served, "echo")?;
        run(stage, &served, &mut notebook, &mut head)?;
        hold(&agent, &mut opened, None)?;
    }
    let path = notebook.path();
    drop(served);

    let (mut cold, mut answered) = (Samples::default(), Samples::default());
    for _ in 0..stage.rounds(11) {
        let began = Instant::now();
        let served = Served::start(stage, &data)?;
        let mut http = served.connect(stage)?;
        let asked = Instant::now();
        let answer = http.ask("GET", &path, "")?;
        answered.add(asked.elapsed().as_secs_f64());
        cold.add(began.elapsed().as_secs_f64());
        let answer: Value = serde_json::from_str(&answer)?;
        let seen = answer["seq"].as_u64().unwrap_or_default();
        ensure!(seen >= head, "{seen} of {head} events are there");
    }
    let alone = |what: &str, unit, samples, target| Row::alone(what, unit, samples, target);
    Ok(vec![
        alone(
            "(b) 100,000 events: from the start of `ward serve` to the open notebook",
            Unit::Seconds,
            &cold,
            SOON,
        ),
        alone(
            "(b) the same: the request for it alone",
            Unit::Seconds,
            &answered,
            Target::None,
        ),
        alone(
            "(d) a replica that followed 100,000 events, resident",
            Unit::Bytes,
            &followed,
            MOST,
        ),
        alone(
            "(d) the same, share (PSS)",
            Unit::Bytes,
            &followed_share,
            Target::None,
        ),
        alone(
            "(d) a replica that was opened after them, resident",
            Unit::Bytes,
            &opened,
            MOST,
        ),
    ])
}

/// Cells, then edits of one after the other; where the notebook is then.
fn append(notebook: &mut Notebook, events: usize) -> anyhow::Result<u64> {
    let all: Vec<usize> = (0..events).collect();
    let mut head = 0;
    for some in all.chunks(AT_ONCE) {
        let events: Vec<Value> = some.iter().copied().map(event).collect();
        head = notebook.post(&events)?;
    }
    Ok(head)
}

fn event(number: usize) -> Value {
    let id = format!("c{}", number % CELLS);
    let source = format!(
        "# Step {number}: what was measured yesterday, by station\n\
        frame = read(\"stations.csv\", since={number})\nframe.groupby(\"station\").mean()\n"
    );
    match number < CELLS {
        true => json!({
            "kind": "cell.created", "cell_id": id, "cell_type": "code",
            // No place ends in a zero.
            "place": format!("{number:05}V"), "source": source,
        }),
        false => json!({"kind": "cell.source", "cell_id": id, "source": source}),
    }
}

/// Runs a cell on the runtime that is there.
fn run(
    stage: &Stage,
    served: &Served,
    notebook: &mut Notebook,
    head: &mut u64,
) -> anyhow::Result<()> {
    let mut following = Following::open(stage, served, &notebook.path(), *head)?;
    let id = format!("run-{head}");
    *head = notebook.post(&[json!({
        "kind": "execution.requested", "execution_id": id, "cell_id": "c0",
    })])?;
    let done = following.until("execution.completed", &id)?;
    ensure!(done["event"]["outcome"] == "ok", "it said {done}");
    Ok(())
}

fn hold(agent: &Agent, resident: &mut Samples, share: Option<&mut Samples>) -> anyhow::Result<()> {
    resident.add(resident_of_tree(agent.pid())?);
    if let Some(share) = share {
        share.add(share_of_tree(agent.pid())?);
    }
    Ok(())
}
