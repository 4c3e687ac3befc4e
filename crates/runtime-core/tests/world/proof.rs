//! What must hold: whenever a run begins, and when the storm is over.

use notebook::{Capabilities, ExecutionId, ExecutionState, NotebookEvent};
use runtime_core::Announcement;

use super::{Flying, Message, Process, World, foreign};

impl World {
    /// A handler begins: here is what must hold.
    pub(super) fn began(&mut self, agent: usize, id: &ExecutionId) {
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
    pub(super) fn reannounce(&mut self) {
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

    pub(super) fn stuck(&self) -> Vec<String> {
        let open = self.base.state.queue();
        open.map(|run| format!("{run:?}")).collect()
    }

    pub(super) fn check(&mut self) {
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
