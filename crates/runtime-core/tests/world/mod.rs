//! A server, a network that loses, doubles and reorders, and agents that crash.

use std::collections::{BTreeMap, BTreeSet};

use notebook::{
    Author, Capabilities, CellCreated, CellId, CellType, ExecutionAssigned, ExecutionCancel,
    ExecutionCancelled, ExecutionCompleted, ExecutionId, ExecutionRequested, ExecutionState,
    Failed, Notebook, NotebookEvent, Outcome, RuntimeRestart, RuntimeStarted, RuntimeTerminated,
    RuntimeUpdated, SessionId, SessionState, Termination,
};
use runtime_core::{AgentOptions, Announcement, Effect, Ending, Finished, Input, Machine, Said};
use store::Seq;
use store::replica::{
    Base, Effect as Replicating, Entry, EventId, Fold as _, Input as Fed, Replica,
};

/// Numbers that look random and are the same again for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

/// What happened in all schedules, so that a test can tell whether they were worth it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    pub(crate) runs: u64,
    pub(crate) displaced: u64,
    pub(crate) displaced_while_running: u64,
    pub(crate) crashed_while_running: u64,
    pub(crate) resumed: u64,
    pub(crate) cancelled: u64,
    pub(crate) cancelled_while_running: u64,
    pub(crate) refused_pushes: u64,
    pub(crate) timed_out: u64,
    pub(crate) not_capable: u64,
    pub(crate) shut_down: u64,
    pub(crate) restarted: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.displaced += other.displaced;
        self.displaced_while_running += other.displaced_while_running;
        self.crashed_while_running += other.crashed_while_running;
        self.resumed += other.resumed;
        self.cancelled += other.cancelled;
        self.cancelled_while_running += other.cancelled_while_running;
        self.refused_pushes += other.refused_pushes;
        self.timed_out += other.timed_out;
        self.not_capable += other.not_capable;
        self.shut_down += other.shut_down;
        self.restarted += other.restarted;
    }
}

/// A session's token: a renewal makes a new one, and the old is dead.
type Token = (SessionId, u64);

enum Message {
    Announce(Announcement),
    Push(Seq, Vec<Entry<NotebookEvent>>, Option<Token>),
    Pull(Seq),
    Given(Token, Seq),
    Refused,
    Replica(Fed<NotebookEvent>),
}

struct Flying {
    agent: usize,
    /// Which life of the agent's sent it, or is meant.
    life: u64,
    to_server: bool,
    message: Message,
}

/// One process that may die and come again.
struct Process {
    life: u64,
    machine: Option<Machine>,
    replica: Replica<Notebook>,
    writer: String,
    token: Option<Token>,
    /// What its handler works on, and whether it was told to stop.
    handler: Option<(ExecutionId, bool)>,
    /// What runs its cells begins anew.
    restarting: bool,
    ending: Option<Ending>,
    /// The session to go on with after a crash.
    last: Option<SessionId>,
}

pub(crate) struct World {
    dice: Dice,
    base: Base<Notebook>,
    log: Vec<Entry<NotebookEvent>>,
    /// The living token of each session.
    tokens: BTreeMap<SessionId, u64>,
    own: u64,
    sessions: u64,
    flying: Vec<Flying>,
    processes: Vec<Process>,
    requested: Vec<ExecutionId>,
    /// What was run, in order, and by which session.
    ran: Vec<(ExecutionId, SessionId)>,
    wished_to_stop: BTreeSet<ExecutionId>,
    /// Runs that were there when somebody wanted the runtime to begin anew.
    may_be_stopped: BTreeSet<ExecutionId>,
    calm: bool,
    pub(crate) seen: Seen,
}

fn cells() -> [(CellId, CellType); 3] {
    let cell = |id: &str| CellId::new(id).unwrap();
    [
        (cell("a"), CellType::Code),
        (cell("b"), CellType::Code),
        (cell("q"), CellType::Sql),
    ]
}

