//! The whole path: `POST /actions` with `terminal.run` of `/bin/true`, decided, sandboxed and
//! recorded, beside peers that run a command for whoever asks.

use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::peers::{CODEX, Codex, OPENHANDS, OpenHands, had};
use crate::row::{Row, Target, Unit};
use crate::samples::{Turn, interleave};
use crate::served::Served;
use crate::stage::Stage;

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let served = Served::start(stage, &stage.scratch("act")?)?;
    let mut http = served.connect(stage)?;
    let body = json!({
        "action": "terminal.run",
        "params": {"argv": ["/bin/true"]},
        "role": "backend",
    });
    let body = body.to_string();
    let mut codex = had(Codex::start(stage));
    let mut openhands = had(OpenHands::start(stage));
    let mut turns: Vec<Turn<'_>> = vec![Box::new(|| {
        let started = Instant::now();
        let answer = http.ask("POST", "/actions", &body)?;
        let took = started.elapsed().as_secs_f64();
        let answer: Value = serde_json::from_str(&answer)?;
        let result = &answer["outcome"]["result"];
        ensure!(
            result["exit_code"] == 0 && result["sandbox"].is_object(),
            "it did not run in the sandbox: {answer}"
        );
        Ok(vec![took])
    })];
    if let Ok(peer) = &mut codex {
        turns.push(Box::new(|| {
            let started = Instant::now();
            peer.run()?;
            Ok(vec![started.elapsed().as_secs_f64()])
        }));
    }
    if let Ok(peer) = &mut openhands {
        turns.push(Box::new(|| {
            let started = Instant::now();
            peer.run()?;
            let took = started.elapsed().as_secs_f64();
            peer.forget()?;
            Ok(vec![took])
        }));
    }
    let mut samples = interleave(stage.rounds(150), &mut turns)?.into_iter();
    drop(turns);
    let ours = samples.next().unwrap_or_default();
    let mut row = |peer: &str, missing: Option<&String>, target| {
        let what = "(e) `POST /actions`, `terminal.run` of /bin/true";
        match missing {
            None => {
                let theirs = samples.next().unwrap_or_default();
                Row::against(what, Unit::Seconds, &ours, peer, &theirs, target)
            }
            Some(why) => Row::without(what, Unit::Seconds, &ours, peer, why, target),
        }
    };
    Ok(vec![
        row(CODEX, codex.as_ref().err(), Target::AtMost(0.125)),
        row(OPENHANDS, openhands.as_ref().err(), Target::AtMost(1.0)),
    ])
}
