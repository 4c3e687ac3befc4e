//! A server, a network that loses, doubles and reorders, and agents that crash: what there is of
//! them, and how it goes on, step by step.

mod agents;
mod network;
mod proof;
mod server;

use std::collections::{BTreeMap, BTreeSet};

use notebook::{CellCreated, CellId, CellType, ExecutionId, Notebook, NotebookEvent, SessionId};
use runtime_core::{Announcement, Ending, Input, Machine};
use store::Seq;
use store::replica::{Base, Entry, Input as Fed, Replica};

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
}
