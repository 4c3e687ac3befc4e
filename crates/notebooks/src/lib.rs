//! Notebooks as Ward keeps them: streams of events that people and their runtimes append to, and
//! executions that go through the gate.
//!
//! [`Notebooks`] has all of them and is how the gate finds a notebook's runtime
//! ([`gate::runtime::Elsewhere`]). `book` is one notebook: its state in memory, its events in the
//! store. `check` says who may append what. `sessions` keeps the runtimes, `place` is where the gate
//! runs a cell, `drive` carries a wish to the gate and its outcome back. `comms` passes on what kernels
//! and widgets say to each other.
//!
//! What always holds:
//! - The actor of an event is who authenticated, and when is Ward's clock, whatever an entry says.
//! - An event is in the store before it is told.
//! - Only the gate's permit appends `execution.assigned`, once for each run, to one session; only
//!   that session says what becomes of the run.
//! - Of the runtimes that a notebook can have one of, the newest has it; the others are over.
//! - A run that nobody works on any more ends as failed, with a reason; cancelled is cancelled.
//! - A writer's name belongs to whoever wrote under it first.
//! - Leases, presence and messages to and from widgets are never stored. Sizes and numbers have limits.

#![forbid(unsafe_code)]

mod agents;
mod artifacts;
mod beside;
mod book;
mod check;
mod comms;
mod drive;
mod index;
mod input;
mod log;
mod notebooks;
mod place;
mod sessions;
mod wire;

pub use agents::{Agents, NewAgent};
pub use artifacts::{Artifacts, MAX_ARTIFACT};
pub use beside::Beside;
pub use book::{Book, Passing};
pub use notebooks::{MAX_FILE, Notebooks, Options};
pub use wire::{
    AgentInfo, AgentList, Announced, Appended, CommsDropped, Compacted, FetchInput, Input,
    KernelInfo, NotebookFile, NotebookInfo, NotebookList, NotebookState, NumberedComm, PostComms,
    PostEvents, PostInput, PostNotebook, PostNotebookAgent, PostNotebookRuntime, PostPresence,
    Present, TakenComms, ToldComm, ToldComms,
};
