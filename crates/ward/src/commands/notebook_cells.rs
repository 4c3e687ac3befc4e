//! The cells of `ward notebook run`, one after the other, with a bar for who is in front.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use notebook::{
    CellId, Execution, ExecutionCancel, ExecutionId, ExecutionRequested, ExecutionState, Media,
    NotebookEvent, Output, SessionState,
};
use runtime_native::{HttpStore, NotebookStore as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::notebook_asked::Questions;
use super::notebook_run::Args;
use super::notebook_way::Way;
use crate::console::{printable, tell};
use crate::duration::Span;

/// What the command exits with where it was cancelled.
pub(super) const CANCELLED: u8 = 130;
/// How long a run has to stop: a little more than Ward gives its runtime.
const STOPPING: Duration = Duration::from_secs(12);
/// For how long Ward may be away while a run is to stop.
const AWAY: Duration = Duration::from_secs(1);

/// The cells of a notebook that is run.
pub(super) struct Cells<'a> {
    pub(super) store: &'a HttpStore<Way>,
    pub(super) args: &'a Args,
    /// Somebody wants it to end.
    pub(super) stop: &'a CancellationToken,
    pub(super) bar: &'a ProgressBar,
    pub(super) questions: &'a Questions<'a>,
}

impl Cells<'_> {
    /// Runs them all, or up to the first that fails. [`None`] where it was cancelled before any ran.
    pub(super) async fn run(&self) -> anyhow::Result<Option<ExitCode>> {
        let ready = self.until(|seen| {
            let active = seen.active(None);
            active.is_some_and(|session| session.state == SessionState::Ready)
        });
        tokio::select! {
            () = ready => {}
            () = self.stop.cancelled() => return Ok(None),
        }
        let cells = self.cells();
        let bar = self.bar;
        bar.set_length(cells.len() as u64);
        bar.enable_steady_tick(Duration::from_millis(250));
        let mut code = ExitCode::SUCCESS;
        for (number, cell) in &cells {
            bar.set_message(format!("cell {number}"));
            let id = ExecutionId::new(format!("run-{number}"))?;
            let mut late = false;
            let wanted = ExecutionRequested {
                execution_id: id.clone(),
                cell_id: cell.clone(),
                runtime_type: None,
                role: None,
            };
            HttpStore::write(self.store, NotebookEvent::ExecutionRequested(wanted));
            let run = tokio::select! {
                run = self.over(&id) => Some(run),
                () = self.stop.cancelled() => {
                    self.stopped(&id).await;
                    bar.finish_and_clear();
                    tell("cancelled");
                    return Ok(Some(ExitCode::from(CANCELLED)));
                }
                () = limit(self.args.timeout) => {
                    late = true;
                    self.stopped(&id).await
                }
            };
            self.print(cell)?;
            bar.inc(1);
            let wrong = match &run {
                Some(run) => went_wrong(run, late),
                None => Some(("it took too long, and did not stop".to_owned(), 1)),
            };
            if let Some((sentence, exit)) = wrong {
                let sentence = self.questions.refused(cell).unwrap_or(sentence);
                bar.suspend(|| tell(&format!("cell {number}: {}", printable(&sentence))));
                code = ExitCode::from(exit);
                // What did not stop is in the way of the next one, and whoever cancelled one wants no more.
                if !self.args.allow_errors || run.is_none() || exit == CANCELLED {
                    break;
                }
            }
        }
        bar.finish_and_clear();
        Ok(Some(code))
    }

    /// The cells that run and say something, in order, each with its place in the file. Those that
    /// the runtime cannot run are among them: that they were left out has to be said.
    fn cells(&self) -> Vec<(usize, CellId)> {
        self.store.look(|seen| {
            let cells = (1..).zip(seen.state.cells());
            let cells = cells.filter(|(_, cell)| cell.cell_type.runs());
            let cells = cells.filter(|(_, cell)| !cell.source.trim().is_empty());
            cells
                .map(|(number, cell)| (number, cell.cell_id.clone()))
                .collect()
        })
    }

    /// Stops a run, and waits for its end as long as one may hope for it.
    async fn stopped(&self, id: &ExecutionId) -> Option<Execution> {
        let event = ExecutionCancel {
            execution_id: id.clone(),
        };
        HttpStore::write(self.store, NotebookEvent::ExecutionCancel(event));
        tokio::select! {
            run = self.over(id) => Some(run),
            () = tokio::time::sleep(STOPPING) => None,
            () = self.store.away_for(AWAY) => None,
        }
    }

    /// Waits for the end of a run.
    async fn over(&self, id: &ExecutionId) -> Execution {
        loop {
            let changed = self.store.changed();
            let run = self.store.look(|seen| seen.state.execution(id).cloned());
            if let Some(run) = run.filter(|run| run.state.is_over()) {
                return run;
            }
            changed.await;
        }
    }

    async fn until(&self, is: impl Fn(&notebook::Notebook) -> bool) {
        loop {
            let changed = self.store.changed();
            if self.store.look(|seen| is(&seen.state)) {
                return;
            }
            changed.await;
        }
    }

    /// What a cell shows as text, where it goes to no file.
    fn print(&self, cell: &CellId) -> anyhow::Result<()> {
        if self.args.out.is_some() {
            return Ok(());
        }
        let outputs = self.store.look(|seen| {
            let cell = seen.state.cell(cell);
            cell.map(|cell| cell.outputs.clone()).unwrap_or_default()
        });
        let terminal = std::io::stdout().is_terminal();
        self.bar.suspend(|| {
            let mut out = std::io::stdout().lock();
            for text in outputs.iter().filter_map(text) {
                let mut lines = text.lines();
                let written = lines.try_for_each(|line| match terminal {
                    // What a cell prints must not move the cursor.
                    true => writeln!(out, "{}", printable(line)),
                    false => writeln!(out, "{line}"),
                });
                written?;
            }
            out.flush()
        })?;
        Ok(())
    }
}

/// An output as text.
fn text(output: &Output) -> Option<String> {
    match output {
        Output::Terminal { text, .. } | Output::Markdown { text } => Some(text.clone()),
        Output::Display { bundle, .. } | Output::Result { bundle, .. } => {
            match bundle.data.get("text/plain")? {
                Media::Inline(Value::String(text)) => Some(text.clone()),
                Media::Inline(_) | Media::Artifact(_) => None,
            }
        }
        Output::Error { name, value, .. } => Some(format!("{name}: {value}")),
        Output::Dropped { bytes } => Some(format!("({bytes} bytes were dropped)")),
        Output::Kept { .. } => None,
    }
}

/// What went wrong in a run, and what the command exits with for it. `late` is whether it was to
/// stop because it took too long.
fn went_wrong(run: &Execution, late: bool) -> Option<(String, u8)> {
    match (run.state, &run.failed) {
        (ExecutionState::Completed, _) => None,
        (ExecutionState::Cancelled, _) => Some(match late {
            true => ("it took too long, and was stopped".to_owned(), 1),
            false => ("somebody else cancelled it".to_owned(), CANCELLED),
        }),
        (_, Some(failed)) if matches!(failed.kind.as_str(), "denied" | "not_capable") => {
            Some((failed.message.clone(), 3))
        }
        (_, Some(failed)) => Some((failed.message.clone(), 1)),
        (_, None) => Some(("it failed".to_owned(), 1)),
    }
}

async fn limit(time: Option<Span>) {
    match time {
        Some(time) => tokio::time::sleep(time.0).await,
        None => std::future::pending().await,
    }
}

/// A bar for a person in front; nothing for anybody else.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
