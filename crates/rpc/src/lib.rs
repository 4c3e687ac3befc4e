//! A JSON-RPC 2.0 peer over any byte stream, with Content-Length frames as npm `vscode-jsonrpc`
//! writes them.
//!
//! A peer, not a server: both sides may ask. [`Peer::new`] gives the connection and the
//! [`Remote`] side of it; [`Peer::run`] answers with a [`Service`] until the connection ends.
//!
//! It is not a framework: no routing, no middleware, no transports. It does not know what the
//! methods mean; of `protocol` it uses [`Failure`](protocol::Failure) and `$/cancelRequest`.
//!
//! What always holds:
//! - Every request is answered once, by its handler, as cancelled, or not at all because the
//!   connection ended.
//! - Notifications are handled one after the other, in the order they came, before anything that
//!   came after them.
//! - What a handler tells the other side before it answers arrives before its answer.
//! - Nothing grows without bound. Requests under way, frames to be written and the bytes of a frame
//!   have limits; at a limit, reading or sending waits, and a frame that is too large is passed
//!   over.
//! - What cannot be read is answered, and the stream goes on behind it.
//! - When [`Peer::run`] returns or is dropped, nothing is left running: handlers were cancelled,
//!   and whoever waits for an answer learns that it is `disconnected`.

#![forbid(unsafe_code)]

mod cancel;
mod driver;
mod failure;
mod frame;
mod glimpse;
mod header;
mod id;
mod message;
mod outbox;
mod peer;
mod remote;
mod service;
mod work;

pub use frame::{Frame, FrameReader, write_frame};
pub use header::BadHeader;
pub use id::Id;
pub use message::Answer;
pub use peer::{End, Limits, Peer};
pub use remote::Remote;
pub use service::{NoService, Notification, Request, Service, answer};
