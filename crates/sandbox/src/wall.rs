//! The wall: what a confined command may touch, stated as intent. How it is held is private.

use std::path::PathBuf;
use std::sync::Arc;

use crate::proxy::{HostList, Judge};

/// What the commands of one room may touch.
#[derive(Debug, Clone)]
pub struct Wall {
    /// The one folder of the user's that is visible and writable, but for what is protected in it.
    pub workspace: PathBuf,
    /// What the network is.
    pub net: Net,
    /// How much it may use.
    pub limits: Limits,
}

/// What the network is to a command.
#[derive(Debug, Clone)]
pub enum Net {
    /// Its own loopback and nothing else.
    None,
    /// The same; and where it cannot have a loopback of its own, it can still be a server for whoever
    /// is outside, at sockets in the folders that it may write. It connects to none.
    Listening,
    /// These, by name and port, through the proxy.
    Hosts(HostList),
    /// Whatever this judge lets through the proxy, asked for each connection while that is held.
    Judged(Arc<dyn Judge>),
}

impl PartialEq for Net {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Listening, Self::Listening) => true,
            (Self::Hosts(one), Self::Hosts(other)) => one == other,
            (Self::Judged(one), Self::Judged(other)) => Arc::ptr_eq(one, other),
            (Self::None | Self::Listening | Self::Hosts(_) | Self::Judged(_), _) => false,
        }
    }
}

impl Eq for Net {}

/// How much a command and all that it starts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory over the whole tree.
    pub memory: u64,
    /// Processes and threads at once.
    pub pids: u32,
    /// Bytes of the private `/tmp`.
    pub tmp: u64,
}

/// A path outside the wall that one command may touch all the same.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Widening {
    /// The real path on the host.
    #[serde(with = "crate::os_text")]
    pub path: PathBuf,
    /// Whether it may be written.
    pub access: WidenedAccess,
}

/// How far a widening goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WidenedAccess {
    /// To be read only.
    Read,
    /// To be written as well.
    Write,
}
