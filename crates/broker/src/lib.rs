//! Editors as runtimes: each connects by Socket.IO, registers itself, and is sent the actions that
//! are meant for it.
//!
//! [`Broker`] knows who is connected and what is registered, and is how the gate finds a runtime
//! that is not here ([`gate::runtime::Elsewhere`]). `editor` is one registered runtime: how an action
//! gets there and back. `facts` says what it would touch, `leads` where paths lead, `below` what is
//! protected in a folder, `exec` how a command there is confined.
//!
//! What always holds:
//! - Who a connection belongs to is what its token says; only they may register it, and only they
//!   see it.
//! - An action goes to exactly one connection: none, several and away are failures of their own.
//! - Nothing is sent that the gate did not permit.
//! - An answer counts for the request it answers, once; what comes late, twice or from elsewhere is
//!   dropped.
//! - A command that was decided on as confined is sent as a whole `ward exec` to an editor that has
//!   shown to be on this machine, and to no other.
//! - What was under way when a connection was lost ends as `runtime_lost`.
//! - An id is one person's for ever. It is given again only to what is of the same kind, shows the
//!   same folder and asks for it, and never while something else is connected under it.
//! - Messages, registrations and what waits of output have limits; who has not said who they are can
//!   send next to nothing.

#![forbid(unsafe_code)]

mod below;
mod broker;
mod choose;
mod editor;
mod exec;
mod facts;
mod former;
mod hello;
mod index;
mod leads;
mod output;
mod patched;

pub use broker::{Authenticate, Broker, Known, LEASE, Layer, Options};
pub use exec::{Here, Usable};
pub use hello::{Hello, is_for};
pub use index::real;
