//! What all events of a notebook amount to.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::replica::{Base, Entry, EventId, Fold};

use crate::bundle::{ArtifactRef, Bundle, Media};
use crate::cell::Cell;
use crate::event::{CellCreated, NotebookEvent, Runtimes, Termination, minor};
use crate::execution::{Execution, ExecutionState, Input, Outcome};
use crate::id::{CellId, ExecutionId, OutputId, SessionId};
use crate::output::{self, Output};
use crate::place::Place;
use crate::session::{RuntimeSession, SessionState};

/// How many runs and runtime sessions that are over are remembered.
const REMEMBERED: usize = 200;

/// A notebook and the place in the stream up to which it is folded: what a start needs instead of
/// all events before.
pub type Snapshot = Base<Notebook>;

/// A notebook as it is. Clones share what they have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notebook {
    /// What people call it.
    pub title: String,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The minor version of the file's format, 4.x.
    #[serde(default = "minor")]
    pub nbformat_minor: u64,
    /// What else was in the file, at its top.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// How many runtimes it has at once.
    #[serde(default)]
    pub runtimes: Runtimes,
    /// The cells, by id.
    cells: BTreeMap<CellId, Arc<Cell>>,
    /// The runs, in the order in which they were asked for: those that are not over, and some that
    /// are.
    executions: Vec<Arc<Execution>>,
    /// The runtime sessions, in the order in which they were announced.
    sessions: Vec<RuntimeSession>,
    /// What is kept beside it, by digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, ArtifactRef>,
    /// The replicas that wrote.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    writers: BTreeMap<String, Writer>,
}

/// A replica that wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Writer {
    /// The last number that it gave.
    last: u64,
    /// Whose it is, by the server's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
}

impl Default for Notebook {
    fn default() -> Self {
        Self {
            title: String::new(),
            metadata: Map::new(),
            nbformat_minor: minor(),
            extra: Map::new(),
            runtimes: Runtimes::One,
            cells: BTreeMap::new(),
            executions: Vec::new(),
            sessions: Vec::new(),
            artifacts: BTreeMap::new(),
            writers: BTreeMap::new(),
        }
    }
}

impl Fold for Notebook {
    type Event = NotebookEvent;

    fn apply(&mut self, entry: &Entry<NotebookEvent>) {
        match self.writers.get_mut(&entry.id.writer) {
            Some(writer) => {
                writer.last = entry.id.number.max(writer.last);
                if writer.actor.is_none() {
                    writer.actor.clone_from(&entry.actor);
                }
            }
            None => {
                let writer = Writer {
                    last: entry.id.number,
                    actor: entry.actor.clone(),
                };
                self.writers.insert(entry.id.writer.clone(), writer);
            }
        }
        self.take(&entry.event, entry.actor.as_deref());
    }

    fn has(&self, id: &EventId) -> bool {
        self.last_of(&id.writer) >= id.number
    }
}

