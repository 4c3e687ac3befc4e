//! The notebook agent as a process: its store over HTTP, its arguments, and Jupyter kernels that run
//! inside Ward's sandbox.
//!
//! [`create_native_runtime_agent`] gives an agent and its store; [`Kernels`] is the handler that runs
//! cells on a Jupyter kernel. What an agent is, [`runtime_core`] says; all of it is here too.
//!
//! Invariants:
//! - A kernel is started in a room and nowhere else: no network, no home folder, the workspace and
//!   its own environment alone.
//! - When an agent ends, however it ends, its kernel does.
//! - A message of a kernel's that is too large takes no room here, and that it was is told.
//! - The token is sent to Ward's own address and is in no log.

#![forbid(unsafe_code)]

mod args;
mod artifacts;
mod comms;
mod create;
mod heard;
mod http;
mod kernel;
mod kernels;
mod launch;
mod owner;
mod relay;
mod sockets;
mod spec;
mod store;
mod terminal;

pub use args::{BadArgs, RuntimeArgs, parse_runtime_args};
pub use comms::carry_comms;
pub use create::{
    CreateError, create_agent_on, create_native_runtime_agent, open_store, runtime_type,
};
pub use http::{Answer, Events, Happened, Http, Remote, Request};
pub use kernel::KernelError;
pub use kernels::{KernelOptions, Kernels};
pub use runtime_core::*;
pub use spec::{KernelSpec, NoKernel, Specs};
pub use store::{HttpStore, OpenError};
