//! The gate: the one way from a client to a runtime. It decides, asks, records and passes on.
//!
//! Read `path` first: it is the path of an action as one straight line. [`Gate::submit`] takes an
//! action in; [`Gate::answer`] is a person's word; [`runtime`] is what happens behind a permit.
//!
//! Invariants:
//! - A runtime takes a [`runtime::Permit`], and only this crate can make one.
//! - Nothing is told or run before it is in the store; request, decision, question, answer and
//!   outcome are in the [`ledger`], chained.
//! - An approval binds to the digest of all that would happen. What changed since asks again, and
//!   what was answered runs once, also over a restart.
//! - What an actor may choose is decided by who authenticated, never by the payload.
//! - No lock is held over an await but where a single file's order depends on it.

#![forbid(unsafe_code)]

pub mod actor;
mod again;
mod answering;
mod asking;
mod brief;
pub mod canonical;
pub mod clients;
mod clock;
mod diff;
mod door;
pub mod files;
mod follow;
mod gate;
mod grants;
mod inbox;
mod job;
mod jobs;
mod leave;
pub mod ledger;
mod live;
mod named;
mod path;
mod pause;
mod pending;
mod preview;
mod printing;
mod record;
pub mod redact;
mod redirected;
pub mod request;
mod resume;
pub mod runtime;
mod seen;
mod undo;
mod wall;
mod workspace;

pub use actor::{Actor, Agent};
pub use brief::Brief;
pub use clients::{Attachment, Attention};
pub use clock::now;
pub use follow::Happened;
pub use gate::{Gate, GateOptions, OpenError, Roll};
pub use inbox::Notice;
pub use live::{Ended, Live, State};
pub use redirected::{real_folders, redirected};
pub use request::{Ask, Request, new_id};
pub use seen::Seen;
pub use undo::Undo;
pub use wall::stopped_at;