impl Notebook {
    /// The cells, in order.
    #[must_use]
    pub fn cells(&self) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = self.cells.values().map(|cell| &**cell).collect();
        cells.sort_by(|a, b| a.place.cmp(&b.place));
        cells
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cells.len()
    }

    /// One of them.
    #[must_use]
    pub fn cell(&self, id: &CellId) -> Option<&Cell> {
        self.cells.get(id).map(|cell| &**cell)
    }

    /// The runs that are not over, and the last ones that are, in the order of the wishes.
    pub fn executions(&self) -> impl DoubleEndedIterator<Item = &Execution> {
        self.executions.iter().map(|execution| &**execution)
    }

    /// One of them.
    #[must_use]
    pub fn execution(&self, id: &ExecutionId) -> Option<&Execution> {
        // What is asked for is nearly always among the last.
        self.executions().rev().find(|run| run.execution_id == *id)
    }

    /// The runs that are not over, in order: the queue.
    pub fn queue(&self) -> impl Iterator<Item = &Execution> {
        self.executions().filter(|run| !run.state.is_over())
    }

    /// The runtime sessions that are not over, and the last ones that are.
    #[must_use]
    pub fn sessions(&self) -> &[RuntimeSession] {
        &self.sessions
    }

    /// One of them.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<&RuntimeSession> {
        let mut sessions = self.sessions.iter().rev();
        sessions.find(|session| session.session_id == *id)
    }

    /// The runtime session that has the notebook, or its part of it where there is one of each type.
    #[must_use]
    pub fn active(&self, runtime_type: Option<&str>) -> Option<&RuntimeSession> {
        self.all_active(runtime_type).next()
    }

    /// All of them, the newest first.
    pub fn all_active<'a>(
        &'a self,
        runtime_type: Option<&str>,
    ) -> impl Iterator<Item = &'a RuntimeSession> {
        self.sessions.iter().rev().filter(move |session| {
            session.is_active() && runtime_type.is_none_or(|wanted| session.runtime_type == wanted)
        })
    }

    /// The last number that a replica wrote; 0 where it wrote none.
    #[must_use]
    pub fn last_of(&self, writer: &str) -> u64 {
        self.writers.get(writer).map_or(0, |writer| writer.last)
    }

    /// Whose replica this is; nobody's, where it has written nothing yet. Nobody else can write in
    /// its name: the numbers that it would give next would be taken.
    #[must_use]
    pub fn owner_of(&self, writer: &str) -> Option<&str> {
        self.writers.get(writer)?.actor.as_deref()
    }

    /// A place right after a cell; before all where none is named.
    #[must_use]
    pub fn place_after(&self, cell: Option<&CellId>) -> Place {
        let after = cell.and_then(|id| self.cell(id)).map(|cell| &cell.place);
        let places = self.cells.values().map(|cell| &cell.place);
        let before = places.filter(|place| after.is_none_or(|after| *place > after));
        Place::between(after, before.min())
    }

    /// A place after all cells.
    #[must_use]
    pub fn place_last(&self) -> Place {
        let places = self.cells.values().map(|cell| &cell.place);
        Place::between(places.max(), None)
    }

    /// Takes one event in; whoever appended it is `actor`, by the server's word. What does not fit
    /// changes nothing.
    pub fn take(&mut self, event: &NotebookEvent, actor: Option<&str>) {
        match event {
            NotebookEvent::NotebookMade(event) => {
                self.title.clone_from(&event.title);
                self.metadata.clone_from(&event.metadata);
                self.nbformat_minor = event.nbformat_minor;
                self.extra.clone_from(&event.extra);
            }
            NotebookEvent::NotebookTitled(event) => self.title.clone_from(&event.title),
            NotebookEvent::NotebookMetadata(event) => merge(&mut self.metadata, &event.set),
            NotebookEvent::RuntimesChanged(event) => self.runtimes = event.runtimes,
            NotebookEvent::CellCreated(event) => self.create(event),
            NotebookEvent::CellSource(event) => self.change(&event.cell_id, |cell| {
                if let Some(source) = &event.source {
                    cell.source.clone_from(source);
                }
                for splice in &event.splices {
                    splice.apply(&mut cell.source);
                }
            }),
            NotebookEvent::CellTyped(event) => {
                self.change(&event.cell_id, |cell| cell.cell_type = event.cell_type);
            }
            NotebookEvent::CellMoved(event) => {
                let place = self.free(&event.place, &event.cell_id);
                self.change(&event.cell_id, |cell| cell.place = place);
            }
            NotebookEvent::CellDeleted(event) => drop(self.cells.remove(&event.cell_id)),
            NotebookEvent::CellVisibility(event) => self.change(&event.cell_id, |cell| {
                if let Some(hidden) = event.source_hidden {
                    cell.hide("source_hidden", hidden);
                }
                if let Some(hidden) = event.outputs_hidden {
                    cell.hide("outputs_hidden", hidden);
                }
            }),
            NotebookEvent::CellMetadata(event) => {
                self.change(&event.cell_id, |cell| merge(&mut cell.metadata, &event.set));
            }
            NotebookEvent::ExecutionRequested(event) => {
                let Some(cell) = self.cells.get(&event.cell_id) else {
                    return;
                };
                if self.execution(&event.execution_id).is_some() {
                    return;
                }
                self.executions.push(Arc::new(Execution {
                    execution_id: event.execution_id.clone(),
                    cell_id: event.cell_id.clone(),
                    cell_type: cell.cell_type,
                    source: cell.source.clone(),
                    state: ExecutionState::Requested,
                    requested_by: actor.map(str::to_owned),
                    role: event.role.clone(),
                    runtime_type: event.runtime_type.clone(),
                    session_id: None,
                    cancel: false,
                    input: None,
                    failed: None,
                }));
                self.change(&event.cell_id, |cell| {
                    cell.execution_id = Some(event.execution_id.clone());
                });
                self.forget();
            }
            NotebookEvent::ExecutionAssigned(event) => {
                self.run(&event.execution_id, |run| {
                    if run.state == ExecutionState::Requested {
                        run.state = ExecutionState::Assigned;
                        run.session_id = Some(event.session_id.clone());
                    }
                });
            }
            NotebookEvent::ExecutionStarted(event) => {
                let mut begun = None;
                self.run(&event.execution_id, |run| {
                    if run.state == ExecutionState::Assigned {
                        run.state = ExecutionState::Running;
                        begun = Some(run.cell_id.clone());
                    }
                });
                let Some(cell) = begun else { return };
                self.change(&cell, |cell| {
                    cell.outputs.clear();
                    cell.clear_waits = false;
                    cell.execution_count = event.execution_count;
                });
            }
            NotebookEvent::ExecutionCancel(event) => {
                self.run(&event.execution_id, |run| run.cancel = true);
            }
            NotebookEvent::InputRequested(event) => self.run(&event.execution_id, |run| {
                if run.state == ExecutionState::Running {
                    run.input = Some(Input {
                        prompt: event.prompt.clone(),
                        password: event.password,
                    });
                }
            }),
            NotebookEvent::InputAnswered(event) => {
                self.run(&event.execution_id, |run| run.input = None);
            }
            NotebookEvent::ExecutionCompleted(event) => {
                let mut cell = None;
                self.run(&event.execution_id, |run| {
                    run.input = None;
                    cell = Some(run.cell_id.clone());
                    match &event.outcome {
                        Outcome::Ok => run.state = ExecutionState::Completed,
                        Outcome::Failed(failed) => {
                            run.state = ExecutionState::Failed;
                            run.failed = Some(failed.clone());
                        }
                    }
                    run.source = String::new();
                });
                if let (Some(cell), Some(count)) = (cell, event.execution_count) {
                    self.change(&cell, |cell| cell.execution_count = Some(count));
                }
                self.forget();
            }
            NotebookEvent::ExecutionCancelled(event) => {
                self.run(&event.execution_id, |run| {
                    run.state = ExecutionState::Cancelled;
                    run.input = None;
                    run.source = String::new();
                });
                self.forget();
            }
            NotebookEvent::Terminal(event) => self.show(
                &event.execution_id,
                Output::Terminal {
                    stream: event.stream,
                    text: event.text.clone(),
                },
            ),
            NotebookEvent::Displayed(event) => self.show(
                &event.execution_id,
                Output::Display {
                    bundle: event.bundle.clone(),
                    display_id: event.display_id.clone(),
                },
            ),
            NotebookEvent::DisplayUpdated(event) => {
                self.redisplay(&event.display_id, &event.bundle);
            }
            NotebookEvent::ResultOutput(event) => self.show(
                &event.execution_id,
                Output::Result {
                    bundle: event.bundle.clone(),
                    execution_count: event.execution_count,
                },
            ),
            NotebookEvent::ErrorOutput(event) => self.show(
                &event.execution_id,
                Output::Error {
                    name: event.name.clone(),
                    value: event.value.clone(),
                    traceback: event.traceback.clone(),
                },
            ),
            NotebookEvent::Markdown(event) => self.show(
                &event.execution_id,
                Output::Markdown {
                    text: event.text.clone(),
                },
            ),
            NotebookEvent::Dropped(event) => {
                self.show(&event.execution_id, Output::Dropped { bytes: event.bytes });
            }
            NotebookEvent::Cleared(event) => {
                if let Some(cell) = self.shown_in(&event.execution_id) {
                    self.change(&cell, |cell| match event.wait {
                        true => cell.clear_waits = true,
                        false => cell.outputs.clear(),
                    });
                }
            }
            NotebookEvent::Imported(event) => self.change(&event.cell_id, |cell| {
                cell.outputs.clone_from(&event.outputs);
                cell.execution_count = event.execution_count;
            }),
            NotebookEvent::RuntimeStarted(event) => {
                self.sessions.push(RuntimeSession {
                    session_id: event.session_id.clone(),
                    runtime_id: event.runtime_id.clone(),
                    runtime_type: event.runtime_type.clone(),
                    client_id: event.client_id.clone(),
                    capabilities: event.capabilities.clone(),
                    state: SessionState::Starting,
                    restarts: 0,
                    ended: None,
                });
                self.forget();
            }
            NotebookEvent::RuntimeStatus(event) | NotebookEvent::RuntimeRenewed(event) => {
                self.turn(&event.session_id, event.state, None);
            }
            NotebookEvent::RuntimeRestart(event) => {
                let mut sessions = self.sessions.iter_mut().rev();
                let found = sessions.find(|session| session.session_id == event.session_id);
                if let Some(session) = found.filter(|session| session.is_active()) {
                    session.restarts += 1;
                }
            }
            NotebookEvent::RuntimeTerminated(event) => {
                let reason = Some(event.reason);
                self.turn(&event.session_id, SessionState::Terminated, reason);
            }
            NotebookEvent::ArtifactAdded(artifact) => {
                self.artifacts
                    .insert(artifact.digest.clone(), artifact.clone());
            }
            NotebookEvent::ArtifactRemoved(event) => drop(self.artifacts.remove(&event.digest)),
        }
    }

    fn create(&mut self, event: &CellCreated) {
        if self.cells.contains_key(&event.cell_id) {
            return;
        }
        let cell = Cell {
            cell_id: event.cell_id.clone(),
            cell_type: event.cell_type,
            place: self.free(&event.place, &event.cell_id),
            source: event.source.clone(),
            metadata: event.metadata.clone(),
            extra: event.extra.clone(),
            outputs: Vec::new(),
            execution_count: None,
            execution_id: None,
            clear_waits: false,
        };
        self.cells.insert(cell.cell_id.clone(), Arc::new(cell));
    }

    /// A place that no other cell has: two that were put at one place are one after the other,
    /// whoever came later behind.
    fn free(&self, wanted: &Place, cell: &CellId) -> Place {
        let others = || self.cells.values().filter(|other| other.cell_id != *cell);
        match others().any(|other| other.place == *wanted) {
            false => wanted.clone(),
            true => {
                let places = others().map(|other| &other.place);
                let next = places.filter(|place| *place > wanted).min();
                Place::between(Some(wanted), next)
            }
        }
    }

    fn change(&mut self, cell: &CellId, change: impl FnOnce(&mut Cell)) {
        if let Some(cell) = self.cells.get_mut(cell) {
            change(Arc::make_mut(cell));
        }
    }

    /// Changes a run that is not over.
    fn run(&mut self, id: &ExecutionId, change: impl FnOnce(&mut Execution)) {
        let mut runs = self.executions.iter_mut().rev();
        if let Some(run) = runs.find(|run| run.execution_id == *id)
            && !run.state.is_over()
        {
            change(Arc::make_mut(run));
        }
    }

    /// The cell where a run shows what it does: while it runs, and no newer run has begun there.
    fn shown_in(&self, id: &ExecutionId) -> Option<CellId> {
        let run = self.execution(id)?;
        (run.state == ExecutionState::Running).then(|| run.cell_id.clone())
    }

    fn show(&mut self, id: &ExecutionId, output: Output) {
        let Some(cell) = self.shown_in(id) else {
            return;
        };
        self.change(&cell, |cell| {
            if std::mem::take(&mut cell.clear_waits) {
                cell.outputs.clear();
            }
            output::append(&mut cell.outputs, output);
        });
    }

    fn redisplay(&mut self, id: &OutputId, bundle: &Bundle) {
        for cell in self.cells.values_mut() {
            if !cell.outputs.iter().any(|one| one.display() == Some(id)) {
                continue;
            }
            for output in &mut Arc::make_mut(cell).outputs {
                if output.display() == Some(id) {
                    *output = Output::Display {
                        bundle: bundle.clone(),
                        display_id: Some(id.clone()),
                    };
                }
            }
        }
    }

    fn turn(&mut self, id: &SessionId, state: SessionState, ended: Option<Termination>) {
        let mut sessions = self.sessions.iter_mut().rev();
        if let Some(session) = sessions.find(|session| session.session_id == *id)
            && session.is_active()
        {
            session.state = state;
            session.ended = ended;
        }
    }

    /// Lets go of the oldest runs and sessions that are over.
    fn forget(&mut self) {
        if self.executions.len() > 2 * REMEMBERED {
            let mut over = self
                .executions
                .iter()
                .filter(|run| run.state.is_over())
                .count();
            self.executions.retain(|run| {
                let keep = !run.state.is_over() || over <= REMEMBERED;
                if run.state.is_over() {
                    over -= 1;
                }
                keep
            });
        }
        if self.sessions.len() > 2 * REMEMBERED {
            let mut over = self.sessions.iter().filter(|one| !one.is_active()).count();
            self.sessions.retain(|session| {
                let keep = session.is_active() || over <= REMEMBERED;
                if !session.is_active() {
                    over -= 1;
                }
                keep
            });
        }
    }

    /// Every artifact that an output refers to.
    #[must_use]
    pub fn artifacts_shown(&self) -> Vec<&ArtifactRef> {
        let outputs = self.cells.values().flat_map(|cell| &cell.outputs);
        let bundles = outputs.filter_map(|output| match output {
            Output::Display { bundle, .. } | Output::Result { bundle, .. } => Some(bundle),
            Output::Terminal { .. }
            | Output::Error { .. }
            | Output::Markdown { .. }
            | Output::Dropped { .. }
            | Output::Kept { .. } => None,
        });
        let media = bundles.flat_map(|bundle| bundle.data.values());
        let shown = media.filter_map(|media| match media {
            Media::Artifact(artifact) => Some(artifact),
            Media::Inline(_) => None,
        });
        shown.collect()
    }
}

/// Sets what has a value, and takes away what is null.
fn merge(into: &mut Map<String, Value>, set: &Map<String, Value>) {
    for (name, value) in set {
        match value {
            Value::Null => drop(into.remove(name)),
            value => drop(into.insert(name.clone(), value.clone())),
        }
    }
}
