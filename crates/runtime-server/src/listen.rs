//! The runtime on a port, for hosts that prefer one.
//!
//! Whoever can reach the port can talk to it, so that: a token is required, anything but loopback
//! has to be allowed, and clients that have not shown the token get little time, little memory and
//! few places.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::runtime::{Entrance, Runtime};
use crate::token::Token;

/// How long a client may take to show its token.
pub(crate) const UNKNOWN_DEADLINE: Duration = Duration::from_secs(10);

/// Clients at once that have not shown it yet. More wait to be accepted.
const MAX_UNKNOWN: usize = 16;

/// Clients at once.
const MAX_CLIENTS: usize = 64;

/// From where a port can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This machine only.
    Loopback,
    /// Any machine that the address can be reached from.
    Anywhere,
}

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could reach it.
    #[error(
        "{0} can be reached from other machines. Listen on 127.0.0.1, or give --allow-remote if that is what you want."
    )]
    NotLoopback(SocketAddr),
    /// The address means nothing.
    #[error("`{address}` is no address to listen on: {why}. Give one such as 127.0.0.1:3001.")]
    BadAddress {
        /// As it was given.
        address: String,
        /// The system's words.
        why: std::io::Error,
    },
    /// The system refused.
    #[error("{address} cannot be listened on: {why}. Choose another port with --listen.")]
    Refused {
        /// Which one.
        address: SocketAddr,
        /// The system's words.
        why: std::io::Error,
    },
}

/// A port that is listened on. Nobody is answered before [`serve_listen`].
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address`, such as `127.0.0.1:3001`; port 0 lets the system choose.
    pub async fn bind(address: &str, reach: Reach) -> Result<Self, ListenError> {
        let bad = |why| ListenError::BadAddress {
            address: address.to_owned(),
            why,
        };
        let found: Vec<SocketAddr> = tokio::net::lookup_host(address)
            .await
            .map_err(bad)?
            .collect();
        let first = *found
            .first()
            .ok_or_else(|| bad(std::io::ErrorKind::NotFound.into()))?;
        if reach == Reach::Loopback
            && let Some(outside) = found.iter().find(|found| !found.ip().is_loopback())
        {
            return Err(ListenError::NotLoopback(*outside));
        }
        let refused = |why| ListenError::Refused {
            address: first,
            why,
        };
        let inner = TcpListener::bind(first).await.map_err(refused)?;
        let address = inner.local_addr().map_err(refused)?;
        Ok(Self { inner, address })
    }

    /// The address, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves every client that shows the token, each with rooms of its own, until `stop` is
/// cancelled. When this returns nothing is left running.
pub async fn serve_listen(
    runtime: Arc<Runtime>,
    listener: Listener,
    token: Token,
    stop: CancellationToken,
) {
    let unknown = Arc::new(Semaphore::new(MAX_UNKNOWN));
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    let serving = TaskTracker::new();
    let accepting = async {
        loop {
            // The places are never closed.
            let (Ok(place), Ok(client)) = tokio::join!(
                Arc::clone(&unknown).acquire_owned(),
                Arc::clone(&clients).acquire_owned()
            ) else {
                return;
            };
            let stream = accept(&listener.inner).await;
            let entrance = Entrance::Port {
                token: token.clone(),
                place: Some(place),
            };
            let (runtime, stop) = (Arc::clone(&runtime), stop.clone());
            serving.spawn(async move {
                let (reader, writer) = stream.into_split();
                runtime.serve(reader, writer, entrance, stop).await;
                drop(client);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    serving.close();
    serving.wait().await;
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                tracing::debug!(%from, "a client has connected");
                // Frames are written whole; waiting for more only delays them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection keeps its delay");
                }
                return stream;
            }
            Err(error) => {
                // Out of descriptors, or the client has gone. Either passes; spinning would not help.
                tracing::warn!(%error, "a client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
