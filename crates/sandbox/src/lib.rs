//! Confines commands with what the kernel offers.
//!
//! The public surface states intent: a [`Wall`] and a [`Command`]. How each system holds it is
//! private.

#![allow(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("Ward's sandbox knows Linux only, for now.");

pub mod aside;
mod command;
pub mod error;
mod gateway;
mod linux;
mod os_text;
pub mod proxy;
mod room;
mod state;
mod streams;
mod wall;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use protocol::sandbox::{SandboxStatus, Tier};

pub use command::{Command, End, Interrupt, Interrupts, Outcome, Running, Stdio, Stopper};
pub use error::SandboxError;
pub use room::{Room, RoomOptions};
pub use state::OwnFolder;
pub use wall::{Limits, Net, Wall, WidenedAccess, Widening};

/// The part of `main` that every binary with rooms calls first: where this process was started to
/// hold a room, it does so and never returns.
pub fn enter_if_holder() {
    linux::launch::enter_if_launcher();
}

/// Lets go of what only the start of a program had to have in memory: for one that is about to wait
/// for a long time.
pub fn settle() {
    linux::code::let_go();
}

/// The real path of a folder that can be a workspace. Refuses what belongs to the system, and what
/// holds the home folder or one of Ward's own: all of it would be inside the wall.
pub fn usable_workspace(folder: &Path, own: &[PathBuf]) -> Result<PathBuf, SandboxError> {
    let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
    linux::plan::usable_workspace(folder, &linux::plan::home(), &own)
}

/// What the sandbox can enforce on this machine. Tries it once per process, in a few
/// milliseconds; `state` is a folder of Ward's own.
#[must_use]
pub fn probe(minimum: Tier, state: &Path) -> SandboxStatus {
    static STATUS: OnceLock<SandboxStatus> = OnceLock::new();
    let status = STATUS.get_or_init(|| linux::probe::probe(minimum, state));
    SandboxStatus {
        minimum,
        ..status.clone()
    }
}
