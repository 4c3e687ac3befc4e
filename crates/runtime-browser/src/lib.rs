//! The notebook agent in a page: the page's own replica of a notebook, and the agent on it, for
//! TypeScript through wasm-bindgen. `ui/packages/runtime-browser` makes an npm package of it.
//!
//! Read [`Book`] first: the replica with what is to be pushed, kept and told, as plain state.
//! [`Replica`] gives it to the page and drives it over a [`Wire`], which is the page's way to Ward;
//! [`Agent`] is the runtime agent on the same replica: one store, one connection. What an agent is,
//! [`runtime_core`] says.
//!
//! Invariants:
//! - It fetches nothing and keeps nothing by itself: the page gives the wire, the clock and the disk.
//! - What was written is kept before it is sent, and what a person wrote is let go of only where Ward
//!   refused that very event; the page is told which.
//! - A run is asked for over a connection that is there, and never later.
//! - A runtime session's token goes with that session's own events and is never kept with the
//!   notebook.

#![forbid(unsafe_code)]

mod agent;
mod artifacts;
mod book;
mod context;
mod failure;
mod kept;
mod media;
mod replica;
mod wire;

pub use agent::Agent;
pub use artifacts::Artifacts;
pub use book::{Answer, Book, Offline, Outgoing, Refused};
pub use context::Context;
pub use kept::{Kept, Unreadable};
pub use media::{
    is_binary, is_html, is_image, is_json, is_text, media_size, validate_media_bundle,
};
pub use replica::Replica;
pub use runtime_core;
pub use wire::Wire;
