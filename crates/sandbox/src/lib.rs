//! Confines commands with what the kernel offers.
//!
//! The public surface states intent: a [`Wall`] and a [`Command`]. How each system holds it is
//! private.

#![allow(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("Ward's sandbox knows Linux only, for now.");

pub mod error;
mod linux;
pub mod proxy;
pub mod room;
pub mod wall;

pub use error::SandboxError;
pub use room::{Command, End, Outcome, Room, RoomOptions, Running, Stdio, Stopper};
pub use wall::{Limits, Net, Wall, WidenedAccess, Widening};

/// The part of `main` that every binary with rooms calls first: where this process was started to
/// hold a room, it does so and never returns.
pub fn enter_if_holder() {
    linux::launch::enter_if_launcher();
}

/// What the sandbox can enforce on this machine. Tries it, once per process.
#[must_use]
pub fn probe(minimum: protocol::sandbox::Tier) -> protocol::sandbox::SandboxStatus {
    protocol::sandbox::SandboxStatus {
        tier: protocol::sandbox::Tier::None,
        minimum,
        layers: Vec::new(),
    }
}
