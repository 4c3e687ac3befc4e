//! What the server holds for its actions.

use crate::workspace::Workspace;

/// What every action can reach.
#[derive(Debug)]
pub struct Context {
    /// The folder the actions work in.
    pub workspace: Workspace,
}
