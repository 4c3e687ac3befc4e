//! Watches over one command from outside: hears what the wall stopped, keeps time and memory, and
//! knows that nothing is left when it ends.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::sandbox::Limit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::limits;
use super::message::Report;
use super::notify::{Seen, Watcher, serve};
use super::wire::Wire;
use crate::command::{End, Stopper};
use crate::gateway::Gateway;

/// How long a command has between being asked to end and being ended.
pub(crate) const GRACE: Duration = Duration::from_millis(100);

/// A command to watch over.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) stopper: Stopper,
    pub(crate) init_pid: i32,
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
    pub(crate) fn watch(mut self) -> Watch {
        let mut end = None;
        let mut limit = None;
        let mut asked: Option<Instant> = None;
        let deadline = self.timeout.map(|timeout| self.started + timeout);
        let mut next_look = self
            .memory
            .map(|_| self.started + Duration::from_millis(20));
        loop {
            let now = Instant::now();
            let wake = [
                deadline.filter(|_| asked.is_none()),
                next_look,
                asked.map(|at| at + GRACE),
            ];
            let wait = wake
                .iter()
                .flatten()
                .min()
                .map(|at| at.saturating_duration_since(now));
            let ready = self.poll(wait, end.is_some());

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
                match self.reports.receive::<Report>() {
                    Ok(Some((Report::Ended { status }, _))) => end = Some(ended(status)),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => end = end.or(Some(End::Signalled(libc::SIGKILL))),
                }
            }
            if ready.gone {
                break;
            }

            let now = Instant::now();
            if let Some(at) = asked {
                if now >= at + GRACE {
                    self.stopper.kill();
                    asked = Some(now + Duration::from_secs(3600));
                }
            } else if deadline.is_some_and(|at| now >= at) {
                limit = Some(Limit::Time);
                asked = Some(now);
                self.stopper.ask();
            }
            if let (Some(most), Some(at)) = (self.memory, next_look)
                && now >= at
            {
                let held = limits::tree_memory(self.init_pid);
                if held > most {
                    limit = Some(Limit::Memory);
                    self.stopper.kill();
                }
                // Far from the bound it need not be looked at often.
                let pause = if held > most / 4 { 10 } else { 50 };
                next_look = Some(now + Duration::from_millis(pause));
            }
        }
        // What it said last may still lie in the wire.
        while end.is_none() {
            match self.reports.receive::<Report>() {
                Ok(Some((Report::Ended { status }, _))) => end = Some(ended(status)),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => end = Some(End::Signalled(libc::SIGKILL)),
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

    fn poll(&self, wait: Option<Duration>, ended: bool) -> Ready {
        let mut fds = vec![PollFd::new(&*self.stopper.init, PollFlags::IN)];
        let report = (!ended).then(|| {
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
        }
    }
}

#[derive(Debug)]
struct Ready {
    gone: bool,
    report: bool,
    listener: Heard,
    gateway: bool,
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
