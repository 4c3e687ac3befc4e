//! Ward's words as types.
//!
//! Every method, notification, action and error kind that crosses a boundary is named here, once.
//! The crate holds data and its JSON shape and nothing else: no I/O, no clock, no async, so that
//! it also builds for wasm32 and the TypeScript side can be generated from its schemas.
//!
//! Read in this order: [`method`] (what can be asked), [`action`] (what can be done),
//! [`session`] (conversations), [`facts`] (what an action would touch), [`wall`] (what the gate lets it touch), [`sandbox`] (what
//! held it), [`failure`] (how it fails).

#![forbid(unsafe_code)]

pub mod action;
pub mod approval;
pub mod data;
pub mod digest;
pub mod facts;
pub mod failure;
pub mod gate;
pub mod http;
pub mod method;
pub mod mode;
pub mod permissions;
mod plain;
pub mod protected;
pub mod runtime;
pub mod sandbox;
pub mod session;
pub mod undo;
pub mod wall;

pub use action::ActionName;
pub use data::{Data, Encoding};
pub use digest::Digest;
pub use facts::Facts;
pub use failure::{ErrorKind, Failure};
pub use mode::Mode;
pub use permissions::Permissions;
pub use plain::{is_plain, is_plain_name};
