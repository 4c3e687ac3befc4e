//! The local runtime: a registry of file and terminal actions behind JSON-RPC.
//!
//! It does what it is asked and decides nothing: whether an action may happen is the gate's
//! business. What it keeps, whoever asks:
//!
//! - Standalone, a file action touches the workspace and nothing else. Behind a gate it touches
//!   exactly the paths that were decided on, and never Ward's own. Paths are walked by descriptor;
//!   a path is never checked as text and then opened by name.
//! - A write replaces a file whole or leaves it as it was.
//! - What carries authority (`protocol::protected`) is never changed by a file action.
//! - Bad input is a [`protocol::Failure`] with a kind and a sentence, never a panic.

#![forbid(unsafe_code)]

pub mod action;
mod connection;
pub mod context;
mod executions;
pub mod fs;
pub mod grounds;
pub mod listen;
mod near;
pub mod output;
pub mod permit;
pub mod registry;
pub mod runtime;
mod signals;
mod stdio;
pub mod terminal;
pub mod token;
pub mod workspace;

pub use listen::{ListenError, Listener, Reach, serve_listen};
pub use near::Near;
pub use runtime::{Entrance, Runtime, RuntimeOptions};
pub use signals::stop_on_signals;
pub use stdio::{Reader, Writer, serve_stdio, standard_streams};
pub use terminal::RoomSettings;
pub use token::{Token, TokenError};
