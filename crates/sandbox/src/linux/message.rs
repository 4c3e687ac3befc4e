//! What Ward, a room's holder and a command's init say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::os_text::{self, OsText};
use crate::wall::Widening;

/// Holder to Ward, once: the room is built, or it is not.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ready {
    /// With the proxy's listening socket.
    Built,
    /// Which layer failed, and why.
    Failed { layer: Layer, why: String },
}

/// Ward to holder: start a command. With it come the wire for init, a pipe whose end says that
/// Ward may look there, and the three standard streams.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spawn {
    pub(crate) argv: Vec<OsText>,
    /// `NAME=value`.
    pub(crate) environment: Vec<OsText>,
    pub(crate) cwd: OsText,
    pub(crate) terminal: Option<Size>,
    /// Whether it keeps the terminal that Ward itself was started in.
    pub(crate) keeps_terminal: bool,
    /// Paths of the workspace to close for writing.
    pub(crate) protected: Vec<Protected>,
    /// Sockets of the workspace that others listen on.
    pub(crate) hidden: Vec<OsText>,
    pub(crate) widened: Vec<Widening>,
}

/// A terminal's size.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) cols: u16,
    pub(crate) rows: u16,
}

/// A path of the workspace that a command may not change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Protected {
    #[serde(with = "os_text")]
    pub(crate) path: PathBuf,
    /// Only its place is held: it cannot be moved away, but what is in it may change.
    pub(crate) place_only: bool,
}

/// To Ward, over the wire of one command: from the holder, from init, or from the command before
/// its exec.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A holder that lasts has forked an init, whose pidfd this is.
    Forked,
    /// With the seccomp listener.
    Listening,
    /// With the terminal's master side.
    Terminal,
    /// The command runs.
    Started,
    /// It does not, and nothing of it has run.
    Failed(Failure),
    /// It has ended, with this raw status, and nothing that it started is left.
    Ended { status: i32 },
}

/// Why a command was not started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    Layer { layer: Layer, why: String },
    Exec { errno: i32 },
}

/// The layers of the sandbox, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layer {
    Namespaces,
    Root,
    Proc,
    Protection,
    Widening,
    Terminal,
    Limits,
    Capabilities,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Loopback,
    WorkingDirectory,
}

impl Layer {
    /// As people read it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Root => "assembled root",
            Self::Proc => "fresh /proc",
            Self::Protection => "protected paths",
            Self::Widening => "widening",
            Self::Terminal => "terminal",
            Self::Limits => "limits",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::Loopback => "loopback",
            Self::WorkingDirectory => "working directory",
        }
    }
}
