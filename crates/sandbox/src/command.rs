//! A command: what to start, what runs, how it ended.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::sandbox::{Limit, SandboxReport, Tier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::gateway::Gateway;
use crate::linux::limits::Cgroup;
use crate::linux::supervise::{GRACE, Watched};
use crate::linux::workspace::Stay;
use crate::wall::Widening;

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// The words; the program is looked up in `PATH` inside the room.
    pub argv: Vec<OsString>,
    /// Where it runs: a real path inside the workspace; anywhere where it is trusted.
    pub cwd: PathBuf,
    /// Added to the environment that the room gives.
    pub env: Vec<(OsString, OsString)>,
    /// What it is connected to.
    pub stdio: Stdio,
    /// When it is ended.
    pub timeout: Option<Duration>,
    /// What it alone may touch beyond the wall.
    pub widened: Vec<Widening>,
}

/// What a command's standard streams are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes; standard input is empty unless it is asked for.
    Piped {
        /// Whether standard input is a pipe.
        stdin: bool,
    },
    /// A terminal of its own.
    Pty {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Those of this process.
    Inherit,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    /// The writing end of its standard input, where that is a pipe.
    pub stdin: Option<File>,
    /// The reading end of its standard output, where that is a pipe.
    pub stdout: Option<File>,
    /// The reading end of its standard error, where that is a pipe.
    pub stderr: Option<File>,
    /// The master side of its terminal, where it has one.
    pub terminal: Option<File>,
    pub(crate) tier: Tier,
    pub(crate) stopper: Stopper,
    pub(crate) cgroup: Option<Arc<Cgroup>>,
    pub(crate) stay: Stay,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) watched: Watched,
}

impl Running {
    /// What can stop it from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Watches over it to its end. Blocks: give it a thread. When this returns, nothing that the
    /// command started is left.
    #[must_use]
    pub fn wait(self) -> Outcome {
        self.wait_hearing(None)
    }

    /// Likewise, and ends the command where that is asked for meanwhile. It takes no second thread.
    #[must_use]
    pub fn wait_hearing(self, interrupts: Option<&mut dyn Interrupts>) -> Outcome {
        let watch = self.watched.watch(interrupts);
        let mut report = SandboxReport::quiet(self.tier);
        report.stopped = watch.seen.stopped;
        report.scratch = watch.seen.scratch;
        report.limit = watch.limit;
        // What ended well was not ended for its memory.
        if watch.end != End::Exited(0) && self.cgroup.is_some_and(|cgroup| cgroup.has_killed()) {
            report.limit = report.limit.or(Some(Limit::Memory));
        }
        report.stopped.extend(self.gateway.take_stopped());
        report.set_aside = self.stay.end();
        Outcome {
            end: watch.end,
            timed_out: watch.timed_out,
            duration: watch.duration,
            report,
        }
    }
}

/// Somebody who may want a command to end, asked by the thread that watches over it.
pub trait Interrupts {
    /// Can be read from when there is something to hear.
    fn heard(&self) -> BorrowedFd<'_>;

    /// What there is to hear, now.
    fn next(&mut self) -> Option<Interrupt>;
}

/// How a command shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// It is asked, and ended for good where it has not 100 ms later.
    Ask,
    /// At once.
    Kill,
}

/// Stops a command and all that it started.
#[derive(Debug, Clone)]
pub struct Stopper {
    pub(crate) init: Arc<OwnedFd>,
    pub(crate) tier: Tier,
}

impl Stopper {
    /// Asks the command to end, and ends it for good where it has not 100 ms later. Blocks as long.
    pub fn stop(&self) {
        self.ask();
        let mut fds = [PollFd::new(&*self.init, PollFlags::IN)];
        if let Ok(grace) = Timespec::try_from(GRACE) {
            let _ = poll(&mut fds, Some(&grace));
        }
        self.kill();
    }

    /// Asks the command to end.
    pub(crate) fn ask(&self) {
        let _ = pidfd_send_signal(&*self.init, Signal::TERM);
    }

    /// Ends it at once.
    pub fn kill(&self) {
        // In a room the kernel ends everything with init; without one, init does it.
        let signal = if self.tier == Tier::Room {
            Signal::KILL
        } else {
            Signal::USR1
        };
        let _ = pidfd_send_signal(&*self.init, signal);
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its end.
    pub end: End,
    /// Whether the timeout ended it.
    pub timed_out: bool,
    /// From start to end.
    pub duration: Duration,
    /// What held it, and what was stopped.
    pub report: SandboxReport,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}
