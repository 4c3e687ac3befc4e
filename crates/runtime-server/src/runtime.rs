//! The runtime: what all connections share, and how one is served.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::Failure;
use protocol::method::Authority;
use protocol::sandbox::SandboxStatus;
use rpc::{End, Limits, Peer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::action::lost_thread;
use crate::connection::{Connection, Door};
use crate::context::Context;
use crate::grounds::Beyond;
use crate::listen::UNKNOWN_DEADLINE;
use crate::terminal::{LOOK, RoomSettings};
use crate::token::Token;
use crate::workspace::Workspace;

/// The largest frame of a client that has not shown its token.
const UNKNOWN_FRAME: usize = 64 * 1024;

/// How to open a runtime.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// The folder the actions work in.
    pub workspace: PathBuf,
    /// What the rooms of its commands are like.
    pub rooms: RoomSettings,
    /// The largest frame that is taken, in bytes.
    pub frame: usize,
}

/// A runtime. Each connection has rooms, terminals and a memory of its own; the
/// workspace is one.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) workspace: Arc<Workspace>,
    /// For what comes from a gate alone.
    beyond: Arc<Beyond>,
    rooms: RoomSettings,
    frame: usize,
    sandbox: OnceCell<SandboxStatus>,
}

/// How a connection comes in.
#[derive(Debug)]
pub enum Entrance {
    /// Over a pipe that only whoever started this process holds.
    Pipe,
    /// Over such a pipe, from the gate that started this process: its permits are taken, and
    /// nothing is done without one.
    Gate,
    /// Over a port: the token has to be shown, soon.
    Port {
        /// What has to be shown.
        token: Token,
        /// One of the few places for clients that have not shown it yet; given back when they do.
        place: Option<OwnedSemaphorePermit>,
    },
}

impl Runtime {
    /// Opens a runtime. Nothing runs yet, and no room is open.
    pub fn open(options: RuntimeOptions) -> Result<Arc<Self>, Failure> {
        let own: Vec<PathBuf> = [options.rooms.state.clone()]
            .into_iter()
            .chain(options.rooms.own.iter().cloned())
            .collect();
        Ok(Arc::new(Self {
            beyond: Arc::new(Beyond::open(&own)?),
            workspace: Arc::new(Workspace::open(&options.workspace)?),
            rooms: options.rooms,
            frame: options.frame,
            sandbox: OnceCell::new(),
        }))
    }

    /// The workspace's real path.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        self.workspace.real()
    }

    /// What the sandbox can enforce here; tried once.
    pub(crate) async fn sandbox(&self) -> Result<SandboxStatus, Failure> {
        let probe = || async {
            let (minimum, state) = (self.rooms.minimum, self.rooms.state.clone());
            tokio::task::spawn_blocking(move || sandbox::probe(minimum, &state))
                .await
                .map_err(|error| lost_thread(&error))
        };
        self.sandbox.get_or_try_init(probe).await.cloned()
    }

    /// Serves one connection to its end, or until `stop` is cancelled. When this returns nothing
    /// that the connection started is left running.
    pub async fn serve<R, W>(
        self: &Arc<Self>,
        reader: R,
        writer: W,
        entrance: Entrance,
        stop: CancellationToken,
    ) -> End
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let full = self.frame;
        let frame = match entrance {
            Entrance::Pipe | Entrance::Gate => full,
            Entrance::Port { .. } => full.min(UNKNOWN_FRAME),
        };
        let limits = Limits {
            frame,
            ..Limits::default()
        };
        let (peer, remote) = Peer::new(reader, writer, limits);
        let workspace = Arc::clone(&self.workspace);
        let (authority, context) = match entrance {
            Entrance::Pipe | Entrance::Port { .. } => {
                let context = Context::new(workspace, self.rooms.clone());
                (Authority::Standalone, context)
            }
            Entrance::Gate => {
                let beyond = Arc::clone(&self.beyond);
                let rooms = self.rooms.clone();
                let context = Context::gated(workspace, beyond, rooms, remote.clone());
                (Authority::Gated, context)
            }
        };
        let door = match entrance {
            Entrance::Pipe | Entrance::Gate => Door::Open,
            Entrance::Port { token, place } => Door::Locked {
                token,
                _place: place,
                frame_limit: full,
            },
        };
        let connection =
            Connection::new(Arc::clone(self), authority, context, remote.clone(), door);
        let watch = async {
            let unknown = async {
                tokio::time::sleep(UNKNOWN_DEADLINE).await;
                if connection.is_known() {
                    std::future::pending::<()>().await;
                }
            };
            let idle = async {
                if authority == Authority::Standalone {
                    std::future::pending::<Infallible>().await;
                }
                loop {
                    tokio::time::sleep(LOOK).await;
                    connection.close_idle_rooms().await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => connection.announce_end().await,
                never = idle => match never {},
                () = unknown => tracing::info!("a client did not show its token in time"),
            }
            remote.close();
            std::future::pending::<Infallible>().await
        };
        let end = tokio::select! {
            end = peer.run(&connection) => end,
            never = watch => match never {},
        };
        connection.close().await;
        tracing::debug!(?end, "a connection has ended");
        end
    }
}
