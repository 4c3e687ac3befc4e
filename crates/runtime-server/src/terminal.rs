//! Commands and terminals: every one runs in the room of its session.
//!
//! One file for each action; what they share is in `terminals` (what is open), `rooms` (where it
//! runs) and `guests` (who is there), `process` (one command), `command` (what would run).
//! No command is started but through a [`sandbox::Room`], also one that is trusted.

mod asking;
mod close;
mod command;
mod guests;
mod history;
mod kept;
mod list;
mod open;
mod process;
mod pump;
mod read;
mod resize;
mod rooms;
mod run;
mod stop;
mod stream;
mod terminals;
pub(crate) mod text;
mod write;

pub use close::Close;
pub use list::List;
pub use open::Open;
pub use read::Read;
pub use resize::Resize;
pub(crate) use rooms::LOOK;
pub use rooms::RoomSettings;
pub use run::{Run, RunAnswer};
pub use stop::Stop;
pub use terminals::Terminals;
pub(crate) use terminals::{Terminal, Viewer};
pub use write::Write;
