//! The agents: they start, work, crash and go on.

use notebook::Capabilities;
use runtime_core::{AgentOptions, Effect, Ending, Finished, Input, Machine, Said};
use store::replica::{EventId, Input as Fed, Replica};

use super::{Flying, Message, World};

impl World {
    pub(super) fn boot(&mut self, agent: usize, resume: bool) {
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

    pub(super) fn crash(&mut self, agent: usize) {
        let process = &mut self.processes[agent];
        if process.machine.take().is_some() && process.handler.take().is_some() {
            self.seen.crashed_while_running += 1;
        }
        self.processes[agent].life += 1;
    }

    /// The handler does something.
    pub(super) fn work(&mut self, agent: usize) {
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
    pub(super) fn feed(&mut self, agent: usize, input: Input) {
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

    pub(super) fn effect(
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
}
