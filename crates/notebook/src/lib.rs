//! A notebook: the words of what happens in it, the state that these fold into, and `.ipynb` files.
//!
//! Read [`NotebookEvent`] first: everything that can happen. [`Notebook`] is what it all amounts to;
//! [`Notebook::take`] takes one event in. [`Recorded`] is an event as the server tells it, with its
//! word on who and when. [`ipynb`] reads and writes Jupyter's files.
//!
//! Invariants:
//! - No I/O, no clock, no async: the crate builds for wasm32, and ids and times are given to it.
//! - Whoever folds the same events in the same order has the same notebook. An event that does not
//!   fit changes nothing, so that a fold cannot fail.
//! - A kind never changes its meaning. One whose shape changes gets a new tag, and the old one is
//!   still read ([`upcast`]).
//! - Who may append a kind stands in one table ([`NotebookEvent::author`]).

#![forbid(unsafe_code)]

mod author;
mod bundle;
mod carried;
mod cell;
mod comm;
mod event;
mod execution;
mod free;
mod id;
pub mod ipynb;
mod notebook;
mod output;
mod place;
mod presence;
mod rebase;
mod recorded;
mod session;
mod source;
pub mod upcast;

pub use author::Author;
pub use bundle::{ArtifactRef, Bundle, Media, is_media_type};
pub use cell::{Cell, CellType};
pub use comm::{BadComm, Comm, CommKind, MAX_COMM};
pub use event::{
    CellCreated, CellDeleted, CellMetadata, CellMoved, CellSource, CellTyped, CellVisibility,
    Cleared, DisplayUpdated, Displayed, Dropped, ErrorOutput, ExecutionAssigned, ExecutionCancel,
    ExecutionCancelled, ExecutionCompleted, ExecutionRequested, ExecutionStarted, Imported,
    InputAnswered, InputRequested, Markdown, NotebookEvent, NotebookMade, NotebookMetadata,
    NotebookTitled, Removed, ResultOutput, RuntimeRestart, RuntimeStarted, RuntimeTerminated,
    RuntimeUpdated, Runtimes, RuntimesChanged, StreamKind, Terminal, Termination,
};
pub use execution::{Execution, ExecutionState, Failed, Input, Outcome};
pub use free::{MAX_DEPTH, Unkept, check_field, check_json};
pub use id::{BadId, CellId, ExecutionId, OutputId, SessionId};
pub use notebook::{Notebook, Snapshot};
pub use output::Output;
pub use place::{BadPlace, Place};
pub use presence::Presence;
pub use recorded::Recorded;
pub use session::{Capabilities, RuntimeSession, SessionState};
pub use source::Splice;
