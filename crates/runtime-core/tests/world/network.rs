//! The network between them: it loses, doubles and reorders.

use notebook::NotebookEvent;
use runtime_core::Input;
use store::replica::{Effect as Replicating, Input as Fed};

use super::{Flying, Message, World};

impl World {
    pub(super) fn deliver(&mut self) {
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

    pub(super) fn tell(&mut self, agent: usize, message: Message) {
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
    pub(super) fn replicate(&mut self, agent: usize, input: Fed<NotebookEvent>) {
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

    /// Nothing came for too long: what is not answered is asked again.
    pub(super) fn retry(&mut self, agent: usize) {
        if self.processes[agent].machine.is_none() {
            return;
        }
        self.replicate(agent, Fed::Retry);
    }
}
