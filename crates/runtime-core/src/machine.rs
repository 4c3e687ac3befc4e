//! The agent as a state machine: inputs go in, effects come out. It does nothing by itself.
//!
//! A run goes through these steps, and never back: it is seen to be assigned to this session, in
//! what the server has confirmed; `execution.started` is written; once that is confirmed, the
//! handler runs; then its end is written. An agent that dies in between leaves a run that is
//! assigned or running to a session that is over, and no other session takes it up.

mod anew;

use std::collections::{BTreeSet, VecDeque};

use notebook::{
    Capabilities, CellId, CellType, Execution, ExecutionId, ExecutionStarted, ExecutionState,
    Notebook, NotebookEvent, Outcome, RuntimeTerminated, RuntimeUpdated, SessionId, SessionState,
    Termination,
};
use protocol::ErrorKind;
use store::Seq;
use store::replica::{Base, EventId, Fold as _};

use crate::context::Finished;
use crate::options::{AgentOptions, Announcement};
use crate::outbox::Said;
use crate::written::{self, cancelled, completed, failed};

/// A run that is to be done: the cell as it was when somebody wanted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which run.
    pub execution_id: ExecutionId,
    /// Of which cell.
    pub cell_id: CellId,
    /// What the cell is.
    pub cell_type: CellType,
    /// Exactly what runs.
    pub source: String,
    /// Who wanted it, by the server's word.
    pub requested_by: Option<String>,
}

/// What the agent is told. After each input it looks at the notebook.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Begin.
    Start,
    /// The server gave a session, and was at `head` with it.
    Announced {
        /// The session.
        session_id: SessionId,
        /// What is older is not acted on.
        head: Seq,
    },
    /// The server gave none.
    Refused(String),
    /// More is confirmed.
    Changed,
    /// An event that was to be written was, under this id.
    Wrote {
        /// Which, by the number of its effect.
        number: u64,
        /// The id in the replica.
        id: EventId,
    },
    /// The handler said something.
    Said(ExecutionId, Vec<Said>),
    /// The handler came to its end.
    Finished(ExecutionId, Finished),
    /// What runs the cells has begun anew.
    Restarted,
    /// The session is not this agent's any more, in the server's words.
    Lost(String),
    /// End.
    Shutdown,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the server for a session.
    Announce(Announcement),
    /// Write an event of this session, and tell under which id.
    Append {
        /// Counted from 1.
        number: u64,
        /// What.
        event: NotebookEvent,
    },
    /// Let the handler run.
    Run(Job),
    /// Tell the handler to stop.
    Cancel(ExecutionId),
    /// Let what runs the cells begin anew: nothing runs meanwhile.
    Restart,
    /// The agent is at its end: whatever still runs is to be ended, and nothing more is said.
    End(Ending),
}

/// Why an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was told to.
    Shutdown,
    /// A newer runtime has its place.
    Displaced,
    /// The server ended its session, and why.
    Terminated(Termination),
    /// The session was not there any more, or not its own.
    Lost(String),
    /// The server gave it no session.
    Refused(String),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shutdown => f.write_str("The agent was shut down."),
            Self::Displaced => f.write_str("A newer runtime took this one's place."),
            Self::Terminated(Termination::Timeout) => {
                f.write_str("The server did not hear of this agent for too long.")
            }
            Self::Terminated(_) => f.write_str("The server ended this runtime's session."),
            Self::Lost(why) | Self::Refused(why) => f.write_str(why),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Idle,
    Announcing {
        /// It was told to end meanwhile.
        leaving: bool,
    },
    Active,
    /// It has said that it ends, with this number.
    Leaving(u64),
    Ended,
}

#[derive(Debug, Clone)]
struct Current {
    job: Job,
    step: Step,
    /// The handler was told to stop because somebody wanted it.
    cancelled: bool,
    /// Its end is written, by this agent or by Ward: what the handler still says is for nobody.
    void: bool,
    count: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// That it starts is written, with this number, and not yet confirmed.
    Starting(u64),
    Running,
}

