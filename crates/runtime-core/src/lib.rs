//! The notebook agent: what runs the cells of a notebook, on whatever platform.
//!
//! Read [`Machine`] first: the agent as a state machine, inputs in, effects out. [`RuntimeAgent`]
//! drives it on a store that it is given ([`NotebookStore`]); what a cell does is a handler's
//! business, which has an [`ExecutionContext`] to say it with. [`echo()`] is the smallest handler.
//!
//! Invariants:
//! - No I/O, no clock, no async runtime, no `Send`: the crate builds for wasm32, and a platform
//!   gives the store, the time and the log.
//! - An agent runs what the server has confirmed to be assigned to its own session, nothing else;
//!   once, one at a time, in order. That it began is confirmed before it begins.
//! - Cancelled is cancelled, not failed. A cell beyond the agent's capabilities is refused with a
//!   sentence.
//! - An agent whose session is over ends, and says nothing more.
//! - What a handler says is coalesced and capped; what was dropped is said.

#![forbid(unsafe_code)]

mod agent;
mod artifact;
mod context;
mod echo;
mod log;
mod machine;
mod media;
mod options;
mod outbox;
mod store;
mod written;

pub use agent::{AgentHandle, Handler, RuntimeAgent};
pub use artifact::{ArtifactClient, ArtifactError, MAX_ARTIFACT, Transport};
pub use context::{ExecutionContext, Finished, NoInput, Question};
pub use echo::echo;
pub use log::{Level, Log};
pub use machine::{Effect, Ending, Input, Job, Machine};
pub use media::{
    BadBundle, Parts, bundle_from_jupyter, is_binary, is_html, is_image, is_json, is_text, size,
    validate_media_bundle,
};
pub use notebook::{Bundle, Capabilities, Failed, SessionState, StreamKind};
pub use options::{AgentOptions, Announcement, BadOptions, Given};
pub use outbox::{Outbox, Said};
pub use store::{Announced, Lost, NotebookStore, Unanswered};
