//! Watches over one command from outside: hears what the wall stopped, keeps time and memory, and
//! knows that nothing is left when it ends.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::sandbox::Limit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::limits;
use super::message::Report;
use super::notify::{Seen, Watcher, serve};
use super::wire::Wire;
use crate::command::{End, Interrupt, Interrupts, Stopper};
use crate::gateway::Gateway;

/// How long a command has between being asked to end and being ended.
pub(crate) const GRACE: Duration = Duration::from_millis(100);

/// When the memory of a command is looked at first: most have ended by then.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// How often it is looked at where it is near its bound, and where it is not.
const OFTEN: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_millis(50);

/// How far the ending of a command has come.
#[derive(Debug, Clone, Copy)]
enum Ending {
    No,
    Asked(Instant),
    Ended,
}

/// A command to watch over.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) stopper: Stopper,
    pub(crate) init_pid: i32,
    /// How it ended, where that was said before it could be watched.
    pub(crate) ended: Option<i32>,
    pub(crate) reports: Wire,
    pub(crate) listener: Option<OwnedFd>,
    pub(crate) watcher: Watcher,
    pub(crate) started: Instant,
    pub(crate) timeout: Option<Duration>,
    pub(crate) gateway: Arc<Gateway>,
    /// The bound on memory, where no cgroup keeps it.
    pub(crate) memory: Option<u64>,
}

/// How a command ended, as far as its supervisor knows.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) end: End,
    pub(crate) timed_out: bool,
    pub(crate) limit: Option<Limit>,
    pub(crate) seen: Seen,
    pub(crate) duration: Duration,
}

impl Watched {
    /// Watches to the end.
    pub(crate) fn watch(mut self, mut interrupts: Option<&mut dyn Interrupts>) -> Watch {
        let mut end = self.ended.map(ended);
        let mut silent = false;
        let mut limit = None;
        let mut ending = Ending::No;
        let deadline = self.timeout.map(|timeout| self.started + timeout);
        let mut next_look = self.memory.map(|_| self.started + FIRST_LOOK);
        while end.is_none() {
            let next = match ending {
                Ending::No => deadline,
                Ending::Asked(at) => Some(at + GRACE),
                Ending::Ended => None,
            };
            let wake = next.into_iter().chain(next_look).min();
            let wait = wake.map(|at| at.saturating_duration_since(Instant::now()));
            let heard = interrupts.as_ref().map(|interrupts| interrupts.heard());
            let ready = self.poll(wait, silent, heard);

            match (ready.listener, &self.listener) {
                (Heard::Calls, Some(listener)) if serve(listener, &mut self.watcher) => {}
                // Nobody is left who could make a call.
                (Heard::Calls | Heard::End, _) => self.listener = None,
                (Heard::Nothing, _) => {}
            }
            if ready.gateway {
                self.gateway.start();
            }
            if ready.report {
                match self.next_report() {
                    Said::Ended(how) => end = Some(how),
                    // It was ended itself; what it held goes with it, which takes a moment longer.
                    Said::NoMore => silent = true,
                    Said::Else => {}
                }
            }
            // With its report nothing is left but an init that ends.
            if end.is_some() || ready.gone {
                break;
            }

            let now = Instant::now();
            let mut interrupts = interrupts.as_mut().filter(|_| ready.interrupts);
            while let Some(interrupt) = interrupts.as_mut().and_then(|who| who.next()) {
                ending = match (interrupt, ending) {
                    (Interrupt::Ask, Ending::No) => {
                        self.stopper.ask();
                        Ending::Asked(now)
                    }
                    (Interrupt::Ask, Ending::Asked(_) | Ending::Ended) => ending,
                    (Interrupt::Kill, _) => {
                        self.stopper.kill();
                        Ending::Ended
                    }
                };
            }
            match ending {
                Ending::No if deadline.is_some_and(|at| now >= at) => {
                    limit = Some(Limit::Time);
                    ending = Ending::Asked(now);
                    self.stopper.ask();
                }
                Ending::Asked(at) if now >= at + GRACE => {
                    ending = Ending::Ended;
                    self.stopper.kill();
                }
                Ending::No | Ending::Asked(_) | Ending::Ended => {}
            }
            if let (Some(most), Some(at)) = (self.memory, next_look)
                && now >= at
            {
                let held = limits::tree_memory(self.init_pid, most);
                if held > most {
                    limit = Some(Limit::Memory);
                    self.stopper.kill();
                }
                // Far from the bound it need not be looked at often.
                next_look = Some(now + if held > most / 4 { OFTEN } else { SELDOM });
            }
        }
        // What it said last may still lie in the wire.
        while end.is_none() && !silent {
            match self.next_report() {
                Said::Ended(how) => end = Some(how),
                Said::NoMore => silent = true,
                Said::Else => {}
            }
        }
        Watch {
            end: end.unwrap_or(End::Signalled(libc::SIGKILL)),
            timed_out: limit == Some(Limit::Time),
            limit,
            seen: self.watcher.finish(),
            duration: self.started.elapsed(),
        }
    }

    /// Takes what init says next.
    fn next_report(&self) -> Said {
        match self.reports.receive::<Report>() {
            Ok(Some((Report::Ended { status }, _))) => Said::Ended(ended(status)),
            Ok(Some(_)) => Said::Else,
            Ok(None) | Err(_) => Said::NoMore,
        }
    }

    fn poll(&self, wait: Option<Duration>, silent: bool, heard: Option<BorrowedFd<'_>>) -> Ready {
        let mut fds = vec![PollFd::new(&*self.stopper.init, PollFlags::IN)];
        let report = (!silent).then(|| {
            fds.push(PollFd::new(&self.reports, PollFlags::IN));
            fds.len() - 1
        });
        let listener = self.listener.as_ref().map(|listener| {
            fds.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
            fds.len() - 1
        });
        let gateway = self.gateway.waiting().map(|socket| {
            fds.push(PollFd::from_borrowed_fd(socket, PollFlags::IN));
            fds.len() - 1
        });
        let interrupts = heard.map(|heard| {
            fds.push(PollFd::from_borrowed_fd(heard, PollFlags::IN));
            fds.len() - 1
        });
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        // Interrupted or not: what is ready is told by the answers.
        let _ = poll(&mut fds, wait.as_ref());
        let ready = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        let heard = match listener.map(|at| fds[at].revents()) {
            Some(events) if events.contains(PollFlags::IN) => Heard::Calls,
            Some(events) if !events.is_empty() => Heard::End,
            Some(_) | None => Heard::Nothing,
        };
        Ready {
            gone: ready(Some(0)),
            report: ready(report),
            listener: heard,
            gateway: ready(gateway),
            interrupts: ready(interrupts),
        }
    }
}

#[derive(Debug)]
struct Ready {
    gone: bool,
    report: bool,
    listener: Heard,
    gateway: bool,
    interrupts: bool,
}

/// What init said.
#[derive(Debug)]
enum Said {
    /// How the command ended.
    Ended(End),
    /// Something else.
    Else,
    /// Nothing, and it will say no more.
    NoMore,
}

/// What there is at the seccomp listener.
#[derive(Debug)]
enum Heard {
    Nothing,
    Calls,
    End,
}

fn ended(status: i32) -> End {
    if libc::WIFSIGNALED(status) {
        End::Signalled(libc::WTERMSIG(status))
    } else {
        End::Exited(libc::WEXITSTATUS(status))
    }
}
