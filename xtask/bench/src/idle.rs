//! How soon `ward serve` answers, and what it holds in memory when nobody asks for anything.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;

use crate::memory::{resident_of_tree, share_of_tree, tree};
use crate::peers::{CODEX, Codex, FILESYSTEM, Filesystem, OPENHANDS, OpenHands, had};
use crate::read::{FILE, write_file};
use crate::row::{Row, Target, Unit};
use crate::samples::Samples;
use crate::served::Served;
use crate::stage::Stage;

/// How soon it has to answer, and what its processes may hold together.
const READY: Target = Target::Below(0.2);
const MOST: Target = Target::Below(30e6);
/// Who holds the same this often in a row has come to rest.
const STILL: usize = 4;
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    write_file(stage)?;
    let (mut first, mut again) = (Samples::default(), Samples::default());
    let (mut resident, mut share, mut used) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..=stage.rounds(12) {
        // Another each time: to Ward one that is suddenly empty is one that somebody was at.
        let data = stage.scratch(&format!("idle-{round}"))?;
        let new = start(stage, &data)?;
        let known = start(stage, &data)?;
        if round == 0 {
            continue;
        }
        first.add(new.ready);
        again.add(known.ready);
        resident.add(known.resident);
        share.add(known.share);
        used.add(known.used);
    }
    let alone = |what, unit, samples, target| Row::alone(what, unit, samples, target);
    let mut rows = vec![
        alone(
            "(f) `ward serve` ready, first start",
            Unit::Seconds,
            &first,
            READY,
        ),
        alone(
            "(f) `ward serve` ready, later starts",
            Unit::Seconds,
            &again,
            READY,
        ),
        alone(
            "(f) its idle process tree, resident",
            Unit::Bytes,
            &resident,
            MOST,
        ),
        alone(
            "(f) its idle process tree, share (PSS)",
            Unit::Bytes,
            &share,
            Target::None,
        ),
        alone(
            "(f) after a read and a command, resident",
            Unit::Bytes,
            &used,
            Target::None,
        ),
    ];
    let what = "(f) its idle process tree, resident";
    for (name, theirs) in peers(stage) {
        rows.push(match theirs {
            Ok(held) => {
                let mut theirs = Samples::default();
                theirs.add(held);
                Row::against(what, Unit::Bytes, &resident, name, &theirs, Target::None)
            }
            Err(why) => Row::without(what, Unit::Bytes, &resident, name, &why, Target::None),
        });
    }
    Ok(rows)
}

struct Started {
    ready: f64,
    resident: f64,
    share: f64,
    used: f64,
}

fn start(stage: &Stage, data: &Path) -> anyhow::Result<Started> {
    let served = Served::start(stage, data)?;
    // The server, and the runtime server that it looks after.
    let resident = at_rest(served.pid(), 2)?;
    let share = share_of_tree(served.pid())?;
    let mut http = served.connect(stage)?;
    for (action, params) in [
        ("fs.read", json!({"path": FILE})),
        ("terminal.run", json!({"argv": ["/bin/true"]})),
    ] {
        let body = json!({"action": action, "params": params, "role": "backend"});
        http.ask("POST", "/actions", &body.to_string())?;
    }
    Ok(Started {
        ready: served.ready,
        resident,
        share,
        used: at_rest(served.pid(), 2)?,
    })
}

/// What a tree of at least so many processes holds, once that does not change any more.
fn at_rest(pid: u32, processes: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let (mut held, mut still) = (0.0, 0);
    while still < STILL {
        if began.elapsed() > PATIENCE {
            bail!("it does not come to rest");
        }
        std::thread::sleep(LOOK);
        let now = resident_of_tree(pid)?;
        let same = now == held && tree(pid)?.len() >= processes;
        still = if same { still + 1 } else { 0 };
        held = now;
    }
    Ok(held)
}

/// What the peers hold.
fn peers(stage: &Stage) -> [(&'static str, Result<f64, String>); 3] {
    let codex = Codex::start(stage).and_then(|peer| at_rest(peer.pid(), 1));
    let openhands = OpenHands::start(stage).and_then(|peer| at_rest(peer.pid(), 1));
    let filesystem = Filesystem::start(stage, FILE).and_then(|peer| at_rest(peer.pid(), 1));
    [
        (CODEX, had(codex)),
        (OPENHANDS, had(openhands)),
        (FILESYSTEM, had(filesystem)),
    ]
}