/// The agent.
#[derive(Debug, Clone)]
pub struct Machine {
    options: AgentOptions,
    capabilities: Capabilities,
    phase: Phase,
    session: Option<SessionId>,
    /// What is older than this is not acted on.
    since: Seq,
    current: Option<Current>,
    /// The runs that were taken up here, however far they came.
    taken: BTreeSet<ExecutionId>,
    /// How many events were written.
    appended: u64,
    /// The events that are not known to be confirmed, by their number.
    unconfirmed: VecDeque<(u64, EventId)>,
    /// Up to which number they are.
    confirmed: u64,
    /// What others were last told that it is doing.
    told: SessionState,
    /// How often it began anew because somebody wanted it; not known before it has looked at a
    /// session that it goes on with.
    restarts: Option<u64>,
    restarting: bool,
}

impl Machine {
    /// An agent that has not begun. Whether the options fit who authenticated is checked by
    /// [`AgentOptions::check`].
    #[must_use]
    pub fn new(options: AgentOptions, capabilities: Capabilities) -> Self {
        let restarts = options.session_id.is_none().then_some(0);
        Self {
            options,
            capabilities,
            phase: Phase::Idle,
            session: None,
            since: Seq::default(),
            current: None,
            taken: BTreeSet::new(),
            appended: 0,
            unconfirmed: VecDeque::new(),
            confirmed: 0,
            told: SessionState::Starting,
            restarts,
            restarting: false,
        }
    }

    /// Its session, once it has one.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Whether it is at its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Takes something in, looks at what the server has confirmed, and says what is to be done, in
    /// order.
    pub fn take(&mut self, input: Input, seen: &Base<Notebook>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.phase == Phase::Ended {
            return effects;
        }
        match input {
            Input::Start => self.start(&mut effects),
            Input::Announced { session_id, head } => self.announced(session_id, head, &mut effects),
            Input::Refused(why) => self.end(Ending::Refused(why), &mut effects),
            Input::Changed => {}
            Input::Wrote { number, id } => self.unconfirmed.push_back((number, id)),
            Input::Said(id, said) => self.said(&id, said, &mut effects),
            Input::Finished(id, finished) => self.finished(&id, finished, &mut effects),
            Input::Restarted => self.restarted(&mut effects),
            Input::Lost(why) => self.end(Ending::Lost(why), &mut effects),
            Input::Shutdown => self.shutdown(&mut effects),
        }
        self.look(seen, &mut effects);
        effects
    }

    fn start(&mut self, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Idle {
            return;
        }
        self.phase = Phase::Announcing { leaving: false };
        effects.push(Effect::Announce(Announcement {
            runtime_id: self.options.runtime_id.clone(),
            runtime_type: self.options.runtime_type.clone(),
            client_id: self.options.client_id.clone(),
            capabilities: self.capabilities.clone(),
            session_id: self.options.session_id.clone(),
        }));
    }

    fn announced(&mut self, session: SessionId, head: Seq, effects: &mut Vec<Effect>) {
        let Phase::Announcing { leaving } = self.phase else {
            return;
        };
        self.session = Some(session);
        self.since = head;
        self.phase = Phase::Active;
        match leaving {
            true => self.shutdown(effects),
            false => self.tell(SessionState::Ready, effects),
        }
    }

