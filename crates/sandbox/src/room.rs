//! A room: the namespaces of one session, and the commands that run in it.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use protocol::sandbox::{SandboxReport, Tier};

use crate::error::SandboxError;
use crate::wall::{Wall, Widening};

/// How to open a room.
#[derive(Debug, Clone)]
pub struct RoomOptions {
    /// What its commands may touch.
    pub wall: Wall,
    /// A folder of Ward's own; the room keeps its scratch home below it and takes it away at the end.
    pub state: PathBuf,
    /// The weakest tier that will do.
    pub minimum: Tier,
}

/// An open room. Dropping it ends every command in it.
#[derive(Debug)]
pub struct Room {
    tier: Tier,
}

impl Room {
    /// Opens a room. Blocks for a few milliseconds.
    pub fn open(_options: RoomOptions) -> Result<Self, SandboxError> {
        Err(SandboxError::Workspace("not yet".into()))
    }

    /// The tier it holds.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Starts a command. Blocks until it runs or could not be started, about a millisecond.
    pub fn spawn(&self, _command: Command) -> Result<Running, SandboxError> {
        Err(SandboxError::Workspace("not yet".into()))
    }
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// The words; the program is looked up in `PATH` inside the room.
    pub argv: Vec<OsString>,
    /// Where it runs: a real path inside the workspace.
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
}

impl Running {
    /// What can stop it from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper {}
    }

    /// Watches over it to its end. Blocks: give it a thread. When this returns, nothing that the
    /// command started is left.
    pub fn wait(self) -> Outcome {
        Outcome {
            end: End::Exited(0),
            timed_out: false,
            duration: Duration::ZERO,
            report: SandboxReport::quiet(Tier::None),
        }
    }
}

/// Stops a command and all that it started.
#[derive(Debug, Clone)]
pub struct Stopper {}

impl Stopper {
    /// Asks the command to end (SIGTERM) and ends it for good 100 ms later.
    pub fn stop(&self) {}

    /// Ends it at once.
    pub fn kill(&self) {}
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
