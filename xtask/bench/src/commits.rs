//! Events appended to a notebook one at a time, beside npm's LiveStore and beside SQLite alone.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use gate::redact::Redactor;
use gate::runtime::Launch;
use gate::{Actor, Gate, GateOptions};
use notebook::{CellId, CellSource, NotebookEvent};
use notebooks::{Notebooks, PostEvents, PostNotebook};
use serde_json::json;
use store_sqlite::{DataFolder, SqliteStore};

use crate::lines::Lines;
use crate::peers::had;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::stage::Stage;

const LIVESTORE: &str = "LiveStore, adapter-node";
const SQLITE: &str = "better-sqlite3, alone";
/// The cell that is edited.
const CELL: &str = "a";

/// Seconds of one commit, and of one until it is kept.
#[derive(Debug, Default)]
struct Figures {
    committed: Samples,
    kept: Samples,
    rate: Samples,
    kept_rate: Samples,
}

impl Figures {
    fn add(&mut self, count: usize, committed: f64, kept: f64) {
        let count = count as f64;
        self.committed.add(committed / count);
        self.kept.add(kept / count);
        self.rate.add(count / committed);
        self.kept_rate.add(count / kept);
    }
}

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut ward = runtime.block_on(Ward::open(stage, &stage.scratch("commits")?))?;
    let mut livestore = had(Peer::start(stage, "livestore", "@livestore/livestore"));
    let mut sqlite = had(Peer::start(stage, "better-sqlite3", "better-sqlite3"));
    let mut figures: [Figures; 3] = Default::default();
    // LiveStore has as much to do with fewer.
    let (many, few) = (stage.often(2000), stage.often(300));
    for round in 0..=stage.rounds(15) {
        for at in order(round, figures.len()) {
            let (count, took) = match (at, &mut livestore, &mut sqlite) {
                (0, ..) => (many, Some(runtime.block_on(ward.commit(many))?)),
                (1, Ok(peer), _) => (few, Some(peer.commit(few)?)),
                (2, _, Ok(peer)) => (many, Some(peer.commit(many)?)),
                _ => (0, None),
            };
            if let (Some((committed, kept)), true) = (took, round > 0) {
                figures[at].add(count, committed, kept);
            }
        }
    }
    let [ward, live, raw] = &figures;
    let row =
        |what, unit, [ours, theirs]: [&Samples; 2], name, missing: Option<&String>, target| {
            match missing {
                None => Row::against(what, unit, ours, name, theirs, target),
                Some(why) => Row::without(what, unit, ours, name, why, target),
            }
        };
    let (no_live, no_raw) = (livestore.as_ref().err(), sqlite.as_ref().err());
    Ok(vec![
        row(
            "(a) one event at a time: commits",
            Unit::PerSecond,
            [&ward.rate, &live.rate],
            LIVESTORE,
            no_live,
            Target::AtLeast(20.0),
        ),
        row(
            "(a) the same, until they are kept",
            Unit::PerSecond,
            [&ward.kept_rate, &live.kept_rate],
            LIVESTORE,
            no_live,
            Target::None,
        ),
        row(
            "(a) one event at a time: time a commit",
            Unit::Seconds,
            [&ward.committed, &raw.committed],
            SQLITE,
            no_raw,
            Target::AtMost(2.0),
        ),
    ])
}

/// A notebook of Ward's, in this process.
struct Ward {
    notebooks: Notebooks<SqliteStore>,
    person: Actor,
    id: String,
    cell: CellId,
    number: u64,
}

impl Ward {
    async fn open(stage: &Stage, folder: &Path) -> anyhow::Result<Self> {
        let data = DataFolder::own(&folder.join("data"), "bench")?;
        let workspace = stage.work().canonicalize()?;
        let kept = notebooks::Options {
            data: data.path().to_owned(),
            lease: Duration::from_secs(60),
            workspace: workspace.clone(),
        };
        let options = GateOptions {
            config: folder.join("config"),
            data: data.path().to_owned(),
            head: folder.join("head"),
            workspace,
            home: None,
            own: Arc::new([]),
            // Nothing is run, so that it is never started.
            launch: Launch {
                program: "/bin/false".into(),
                arguments: Vec::new(),
                near: None,
            },
            patience: Duration::from_secs(60),
            redactor: Arc::new(Redactor::from_environment([])?),
        };
        let gate = Gate::open(Arc::new(SqliteStore::open(data)?), options).await?;
        let notebooks = Notebooks::open(gate, kept).await?;
        let person = Actor::Person("bench".to_owned());
        let made = notebooks.make(&person, PostNotebook::default()).await?;
        let mut ward = Self {
            notebooks,
            person,
            id: made.id,
            cell: CellId::new(CELL)?,
            number: 0,
        };
        let created = json!({
            "kind": "cell.created", "cell_id": CELL, "cell_type": "code", "place": "V",
        });
        ward.post(serde_json::from_value(created)?).await?;
        Ok(ward)
    }

    async fn post(&mut self, event: NotebookEvent) -> anyhow::Result<()> {
        let asked = PostEvents {
            events: vec![event],
            ..PostEvents::default()
        };
        let Self { person, id, .. } = self;
        self.notebooks.post(person, id, None, asked).await?;
        Ok(())
    }

    /// Edits the cell so often; the seconds of all. An event is kept when its append is answered.
    async fn commit(&mut self, count: usize) -> anyhow::Result<(f64, f64)> {
        let began = Instant::now();
        for _ in 0..count {
            self.number += 1;
            self.post(NotebookEvent::CellSource(CellSource {
                cell_id: self.cell.clone(),
                source: Some(format!("print({})", self.number)),
                splices: Vec::new(),
            }))
            .await?;
        }
        let took = began.elapsed().as_secs_f64();
        let book = self.notebooks.book(&self.person, &self.id).await?;
        let seen = book.snapshot().state;
        let seen = seen.cell(&self.cell).context("the cell is gone")?;
        let last = format!("print({})", self.number);
        ensure!(seen.source == last, "it says `{}`", seen.source);
        Ok((took, took))
    }
}

/// A peer in Node.
struct Peer(Lines);

impl Peer {
    fn start(stage: &Stage, name: &str, package: &str) -> anyhow::Result<Self> {
        ensure!(
            stage.path("node_modules").join(package).exists(),
            "not installed; npm's package is {package}"
        );
        let mut command = stage.command("node");
        command.arg(stage.path("notebook.mjs")).arg(name);
        command.arg(stage.scratch(name)?);
        let mut peer = Self(Lines::start(command)?);
        peer.commit(1).context("it does not start")?;
        Ok(peer)
    }

    /// The same of a peer: the seconds of the calls, and until all of it is in its file.
    fn commit(&mut self, count: usize) -> anyhow::Result<(f64, f64)> {
        let answer = self.0.ask("commit", &json!({"count": count}))?;
        ensure!(answer["is_there"] == true, "it was not committed: {answer}");
        let seconds = |name: &str| answer[name].as_f64().context("no seconds");
        Ok((seconds("committed")?, seconds("settled")?))
    }
}
