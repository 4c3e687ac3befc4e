//! The rooms of one connection: one for each session and mode, opened when its first command comes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::sandbox::Tier;
use protocol::{ErrorKind, Failure, Mode};
use rpc::Remote;
use sandbox::{Limits, Net, Room, RoomOptions, SandboxError, Wall};
use tokio::sync::{OnceCell, watch};

use super::asking::AskGate;
use super::guests::{Guest, Guests};
use crate::action::lost_thread;

/// Rooms one connection may have open. Each holds a process and a folder.
const MAX_ROOMS: usize = 64;

/// How long a room is kept, behind a gate, that nobody uses.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// How often it is looked for such rooms.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

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

/// Whose room it is, and what holds there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) session: Option<String>,
    pub(crate) mode: Mode,
}

/// The rooms of one connection.
#[derive(Debug)]
pub(crate) struct Rooms {
    workspace: PathBuf,
    settings: RoomSettings,
    gate: Option<Remote>,
    /// Counts how often the gate said that leave was taken back.
    reviews: watch::Sender<u64>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    rooms: HashMap<Key, Kept>,
    /// The connection ends: no room opens any more.
    closed: bool,
}

/// One room, or the place where it will be.
#[derive(Debug, Clone)]
struct Kept {
    room: Arc<OnceCell<Arc<Room>>>,
    guests: Arc<Guests>,
}

impl Rooms {
    /// Rooms in this workspace. Behind a gate it is asked for hosts; sessions come and go there, so
    /// that rooms nobody uses are closed.
    pub(crate) fn new(workspace: PathBuf, settings: RoomSettings, gate: Option<Remote>) -> Self {
        Self {
            workspace,
            settings,
            gate,
            reviews: watch::Sender::new(0),
            open: Mutex::default(),
        }
    }

    /// Has every connection that the gate let through asked about again.
    pub(crate) fn review(&self) {
        self.reviews.send_modify(|count| *count += 1);
    }

    pub(crate) fn count(&self) -> usize {
        let open = self.open();
        let rooms = open.rooms.values();
        rooms.filter(|kept| kept.room.initialized()).count()
    }

    /// The room of this key, and a place in it for the command of the action `id`.
    pub(crate) async fn enter(&self, key: &Key, id: &str) -> Result<(Arc<Room>, Guest), Failure> {
        let (kept, guest) = self.admit(key, id).await?;
        let build = || self.build(key, &kept.guests);
        let room = kept.room.get_or_try_init(build).await?;
        Ok((Arc::clone(room), guest))
    }

    async fn admit(&self, key: &Key, id: &str) -> Result<(Kept, Guest), Failure> {
        let (kept, guest, left) = {
            let mut open = self.open();
            if open.closed {
                return Err(closed());
            }
            let left = if open.rooms.contains_key(key) {
                None
            } else {
                self.make_place(&mut open)?
            };
            let kept = open.rooms.entry(key.clone()).or_insert_with(|| Kept {
                room: Arc::default(),
                guests: Guests::new(),
            });
            // Before anybody could take the room for idle.
            let guest = kept.guests.enter(id);
            (kept.clone(), guest, left)
        };
        if let Some(left) = left {
            close(vec![left]).await;
        }
        Ok((kept, guest))
    }

    /// Makes a place for one more room; the one that has to go for it.
    fn make_place(&self, open: &mut Open) -> Result<Option<Kept>, Failure> {
        if open.rooms.len() < MAX_ROOMS {
            return Ok(None);
        }
        let idle = open.rooms.iter().filter_map(|(key, kept)| {
            let since = kept.guests.idle_since().filter(|_| self.gate.is_some())?;
            Some((since, key.clone()))
        });
        match idle.min_by_key(|(since, _)| *since) {
            Some((_, key)) => Ok(open.rooms.remove(&key)),
            None => Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "There are {MAX_ROOMS} sessions with a room of their own already. Use one of them, or a connection of its own."
                ),
            )),
        }
    }

    async fn build(&self, key: &Key, guests: &Arc<Guests>) -> Result<Arc<Room>, Failure> {
        let net = match &self.gate {
            Some(gate) => Net::Judged(Arc::new(AskGate {
                gate: gate.clone(),
                session: key.session.clone(),
                guests: Arc::clone(guests),
                reviews: self.reviews.subscribe(),
            })),
            None => self.settings.net.clone(),
        };
        let options = RoomOptions {
            wall: Wall {
                workspace: self.workspace.clone(),
                net,
                limits: self.settings.limits,
            },
            state: self.settings.state.clone(),
            own: self.settings.own.clone(),
            minimum: self.settings.minimum,
        };
        let open = match key.mode {
            Mode::Sandbox => tokio::task::spawn_blocking(move || Room::open(options)),
            Mode::Full => tokio::task::spawn_blocking(Room::open_trusted),
        };
        match open.await {
            Ok(Ok(room)) => Ok(Arc::new(room)),
            Ok(Err(error)) => Err(failure(&error)),
            Err(error) => Err(lost_thread(&error)),
        }
    }

    /// Forgets a room that turned out to be gone, so that the next command gets a new one.
    pub(crate) fn forget(&self, key: &Key, gone: &Arc<Room>) {
        let mut open = self.open();
        let same = |kept: &Kept| kept.room.get().is_some_and(|room| Arc::ptr_eq(room, gone));
        if open.rooms.get(key).is_some_and(same) {
            open.rooms.remove(key);
        }
    }

    /// Behind a gate, closes the rooms that nobody has used for a while; whether there were any.
    pub(crate) async fn close_idle(&self) -> bool {
        if self.gate.is_none() {
            return false;
        }
        let idle = |kept: &Kept| {
            let since = kept.guests.idle_since();
            since.is_some_and(|since| since.elapsed() >= IDLE)
        };
        self.close_those(|_, kept| idle(kept)).await
    }

    /// Closes the rooms of a session and all that runs in them; whether there were any.
    pub(crate) async fn close_session(&self, session: Option<&str>) -> bool {
        self.close_those(|key, _| key.session.as_deref() == session)
            .await
    }

    async fn close_those(&self, which: impl Fn(&Key, &Kept) -> bool) -> bool {
        let rooms: Vec<Kept> = {
            let mut open = self.open();
            let those = open.rooms.extract_if(|key, kept| which(key, kept));
            those.map(|(_, kept)| kept).collect()
        };
        let any = !rooms.is_empty();
        close(rooms).await;
        any
    }

    /// Closes every room and all that still runs in them; none opens any more.
    pub(crate) async fn close(&self) {
        self.open().closed = true;
        self.close_those(|_, _| true).await;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Nothing panics while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes rooms; when this returns nothing is left running in them.
async fn close(rooms: Vec<Kept>) {
    let guests: Vec<_> = rooms.iter().map(|kept| Arc::clone(&kept.guests)).collect();
    // A room waits for its last process.
    let _ = tokio::task::spawn_blocking(move || drop(rooms)).await;
    for guests in guests {
        guests.gone().await;
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
