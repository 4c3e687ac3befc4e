//! The rooms of one connection: one for each session, opened when its first command comes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::sandbox::Tier;
use protocol::{ErrorKind, Failure};
use sandbox::{Limits, Net, Room, RoomOptions, SandboxError, Wall};
use tokio::sync::OnceCell;

use crate::action::lost_thread;

/// Rooms one connection may have open. Each holds a process and a folder.
const MAX_ROOMS: usize = 64;

/// What the rooms of a runtime are like.
#[derive(Debug, Clone)]
pub struct RoomSettings {
    /// A folder of Ward's own, below which rooms keep what they need while they are open.
    pub state: PathBuf,
    /// Ward's other folders: a workspace that holds one is refused.
    pub own: Vec<PathBuf>,
    /// The weakest tier that will do.
    pub minimum: Tier,
    /// What the network is to commands.
    pub net: Net,
    /// How much one command may use.
    pub limits: Limits,
}

/// The rooms of one connection.
#[derive(Debug)]
pub(crate) struct Rooms {
    workspace: PathBuf,
    settings: RoomSettings,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    rooms: HashMap<Option<String>, Arc<OnceCell<Arc<Room>>>>,
    /// The connection ends: no room opens any more.
    closed: bool,
}

impl Rooms {
    pub(crate) fn new(workspace: PathBuf, settings: RoomSettings) -> Self {
        Self {
            workspace,
            settings,
            open: Mutex::default(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        let open = self.open();
        open.rooms
            .values()
            .filter(|cell| cell.initialized())
            .count()
    }

    /// The session's room.
    pub(crate) async fn get(&self, session: Option<&str>) -> Result<Arc<Room>, Failure> {
        let cell = self.cell(session)?;
        let room = cell.get_or_try_init(|| self.build()).await?;
        Ok(Arc::clone(room))
    }

    fn cell(&self, session: Option<&str>) -> Result<Arc<OnceCell<Arc<Room>>>, Failure> {
        let mut open = self.open();
        if open.closed {
            return Err(closed());
        }
        if let Some(cell) = open.rooms.get(&session.map(ToOwned::to_owned)) {
            return Ok(Arc::clone(cell));
        }
        if open.rooms.len() >= MAX_ROOMS {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "There are {MAX_ROOMS} sessions with a room of their own already. Use one of them, or a connection of its own."
                ),
            ));
        }
        let cell = Arc::default();
        open.rooms
            .insert(session.map(ToOwned::to_owned), Arc::clone(&cell));
        Ok(cell)
    }

    async fn build(&self) -> Result<Arc<Room>, Failure> {
        let options = RoomOptions {
            wall: Wall {
                workspace: self.workspace.clone(),
                net: self.settings.net.clone(),
                limits: self.settings.limits,
            },
            state: self.settings.state.clone(),
            own: self.settings.own.clone(),
            minimum: self.settings.minimum,
        };
        match tokio::task::spawn_blocking(move || Room::open(options)).await {
            Ok(Ok(room)) => Ok(Arc::new(room)),
            Ok(Err(error)) => Err(failure(&error)),
            Err(error) => Err(lost_thread(&error)),
        }
    }

    /// Forgets a room that turned out to be gone, so that the next command gets a new one.
    pub(crate) fn forget(&self, session: Option<&str>, gone: &Arc<Room>) {
        let mut open = self.open();
        let key = session.map(ToOwned::to_owned);
        let same = |cell: &Arc<OnceCell<Arc<Room>>>| {
            cell.get().is_some_and(|room| Arc::ptr_eq(room, gone))
        };
        if open.rooms.get(&key).is_some_and(same) {
            open.rooms.remove(&key);
        }
    }

    /// Closes every room and all that still runs in them; none opens any more.
    pub(crate) async fn close(&self) {
        let rooms = {
            let mut open = self.open();
            open.closed = true;
            std::mem::take(&mut open.rooms)
        };
        // A room waits for its last process.
        let _ = tokio::task::spawn_blocking(move || drop(rooms)).await;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Nothing panics while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Failure {
    Failure::new(
        ErrorKind::ShuttingDown,
        "The runtime is shutting down and starts no more commands.",
    )
}

/// A sandbox's refusal as it crosses the boundary.
pub(crate) fn failure(error: &SandboxError) -> Failure {
    let sentence = error.to_string();
    match error {
        SandboxError::Layer { layer, .. } => {
            Failure::new(ErrorKind::SandboxFailed, sentence).with("layer", *layer)
        }
        SandboxError::Workspace(_) => Failure::new(ErrorKind::SandboxFailed, sentence),
        SandboxError::Exec {
            program, not_found, ..
        } => {
            let kind = if *not_found {
                ErrorKind::CommandNotFound
            } else {
                ErrorKind::PermissionDenied
            };
            Failure::new(kind, sentence).with("program", program.as_str())
        }
        SandboxError::Command(_) => Failure::new(ErrorKind::InvalidParams, sentence),
        SandboxError::Closed(_) => Failure::new(ErrorKind::SandboxFailed, sentence),
    }
}
