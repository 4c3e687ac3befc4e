//! Requests a second and processor time a request, with many requests under way at once.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;

use crate::processor;
use crate::row::{Row, Target, Unit};
use crate::samples::{Samples, order};
use crate::server::{Server, client};
use crate::stage::{Effort, Stage};

/// Requests under way at once.
const IN_FLIGHT: usize = 64;

/// What is asked.
#[derive(Debug, Clone, Copy)]
enum Question {
    /// `action/execute` of `fs.stat`.
    Stat(&'static str),
    /// `runtime/status`.
    Echo,
}

#[derive(Debug, Default)]
struct Figures {
    rate: Samples,
    processor: Samples,
}

pub(crate) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let stat = Question::Stat(stage.small_file()?);
    client()?.block_on(async {
        let servers = [
            Server::start(stage.runtime("ward")).await?,
            Server::start(stage.node()).await?,
        ];
        let turns = [
            (0, stat),
            (1, stat),
            (0, Question::Echo),
            (1, Question::Echo),
        ];
        let mut figures: [Figures; 4] = Default::default();
        for round in 0..=stage.rounds(9) {
            for at in order(round, turns.len()) {
                let (server, question) = turns[at];
                let (rate, processor) = load(&servers[server], question, time(stage)).await?;
                if round > 0 {
                    figures[at].rate.add(rate);
                    figures[at].processor.add(processor);
                }
            }
        }
        Ok(rows(&figures))
    })
}

fn rows([ward, node, ward_echo, node_echo]: &[Figures; 4]) -> Vec<Row> {
    let peer = "Node, vscode-jsonrpc";
    let rate = |what: &str, ours: &Figures, theirs: &Figures, target| {
        Row::against(
            what,
            Unit::PerSecond,
            &ours.rate,
            peer,
            &theirs.rate,
            target,
        )
    };
    let processor = |what: &str, ours: &Figures, theirs: &Figures, target| {
        let (ours, theirs) = (&ours.processor, &theirs.processor);
        Row::against(what, Unit::Seconds, ours, peer, theirs, target)
    };
    vec![
        rate(
            "(a) `fs.stat`, 64 in flight: requests",
            ward,
            node,
            Target::AtLeast(5.0),
        ),
        processor(
            "(a) `fs.stat`: processor time a request",
            ward,
            node,
            Target::AtMost(0.2),
        ),
        rate(
            "(a) `runtime/status`, 64 in flight: requests",
            ward_echo,
            node_echo,
            Target::None,
        ),
        processor(
            "(a) `runtime/status`: processor time a request",
            ward_echo,
            node_echo,
            Target::None,
        ),
    ]
}

fn time(stage: &Stage) -> Duration {
    match stage.effort() {
        Effort::Full => Duration::from_millis(1000),
        Effort::Quick => Duration::from_millis(200),
    }
}

/// Keeps the server busy; requests a second, and its processor time a request.
async fn load(server: &Server, question: Question, time: Duration) -> anyhow::Result<(f64, f64)> {
    let answered = Cell::new(0_u32);
    let before = processor::of_process(server.pid()?)?;
    let started = Instant::now();
    let asking = (0..IN_FLIGHT).map(|_| async {
        while started.elapsed() < time {
            match question {
                Question::Stat(path) => server.execute("fs.stat", &json!({"path": path})).await?,
                Question::Echo => server.echo().await?,
            }
            answered.set(answered.get() + 1);
        }
        anyhow::Ok(())
    });
    try_join_all(asking).await?;
    let took = started.elapsed().as_secs_f64();
    let used = processor::of_process(server.pid()?)? - before;
    let answered = f64::from(answered.get());
    Ok((answered / took, used / answered))
}
