//! What the server holds for its actions.

use std::sync::Arc;

use crate::terminal::{RoomSettings, Terminals};
use crate::workspace::Workspace;

/// What every action of one connection can reach.
#[derive(Debug)]
pub struct Context {
    /// The folder the actions work in; one for all connections.
    pub workspace: Arc<Workspace>,
    /// The terminals, background commands and rooms; this connection's own.
    pub terminals: Terminals,
}

impl Context {
    /// A context whose commands run in rooms like these. No room opens before it is needed.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>, rooms: RoomSettings) -> Self {
        Self {
            terminals: Terminals::new(workspace.real().to_owned(), rooms),
            workspace,
        }
    }

    /// A context for file actions alone; commands are refused.
    #[must_use]
    pub fn files_only(workspace: Workspace) -> Self {
        Self {
            workspace: Arc::new(workspace),
            terminals: Terminals::none(),
        }
    }
}
