//! What the server holds for its actions.

use std::path::Path;
use std::sync::Arc;

use protocol::facts::PathFact;
use protocol::wall::{PermitParams, WallParams};
use protocol::{Facts, Failure};
use rpc::Remote;

use crate::grounds::{Beyond, Grounds};
use crate::permit::Permitted;
use crate::terminal::{RoomSettings, Terminal, Terminals, Viewer};
use crate::workspace::{Workspace, refusal};

/// What one action can reach. Standalone it is the same for every action of a connection; behind a
/// gate each request has its own.
#[derive(Debug)]
pub struct Context {
    /// What file actions can touch.
    pub grounds: Grounds,
    /// The terminals, background commands and rooms; this connection's own.
    pub terminals: Arc<Terminals>,
    /// Whose terminals are seen.
    pub(crate) viewer: Viewer,
}

impl Context {
    /// A standalone context whose commands run in rooms like these. No room opens before it is
    /// needed.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>, rooms: RoomSettings) -> Self {
        Self {
            terminals: Arc::new(Terminals::new(workspace.real().to_owned(), rooms, None)),
            grounds: Grounds::workspace_only(workspace),
            viewer: Viewer::Everybody,
        }
    }

    /// A context behind a gate: it can be looked at, and nothing can be done in it without a permit.
    pub(crate) fn gated(
        workspace: Arc<Workspace>,
        beyond: Arc<Beyond>,
        rooms: RoomSettings,
        gate: Remote,
    ) -> Self {
        let folder = workspace.real().to_owned();
        Self {
            terminals: Arc::new(Terminals::new(folder, rooms, Some(gate))),
            grounds: Grounds::to_look_at(workspace, beyond),
            viewer: Viewer::Everybody,
        }
    }

    /// A context that can be looked at, and has no terminals.
    pub(crate) fn to_look_at(workspace: Arc<Workspace>, beyond: Arc<Beyond>) -> Self {
        Self {
            grounds: Grounds::to_look_at(workspace, beyond),
            terminals: Arc::new(Terminals::none()),
            viewer: Viewer::Everybody,
        }
    }

    /// A context for file actions alone; commands are refused.
    #[must_use]
    pub fn files_only(workspace: Workspace) -> Self {
        Self {
            grounds: Grounds::workspace_only(Arc::new(workspace)),
            terminals: Arc::new(Terminals::none()),
            viewer: Viewer::Everybody,
        }
    }

    /// The same, for one session: it sees its own terminals alone.
    pub(crate) fn of(&self, session: Option<&str>) -> Self {
        Self {
            grounds: self.grounds.clone(),
            terminals: Arc::clone(&self.terminals),
            viewer: Viewer::Session(session.map(ToOwned::to_owned)),
        }
    }

    /// The same, for what a gate permitted: these facts, behind this wall. Refuses a way out of
    /// the workspace that was not permitted, and a wall that would open what is closed to all.
    pub(crate) fn permitted(
        &self,
        permit: &PermitParams,
        wall: WallParams,
        facts: Facts,
    ) -> Result<Self, Failure> {
        let outside = |fact: &&PathFact| !self.grounds.is_inside(Path::new(&fact.path));
        if let Some(fact) = facts.paths.iter().find(outside)
            && !wall.beyond
        {
            let workspace = self.grounds.workspace().real();
            return Err(refusal::outside(&fact.path, workspace));
        }
        for widen in &wall.widen {
            self.grounds.refuse_to_widen(Path::new(&widen.path))?;
        }
        tracing::debug!(digest = %permit.digest, mode = %permit.mode, "a gate permits an action");
        let permitted = Permitted::new(permit.mode, wall, facts);
        Ok(Self {
            grounds: self.grounds.permitted(Arc::new(permitted)),
            terminals: Arc::clone(&self.terminals),
            viewer: self.viewer.clone(),
        })
    }

    /// The terminal of this name, where whoever asks may know of it.
    pub(crate) fn terminal(&self, id: &str) -> Result<Arc<Terminal>, Failure> {
        self.terminals.get(id, &self.viewer)
    }
}
