//! Agents: who answers for a model, and the loop that lets it act.
//!
//! [`Runner`] has all sessions. Read `run` first: it is the loop. [`provider`] turns a conversation
//! into a request that a model's maker understands, and the bytes that come back into one kind of
//! [`Delta`](provider::Delta) for all of them. `calls` is the way from what a model calls to the
//! gate, which is the only way to act from here.
//!
//! What always holds:
//! - Everything is written before it is told; a session is as far as its last event, also after the
//!   death of this process at any moment.
//! - Every call gets exactly one result, whatever comes between; results go back in the order of the
//!   calls.
//! - An agent's authority is that of its role and of all the roles above it, and the gate decides.
//! - A turn ends with [`Delta::Done`](provider::Delta::Done) or with an error, and nothing comes
//!   after either. An answer that was cut off is an error, never a shorter answer.
//! - What a provider said in a turn goes back to it verbatim and in order, known or not; to any
//!   other provider goes the normalised view.
//! - Once a delta was passed on, nothing is tried again.
//! - No key is in an error, a delta or a `Debug` output.

#![forbid(unsafe_code)]

mod agent;
mod calls;
mod compact;
mod cut;
mod delegate;
mod fork;
mod input;
mod journal;
mod place;
pub mod price;
pub mod provider;
mod resume;
mod run;
mod runner;
mod say;
mod session;
mod turn;

pub use runner::Runner;
pub use session::lately::{Listener, Written};
pub use session::{End, Session, Status};