/// A session that is none of the agents'.
fn foreign() -> SessionId {
    SessionId::new("foreign").unwrap()
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            base: Base::default(),
            log: Vec::new(),
            tokens: BTreeMap::new(),
            own: 0,
            sessions: 0,
            flying: Vec::new(),
            processes: Vec::new(),
            requested: Vec::new(),
            ran: Vec::new(),
            wished_to_stop: BTreeSet::new(),
            may_be_stopped: BTreeSet::new(),
            calm: false,
            seen: Seen::default(),
        };
        for (cell_id, cell_type) in cells() {
            let place = world.base.state.place_last();
            world.say(NotebookEvent::CellCreated(CellCreated {
                cell_id,
                cell_type,
                place,
                source: "1+1".into(),
                metadata: serde_json::Map::new(),
                extra: serde_json::Map::new(),
            }));
        }
        for agent in 0..3 {
            world.processes.push(Process {
                life: 0,
                machine: None,
                replica: Replica::new("none"),
                writer: String::new(),
                token: None,
                handler: None,
                restarting: false,
                ending: None,
                last: None,
            });
            if agent < 2 {
                world.boot(agent, false);
            }
        }
        world
    }

    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.dice.roll(20) {
            0..=8 => self.deliver(),
            9 | 10 => self.request(),
            11 | 12 => self.assign(),
            13 if self.dice.one_in(4) => self.restart(),
            13 => self.cancel(),
            14..=16 => {
                let agent = self.dice.roll(3);
                self.work(agent);
            }
            17 => {
                let agent = self.dice.roll(3);
                match self.dice.roll(6) {
                    0 => self.crash(agent),
                    1 if self.processes[agent].machine.is_none() => {
                        let resume = self.dice.one_in(2);
                        self.boot(agent, resume);
                    }
                    2 if self.dice.one_in(3) => self.feed(agent, Input::Shutdown),
                    _ => self.retry(agent),
                }
            }
            18 => {
                let agent = self.dice.roll(3);
                self.retry(agent);
            }
            _ => {
                if self.dice.one_in(8) {
                    self.expire();
                }
            }
        }
    }

    /// The server appends by itself.
    fn say(&mut self, event: NotebookEvent) {
        self.own += 1;
        let id = EventId {
            writer: "ward".into(),
            number: self.own,
        };
        self.append(Entry::pending(id, event));
    }

    fn append(&mut self, mut entry: Entry<NotebookEvent>) {
        entry.actor = Some("x".into());
        self.base.state.apply(&entry);
        self.base.seq = self.base.seq.next();
        self.log.push(entry);
        let active = self.base.state.sessions().iter();
        assert!(active.filter(|session| session.is_active()).count() <= 1);
    }

    // What people and the gate do.

    fn request(&mut self) {
        let cell = self.dice.roll(7);
        let (cell_id, _) = cells()[if cell == 6 { 2 } else { cell % 2 }].clone();
        let execution_id = ExecutionId::new(format!("e{}", self.requested.len())).unwrap();
        self.requested.push(execution_id.clone());
        self.say(NotebookEvent::ExecutionRequested(ExecutionRequested {
            execution_id,
            cell_id,
            runtime_type: None,
            role: None,
        }));
    }

    /// The gate lets the first that waits run, on the session that is there.
    fn assign(&mut self) {
        let state = &self.base.state;
        let mut waiting = state
            .queue()
            .filter(|run| run.state == ExecutionState::Requested)
            .map(|run| run.execution_id.clone());
        let next = waiting.next();
        drop(waiting);
        let session = state.active(None).map(|one| one.session_id.clone());
        let (Some(execution_id), Some(session_id)) = (next, session) else {
            return;
        };
        // Now and then it is for another runtime, such as one of another type.
        let session_id = match !self.calm && self.dice.one_in(8) {
            true => foreign(),
            false => session_id,
        };
        let event = ExecutionAssigned {
            execution_id,
            session_id,
        };
        self.say(NotebookEvent::ExecutionAssigned(event.clone()));
        if self.dice.one_in(4) {
            self.say(NotebookEvent::ExecutionAssigned(event));
        }
    }

    fn cancel(&mut self) {
        let open: Vec<_> = self.base.state.queue().cloned().collect();
        if open.is_empty() {
            return;
        }
        let run = &open[self.dice.roll(open.len())];
        let execution_id = run.execution_id.clone();
        self.wished_to_stop.insert(execution_id.clone());
        self.say(NotebookEvent::ExecutionCancel(ExecutionCancel {
            execution_id: execution_id.clone(),
        }));
        // What no runtime has yet, Ward cancels itself.
        if run.state == ExecutionState::Requested {
            self.say(NotebookEvent::ExecutionCancelled(ExecutionCancelled {
                execution_id,
            }));
        }
    }

    /// Somebody wants the runtime that is there to begin anew: what it has may be stopped for it.
    fn restart(&mut self) {
        let Some(active) = self.base.state.active(None) else {
            return;
        };
        let session_id = active.session_id.clone();
        self.say(NotebookEvent::RuntimeRestart(RuntimeRestart { session_id }));
        let open = self.base.state.queue().map(|run| run.execution_id.clone());
        self.may_be_stopped.extend(open);
    }

    /// A session was not heard of for too long; now and then one that lives.
    fn expire(&mut self) {
        let Some(active) = self.base.state.active(None) else {
            return;
        };
        let session = active.session_id.clone();
        let alive = self.processes.iter().any(|process| {
            process.machine.is_some() && process.token.as_ref().is_some_and(|t| t.0 == session)
        });
        if !alive || (!self.calm && self.dice.one_in(2)) {
            self.seen.timed_out += 1;
            self.terminate(&session, Termination::Timeout);
        }
    }

    /// Ends a session, and what was assigned to it.
    fn terminate(&mut self, session: &SessionId, reason: Termination) {
        self.say(NotebookEvent::RuntimeTerminated(RuntimeTerminated {
            session_id: session.clone(),
            reason,
            message: None,
        }));
        self.bury(session);
    }

    fn bury(&mut self, session: &SessionId) {
        self.tokens.remove(session);
        let its = self.base.state.queue();
        let its = its.filter(|run| run.session_id.as_ref() == Some(session));
        let its: Vec<ExecutionId> = its.map(|run| run.execution_id.clone()).collect();
        for execution_id in its {
            self.say(NotebookEvent::ExecutionCompleted(ExecutionCompleted {
                execution_id,
                outcome: Outcome::Failed(Failed {
                    kind: "runtime_lost".into(),
                    message: "gone".into(),
                }),
                execution_count: None,
            }));
        }
    }

    // The server's door.

    fn announce(&mut self, asked: &Announcement) -> (Token, Seq) {
        let going_on = asked.session_id.clone().filter(|id| {
            let session = self.base.state.session(id);
            session.is_some_and(|session| session.is_active())
        });
        let session = match going_on {
            Some(session_id) => {
                self.seen.resumed += 1;
                self.say(NotebookEvent::RuntimeRenewed(RuntimeUpdated {
                    session_id: session_id.clone(),
                    state: SessionState::Starting,
                }));
                session_id
            }
            None => {
                if let Some(older) = self.base.state.active(None) {
                    let older = older.session_id.clone();
                    self.seen.displaced += 1;
                    self.terminate(&older, Termination::Displaced);
                }
                self.sessions += 1;
                let session_id = SessionId::new(format!("s{}", self.sessions)).unwrap();
                self.say(NotebookEvent::RuntimeStarted(RuntimeStarted {
                    session_id: session_id.clone(),
                    runtime_id: asked.runtime_id.clone(),
                    runtime_type: asked.runtime_type.clone(),
                    client_id: asked.client_id.clone(),
                    capabilities: asked.capabilities.clone(),
                }));
                session_id
            }
        };
        let generation = self.tokens.entry(session.clone()).or_default();
        *generation += 1;
        ((session, *generation), self.base.seq)
    }

    fn push(
        &mut self,
        expected: Seq,
        entries: Vec<Entry<NotebookEvent>>,
        token: Option<&Token>,
    ) -> Message {
        let known = |entry: &Entry<NotebookEvent>| self.base.state.has(&entry.id);
        if expected != self.base.seq || entries.iter().any(known) {
            let head = self.base.seq;
            return Message::Replica(Fed::Behind { head });
        }
        let living =
            token.filter(|(session, generation)| self.tokens.get(session) == Some(generation));
        let Some((session, _)) = living else {
            self.seen.refused_pushes += 1;
            return Message::Refused;
        };
        for entry in &entries {
            assert_eq!(entry.event.author(), Author::Runtime);
            if let Some(id) = entry.event.execution() {
                let run = self.base.state.execution(id).unwrap();
                assert_eq!(run.session_id.as_ref(), Some(session), "another's run");
            }
        }
        let session = session.clone();
        let mut over = false;
        for entry in entries {
            over |= matches!(entry.event, NotebookEvent::RuntimeTerminated(_));
            self.append(entry);
        }
        if over {
            self.bury(&session);
        }
        let head = self.base.seq;
        Message::Replica(Fed::Accepted { expected, head })
    }

    // The network.

    fn deliver(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let which = match self.calm {
            true => 0,
            false => self.dice.roll(self.flying.len()),
        };
        let flying = self.flying.remove(which);
        if !self.calm && self.dice.one_in(12) {
            return;
        }
        let Flying { agent, life, .. } = flying;
        let answer = match flying.message {
            Message::Announce(asked) => {
                let (token, head) = self.announce(&asked);
                Some(Message::Given(token, head))
            }
            Message::Push(expected, entries, token) => {
                if !self.calm && self.dice.one_in(10) {
                    // It came twice.
                    let _ = self.push(expected, entries.clone(), token.as_ref());
                }
                Some(self.push(expected, entries, token.as_ref()))
            }
            Message::Pull(after) => {
                let from = usize::try_from(after.get()).unwrap();
                let entries = self.log.get(from..).unwrap_or_default().to_vec();
                Some(Message::Replica(Fed::Pulled { after, entries }))
            }
            told => {
                if self.processes[agent].life == life {
                    self.tell(agent, told);
                }
                None
            }
        };
        if let Some(message) = answer {
            self.flying.push(Flying {
                agent,
                life,
                to_server: false,
                message,
            });
        }
    }

    fn tell(&mut self, agent: usize, message: Message) {
        match message {
            Message::Given(token, head) => {
                let process = &mut self.processes[agent];
                if process.token.is_some() {
                    return;
                }
                process.token = Some(token.clone());
                process.last = Some(token.0.clone());
                self.feed(
                    agent,
                    Input::Announced {
                        session_id: token.0,
                        head,
                    },
                );
            }
            Message::Refused => self.feed(agent, Input::Lost("refused".into())),
            Message::Replica(input) => {
                self.replicate(agent, input);
                self.feed(agent, Input::Changed);
            }
            Message::Announce(_) | Message::Push(..) | Message::Pull(_) => {}
        }
    }

    /// Gives an agent's replica something, and sends what it asks for.
    fn replicate(&mut self, agent: usize, input: Fed<NotebookEvent>) {
        let process = &mut self.processes[agent];
        let life = process.life;
        for effect in process.replica.take(input) {
            let message = match effect {
                Replicating::Keep { .. } => continue,
                Replicating::Push { expected, entries } => {
                    Message::Push(expected, entries, process.token.clone())
                }
                Replicating::Pull { after } => Message::Pull(after),
            };
            self.flying.push(Flying {
                agent,
                life,
                to_server: true,
                message,
            });
        }
    }

    // The agents.

    fn boot(&mut self, agent: usize, resume: bool) {
        let process = &mut self.processes[agent];
        process.life += 1;
        process.writer = format!("w{agent}-{}", process.life);
        process.replica = Replica::new(process.writer.clone());
        process.token = None;
        process.restarting = false;
        process.ending = None;
        let options = AgentOptions {
            runtime_id: format!("r{agent}"),
            runtime_type: "echo".into(),
            client_id: "ada".into(),
            session_id: process.last.clone().filter(|_| resume),
        };
        let capabilities = Capabilities {
            can_execute_code: true,
            ..Capabilities::default()
        };
        process.machine = Some(Machine::new(options, capabilities));
        self.replicate(agent, Fed::Connected);
        self.retry(agent);
        self.feed(agent, Input::Start);
    }

    fn crash(&mut self, agent: usize) {
        let process = &mut self.processes[agent];
        if process.machine.take().is_some() && process.handler.take().is_some() {
            self.seen.crashed_while_running += 1;
        }
        self.processes[agent].life += 1;
    }

    /// Nothing came for too long: what is not answered is asked again.
    fn retry(&mut self, agent: usize) {
        if self.processes[agent].machine.is_none() {
            return;
        }
        self.replicate(agent, Fed::Retry);
    }

    /// The handler does something.
    fn work(&mut self, agent: usize) {
        if std::mem::take(&mut self.processes[agent].restarting) {
            return self.feed(agent, Input::Restarted);
        }
        let Some((id, told)) = self.processes[agent].handler.clone() else {
            return;
        };
        if self.dice.one_in(2) && !self.calm {
            let text = Said::Markdown("x".into());
            return self.feed(agent, Input::Said(id, vec![text]));
        }
        self.processes[agent].handler = None;
        let finished = match (told, self.dice.roll(3)) {
            (true, 0) => Finished::Cancelled,
            (true, 1) => Finished::failed("KeyboardInterrupt"),
            (false, 0) => Finished::failed("ZeroDivisionError"),
            _ => Finished::Ok,
        };
        self.feed(agent, Input::Finished(id, finished));
    }

    /// Gives an agent something, and does what it says.
    fn feed(&mut self, agent: usize, input: Input) {
        let mut inputs = std::collections::VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let process = &mut self.processes[agent];
            let Some(machine) = &mut process.machine else {
                return;
            };
            let seen = process.replica.confirmed().clone();
            for effect in machine.take(input, &seen) {
                self.effect(agent, effect, &mut inputs);
            }
        }
    }

    fn effect(
        &mut self,
        agent: usize,
        effect: Effect,
        inputs: &mut std::collections::VecDeque<Input>,
    ) {
        let life = self.processes[agent].life;
        match effect {
            Effect::Announce(announcement) => self.flying.push(Flying {
                agent,
                life,
                to_server: true,
                message: Message::Announce(announcement),
            }),
            Effect::Append { number, event } => {
                self.replicate(agent, Fed::Write(event));
                let process = &self.processes[agent];
                let id = EventId {
                    writer: process.writer.clone(),
                    number: process.replica.written(),
                };
                inputs.push_back(Input::Wrote { number, id });
            }
            Effect::Run(job) => self.began(agent, &job.execution_id),
            Effect::Cancel(id) => {
                let process = &mut self.processes[agent];
                let (running, told) = process.handler.as_mut().expect("nothing to cancel");
                assert_eq!(*running, id);
                *told = true;
                if self.wished_to_stop.contains(&id) {
                    self.seen.cancelled_while_running += 1;
                }
            }
            Effect::Restart => {
                let process = &mut self.processes[agent];
                assert!(process.handler.is_none(), "nothing runs meanwhile");
                assert!(!process.restarting, "one at a time");
                process.restarting = true;
                self.seen.restarted += 1;
            }
            Effect::End(ending) => {
                let process = &mut self.processes[agent];
                match ending {
                    Ending::Displaced if process.handler.is_some() => {
                        self.seen.displaced_while_running += 1;
                    }
                    Ending::Shutdown => self.seen.shut_down += 1,
                    _ => {}
                }
                process.handler = None;
                process.machine = None;
                process.ending = Some(ending);
            }
        }
    }

    /// A handler begins: here is what must hold.
    fn began(&mut self, agent: usize, id: &ExecutionId) {
        let process = &mut self.processes[agent];
        assert!(process.handler.is_none(), "{id}: one at a time");
        assert!(!process.restarting, "{id} runs while it begins anew");
        let (session, _) = process.token.clone().expect("no session");
        let earlier = self.ran.iter().any(|(ran, _)| ran == id);
        assert!(!earlier, "{id} runs twice");
        let assigned = self.log.iter().position(|entry| {
            matches!(&entry.event, NotebookEvent::ExecutionAssigned(event)
                if event.execution_id == *id && event.session_id == session)
        });
        let started = self.log.iter().position(|entry| {
            matches!(&entry.event, NotebookEvent::ExecutionStarted(event)
                if event.execution_id == *id && entry.id.writer == process.writer)
        });
        assert!(assigned.is_some(), "{id} runs unassigned");
        assert!(started > assigned, "{id} runs before it is written");
        let number = |id: &ExecutionId| id.as_str()[1..].parse::<u64>().unwrap();
        let before = self.ran.iter().filter(|(_, by)| *by == session);
        let last = before.map(|(id, _)| number(id)).max();
        assert!(last < Some(number(id)), "{id} runs out of order");
        self.ran.push((id.clone(), session));
        process.handler = Some((id.clone(), false));
        self.seen.runs += 1;
    }

    /// The storm is over: messages arrive, nobody crashes, dead sessions are noticed. All runs come
    /// to their end, and one agent is there.
    pub(crate) fn settle(&mut self) {
        self.calm = true;
        self.bury(&foreign());
        if self
            .processes
            .iter()
            .all(|process| process.machine.is_none())
        {
            self.boot(0, true);
        }
        for round in 0..400 {
            assert!(round < 399, "somebody is stuck: {:?}", self.stuck());
            while !self.flying.is_empty() {
                self.deliver();
            }
            self.reannounce();
            self.expire();
            self.assign();
            for agent in 0..self.processes.len() {
                self.work(agent);
                self.retry(agent);
            }
            if self
                .processes
                .iter()
                .all(|process| process.machine.is_none())
            {
                self.boot(0, true);
            }
            let idle = self
                .flying
                .iter()
                .all(|flying| flying.to_server && matches!(flying.message, Message::Pull(_)));
            let settled = self.processes.iter().all(|process| {
                let busy = process.handler.is_some()
                    || process.restarting
                    || process.replica.pending().next().is_some();
                process.machine.is_none() || (process.token.is_some() && !busy)
            });
            let seen = self.processes.iter().all(|process| {
                process.machine.is_none() || process.replica.head() == self.base.seq
            });
            if idle && settled && seen && self.base.state.queue().next().is_none() {
                break;
            }
        }
        self.check();
    }

    /// Whoever was not answered asks again, as its driver does.
    fn reannounce(&mut self) {
        for agent in 0..self.processes.len() {
            let process = &self.processes[agent];
            if process.machine.is_some() && process.token.is_none() {
                let announcement = Announcement {
                    runtime_id: format!("r{agent}"),
                    runtime_type: "echo".into(),
                    client_id: "ada".into(),
                    capabilities: Capabilities {
                        can_execute_code: true,
                        ..Capabilities::default()
                    },
                    session_id: None,
                };
                self.flying.push(Flying {
                    agent,
                    life: process.life,
                    to_server: true,
                    message: Message::Announce(announcement),
                });
            }
        }
    }

    fn stuck(&self) -> Vec<String> {
        let open = self.base.state.queue();
        open.map(|run| format!("{run:?}")).collect()
    }

    fn check(&mut self) {
        let alive: Vec<&Process> = self
            .processes
            .iter()
            .filter(|process| process.machine.is_some())
            .collect();
        assert_eq!(alive.len(), 1, "exactly one agent stays");
        let active = self.base.state.active(None).map(|one| &one.session_id);
        let its = alive[0].token.as_ref().map(|token| &token.0);
        assert_eq!(active, its, "the one that stays has the notebook");
        for run in self.base.state.executions() {
            let id = &run.execution_id;
            let ran = self.ran.iter().any(|(ran, _)| ran == id);
            match run.state {
                ExecutionState::Completed => assert!(ran, "{id} completed without a run"),
                ExecutionState::Cancelled => {
                    self.seen.cancelled += 1;
                    let wished = self.wished_to_stop.contains(id);
                    let stopped = self.may_be_stopped.contains(id);
                    assert!(wished || stopped, "{id}: nobody wished that");
                }
                ExecutionState::Failed => {
                    let failed = run.failed.as_ref().unwrap();
                    match failed.kind.as_str() {
                        "not_capable" => {
                            self.seen.not_capable += 1;
                            assert!(!ran && run.cell_id.as_str() == "q");
                        }
                        "error" => assert_eq!(failed.message, "ZeroDivisionError", "{id}"),
                        kind => assert_eq!(kind, "runtime_lost", "{id}"),
                    }
                }
                open => panic!("{id} is still {open:?}"),
            }
        }
    }
}