    fn shutdown(&mut self, effects: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Idle => self.end(Ending::Shutdown, effects),
            Phase::Announcing { leaving } => *leaving = true,
            Phase::Active => {
                if let Some(current) = self.current.take() {
                    self.cut_off(current, effects);
                }
                let Some(session_id) = self.session.clone() else {
                    return self.end(Ending::Shutdown, effects);
                };
                let number = self.append(
                    NotebookEvent::RuntimeTerminated(RuntimeTerminated {
                        session_id,
                        reason: Termination::Shutdown,
                        message: None,
                    }),
                    effects,
                );
                self.phase = Phase::Leaving(number);
            }
            Phase::Leaving(_) | Phase::Ended => {}
        }
    }

    /// Writes the end of a run that is under way when the agent ends.
    fn cut_off(&mut self, current: Current, effects: &mut Vec<Effect>) {
        let id = current.job.execution_id;
        if current.step == Step::Running {
            effects.push(Effect::Cancel(id.clone()));
        }
        if current.void {
            return;
        }
        let event = match current.cancelled {
            true => cancelled(id),
            false => failed(
                id,
                ErrorKind::RuntimeLost,
                "The runtime was shut down while this cell ran.",
            ),
        };
        self.append(event, effects);
    }

    fn end(&mut self, ending: Ending, effects: &mut Vec<Effect>) {
        if let Some(current) = self.current.take()
            && current.step == Step::Running
        {
            effects.push(Effect::Cancel(current.job.execution_id));
        }
        self.phase = Phase::Ended;
        effects.push(Effect::End(ending));
    }

    fn said(&mut self, id: &ExecutionId, said: Vec<Said>, effects: &mut Vec<Effect>) {
        for said in said {
            let Some(current) = self.running(id) else {
                return;
            };
            match said {
                Said::Count(count) => current.count = Some(count),
                Said::Status(state) => self.tell(state, effects),
                said => {
                    if let Some(event) = written::said(id.clone(), said) {
                        self.append(event, effects);
                    }
                }
            }
        }
    }

    fn running(&mut self, id: &ExecutionId) -> Option<&mut Current> {
        let current = self.current.as_mut()?;
        let its = current.job.execution_id == *id && current.step == Step::Running;
        (its && !current.void && self.phase == Phase::Active).then_some(current)
    }

    fn finished(&mut self, id: &ExecutionId, finished: Finished, effects: &mut Vec<Effect>) {
        let its = |current: &mut Current| {
            current.job.execution_id == *id && current.step == Step::Running
        };
        let Some(current) = self.current.take_if(its) else {
            return;
        };
        if current.void || self.phase != Phase::Active {
            return;
        }
        let event = match finished {
            Finished::Ok => completed(id.clone(), Outcome::Ok, current.count),
            // Whatever it failed with, it was stopped.
            Finished::Failed(_) if current.cancelled => cancelled(id.clone()),
            Finished::Failed(failed) => {
                completed(id.clone(), Outcome::Failed(failed), current.count)
            }
            Finished::Cancelled => cancelled(id.clone()),
        };
        self.append(event, effects);
    }

    /// Acts on what the server has confirmed.
    fn look(&mut self, seen: &Base<Notebook>, effects: &mut Vec<Effect>) {
        while let Some((number, id)) = self.unconfirmed.front()
            && seen.state.has(id)
        {
            self.confirmed = *number;
            self.unconfirmed.pop_front();
        }
        let leaving = match self.phase {
            Phase::Active => None,
            Phase::Leaving(number) => Some(number),
            Phase::Idle | Phase::Announcing { .. } | Phase::Ended => return,
        };
        if leaving.is_some_and(|number| self.confirmed >= number) {
            return self.end(Ending::Shutdown, effects);
        }
        if seen.seq < self.since {
            return;
        }
        let notebook = &seen.state;
        if let Some(ending) = self.over(notebook) {
            // Whoever is leaving is over because it said so, or it is all the same to it.
            let ending = leaving.map_or(ending, |_| Ending::Shutdown);
            return self.end(ending, effects);
        }
        if leaving.is_some() {
            return;
        }
        let restart = self.wanted_anew(notebook);
        if restart.is_some() {
            self.stop_for_restart(effects);
        }
        self.go_on(notebook, effects);
        if self.current.is_none() {
            match restart {
                Some(wanted) => self.restart(wanted, effects),
                None if self.restarting => {}
                None => self.take_up(notebook, effects),
            }
        }
        self.forget(notebook);
        let idle = self.current.is_none();
        if idle && self.told == SessionState::Busy {
            self.tell(SessionState::Ready, effects);
        }
    }

    /// Why the session is over, where it is.
    fn over(&self, notebook: &Notebook) -> Option<Ending> {
        let mine = self.session.as_ref().and_then(|id| notebook.session(id));
        match mine {
            Some(session) if session.is_active() => None,
            Some(session) => Some(match session.ended {
                Some(Termination::Displaced) => Ending::Displaced,
                Some(reason) => Ending::Terminated(reason),
                None => Ending::Lost("The session is over.".to_owned()),
            }),
            None => Some(Ending::Lost(
                "The notebook does not know this session any more.".to_owned(),
            )),
        }
    }

    /// Goes on with the run that is under way.
    fn go_on(&mut self, notebook: &Notebook, effects: &mut Vec<Effect>) {
        let Some(current) = &mut self.current else {
            return;
        };
        let id = current.job.execution_id.clone();
        let run = notebook.execution(&id);
        let over = run.is_none_or(|run| run.state.is_over());
        let wanted_to_stop = current.cancelled || run.is_some_and(|run| run.cancel);
        match current.step {
            Step::Starting(_) if over => self.current = None,
            Step::Starting(number) if self.confirmed >= number => {
                if wanted_to_stop {
                    self.current = None;
                    self.append(cancelled(id), effects);
                } else {
                    current.step = Step::Running;
                    effects.push(Effect::Run(current.job.clone()));
                }
            }
            Step::Starting(_) => {}
            // Ward ended it, because it waited for too long or for another reason of its own.
            Step::Running if over => {
                if !current.void && !current.cancelled {
                    effects.push(Effect::Cancel(id));
                }
                current.void = true;
            }
            Step::Running => {
                if wanted_to_stop && !current.cancelled {
                    current.cancelled = true;
                    effects.push(Effect::Cancel(id));
                }
            }
        }
    }

    /// Takes up the next run that is this session's.
    fn take_up(&mut self, notebook: &Notebook, effects: &mut Vec<Effect>) {
        let mine: Vec<&Execution> = notebook
            .queue()
            .filter(|run| run.session_id.is_some() && run.session_id == self.session)
            .filter(|run| !self.taken.contains(&run.execution_id))
            .collect();
        for run in mine {
            let id = run.execution_id.clone();
            match run.state {
                ExecutionState::Assigned => {}
                // It was begun before this agent went on with the session, and nobody knows how far
                // it came. It is not begun again.
                ExecutionState::Running => {
                    self.taken.insert(id.clone());
                    self.append(
                        failed(
                            id,
                            ErrorKind::RuntimeLost,
                            "The runtime ended while this cell ran. Nobody knows how far it came.",
                        ),
                        effects,
                    );
                    continue;
                }
                ExecutionState::Requested
                | ExecutionState::Completed
                | ExecutionState::Failed
                | ExecutionState::Cancelled => continue,
            }
            self.taken.insert(id.clone());
            if run.cancel {
                self.append(cancelled(id), effects);
                continue;
            }
            if let Some(why) = self.beyond(run, notebook) {
                self.append(failed(id, ErrorKind::NotCapable, &why), effects);
                continue;
            }
            let job = Job {
                execution_id: id.clone(),
                cell_id: run.cell_id.clone(),
                cell_type: run.cell_type,
                source: run.source.clone(),
                requested_by: run.requested_by.clone(),
            };
            let number = self.append(
                NotebookEvent::ExecutionStarted(ExecutionStarted {
                    execution_id: id,
                    execution_count: None,
                }),
                effects,
            );
            self.current = Some(Current {
                job,
                step: Step::Starting(number),
                cancelled: false,
                void: false,
                count: None,
            });
            self.tell(SessionState::Busy, effects);
            return;
        }
    }

    /// Why a run is beyond what this runtime can do, where it is.
    fn beyond(&self, run: &Execution, notebook: &Notebook) -> Option<String> {
        let kind = &self.options.runtime_type;
        if !self.capabilities.can(run.cell_type) {
            let cell = run.cell_type.as_str();
            return Some(format!(
                "This notebook's runtime ({kind}) does not run {cell} cells. Start one that does."
            ));
        }
        // Which model an AI cell is for stands in its metadata.
        let cell = notebook.cell(&run.cell_id);
        let model = cell.and_then(|cell| cell.metadata.get("model")?.as_str());
        let models = &self.capabilities.available_ai_models;
        match (run.cell_type, model) {
            (CellType::Ai, Some(model)) if !models.iter().any(|there| there == model) => {
                Some(format!(
                    "This notebook's runtime ({kind}) cannot ask the model `{}`. It has: {}",
                    model.escape_debug().take(80).collect::<String>(),
                    models.join(", ")
                ))
            }
            _ => None,
        }
    }

    /// Lets go of the names of runs that the notebook knows to be over.
    fn forget(&mut self, notebook: &Notebook) {
        const MANY: usize = 256;
        if self.taken.len() > MANY {
            let open: BTreeSet<&ExecutionId> =
                notebook.queue().map(|run| &run.execution_id).collect();
            self.taken.retain(|id| open.contains(id));
        }
    }

    fn tell(&mut self, state: SessionState, effects: &mut Vec<Effect>) {
        let Some(session_id) = self.session.clone() else {
            return;
        };
        if self.told != state && self.phase == Phase::Active {
            self.told = state;
            let event = NotebookEvent::RuntimeStatus(RuntimeUpdated { session_id, state });
            self.append(event, effects);
        }
    }

    fn append(&mut self, event: NotebookEvent, effects: &mut Vec<Effect>) -> u64 {
        self.appended += 1;
        let number = self.appended;
        effects.push(Effect::Append { number, event });
        number
    }
}
