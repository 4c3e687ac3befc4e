//! A cell that is executed: the whole path through Ward, beside Python's jupyter_client alone on the
//! same kernel.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::lines::Lines;
use crate::notebook::{Agent, Following, Notebook, environment};
use crate::peers::had;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::served::Served;
use crate::stage::Stage;

const WHAT: &str = "(c) `1+1` on ipykernel, from request to completed";
const JUPYTER: &str = "jupyter_client alone";
const WANTED: Target = Target::AtMost(1.5);
/// Executions of one turn.
const IN_A_ROW: usize = 5;

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    if environment(stage).is_none() {
        let none = Samples::default();
        let why = "not installed; PyPI's package is ipykernel";
        return Ok(vec![Row::without(
            WHAT,
            Unit::Seconds,
            &none,
            JUPYTER,
            why,
            WANTED,
        )]);
    }
    let mut ward = Ward::start(stage)?;
    let mut jupyter = had(Jupyter::start(stage));
    let mut figures: [Samples; 2] = Default::default();
    for round in 0..=stage.rounds(40) {
        for at in order(round, figures.len()) {
            let seconds = match (at, &mut jupyter) {
                (0, _) => ward.execute(IN_A_ROW)?,
                (_, Ok(jupyter)) => jupyter.execute(IN_A_ROW)?,
                (_, Err(_)) => Vec::new(),
            };
            if round > 0 {
                seconds.into_iter().for_each(|took| figures[at].add(took));
            }
        }
    }
    let [ours, theirs] = &figures;
    Ok(vec![match jupyter {
        Ok(_) => Row::against(WHAT, Unit::Seconds, ours, JUPYTER, theirs, WANTED),
        Err(why) => Row::without(WHAT, Unit::Seconds, ours, JUPYTER, &why, WANTED),
    }])
}

/// `ward serve`, and the agent with a kernel in the sandbox.
struct Ward {
    // The order is the order of the end: the agent first.
    _agent: Agent,
    notebook: Notebook,
    following: Following,
    _served: Served,
    runs: usize,
}

impl Ward {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let served = Served::start(stage, &stage.scratch("cells")?)?;
        let mut notebook = Notebook::make(stage, &served)?;
        let from = notebook.post(&[json!({
            "kind": "cell.created", "cell_id": "a", "cell_type": "code", "place": "V",
            "source": "1+1",
        })])?;
        let agent = notebook.agent(stage, &served, "python")?;
        let following = Following::open(stage, &served, &notebook.path(), from)?;
        Ok(Self {
            _agent: agent,
            notebook,
            following,
            _served: served,
            runs: 0,
        })
    }

    /// Executes the cell so often, one after the other: asked for over HTTP, decided by the gate,
    /// assigned, run, and seen completed on the stream.
    fn execute(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let mut seconds = Vec::with_capacity(count);
        for _ in 0..count {
            self.runs += 1;
            let id = format!("run-{}", self.runs);
            let wanted = json!({
                "kind": "execution.requested", "execution_id": id, "cell_id": "a",
            });
            let began = Instant::now();
            self.notebook.post(&[wanted])?;
            let shown = self.following.until("output.result", &id)?;
            let done = self.following.until("execution.completed", &id)?;
            seconds.push(began.elapsed().as_secs_f64());
            let result = &shown["event"]["bundle"]["data"]["text/plain"]["inline"];
            ensure!(
                result == "2" && done["event"]["outcome"] == "ok",
                "it said {shown}, {done}"
            );
        }
        Ok(seconds)
    }
}

/// Python's client.
struct Jupyter(Lines);

impl Jupyter {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let environment = environment(stage).context("there is no kernel")?;
        let mut command = stage.command(environment.join("bin/python"));
        command.arg(stage.path("jupyter.py"));
        let program = environment.join("bin/python").canonicalize()?;
        let home = program.ancestors().nth(2).context("Python has no home")?;
        // It may have been built to be somewhere else.
        command.env("LD_LIBRARY_PATH", home.join("lib"));
        let mut jupyter = Self(Lines::start(command)?);
        jupyter.execute(1).context("it does not start")?;
        Ok(jupyter)
    }

    fn execute(&mut self, count: usize) -> anyhow::Result<Vec<f64>> {
        let answer = self.0.ask("execute", &json!({"count": count}))?;
        let seconds = answer["seconds"].as_array().context("no seconds")?;
        let seconds = seconds.iter().map(|one| one.as_f64().context("no second"));
        seconds.collect()
    }
}
