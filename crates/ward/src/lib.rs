//! The command line, and the composition of the modules below it; nothing else.
//!
//! [`main`] is the whole path: become a room's holder if that is what this process was started
//! for, read the arguments, run one sub-command, turn its end into an exit code. Each sub-command
//! is one file in `commands`.
//!
//! Invariants:
//! - Nothing happens before [`sandbox::enter_if_holder`]: no thread, no allocation of note, no log.
//! - `ward exec` and `ward doctor` never start an async runtime; what they cost is what the sandbox
//!   costs.
//! - Standard output belongs to what was asked for; everything Ward has to say goes to standard
//!   error, prefixed `ward:`.

#![forbid(unsafe_code)]

mod address;
mod agents;
mod app;
mod approval;
mod asked;
mod chat;
mod cli;
mod client;
mod commands;
mod console;
mod duration;
mod folders;
mod ids;
mod log;
mod opener;
mod paint;
mod parent;
mod settings;
mod signals;
mod size;
mod workspace;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// An action is hundreds of small allocations, for which the system's own takes a sixth of the
/// processor time. docs/benchmarks.md has what this one brings and takes.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs Ward as the arguments say, to its end.
pub fn main() -> ExitCode {
    sandbox::enter_if_holder();
    cli::run()
}
