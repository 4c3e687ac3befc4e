//! The filtering proxy that stands outside a room and is its only way to the network.
//!
//! One listening socket, made inside the room's network namespace and handed out, takes HTTP
//! CONNECT, plain HTTP and SOCKS5. A [`Judge`] decides for each target by the name the client
//! asked for; the plain one is a [`HostList`]. Invariants:
//!
//! - **Judged, then looked up.** A refused name reaches no name server.
//! - **Connected to what was checked.** A name is looked up once, outside; addresses that are not
//!   public are passed over unless they were themselves allowed, or the name is `localhost`; the
//!   connection goes to the checked address.
//! - **One reading.** Hosts are compared in a normal form, and what could be read in two ways is
//!   refused ([`Target`] says which); a plain request is written anew from what was understood, and
//!   nothing after it reaches the target.
//! - **Noted before told.** Each refusal is in [`ProxyHandle::take_stopped`] before the client
//!   knows of it.
//! - **Bounded.** Connections, heads, deadlines and buffers have limits ([`Bounds`]); what does not
//!   fit waits in the kernel's queue.
//!
//! Deliberately absent: looking into TLS (what is said inside a tunnel is between client and
//! target), caching, authentication, SOCKS BIND and UDP, connections that are kept for another
//! request, upgrades of plain connections.

mod addresses;
mod answer;
mod connection;
mod env;
pub mod hosts;
mod http;
mod judge;
mod reach;
mod relay;
mod resolve;
mod socks;
mod stopped;
mod target;
#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use protocol::sandbox::Stopped;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use addresses::AddressKind;
pub use env::env;
pub use hosts::{HostList, HostRule, HostRuleError, HostRuleProblem};
pub use judge::{Judge, Pending, Verdict};
pub use resolve::{Resolve, SystemResolver};
pub use target::{Host, HostError, HostName, Target};

use stopped::StoppedLog;

/// How long the proxy waits after the system refused it a connection, for lack of descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many names are looked up at once; each takes a thread while it lasts.
const MAX_LOOKUPS: usize = 8;

/// How much one proxy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once; further ones wait.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// From the first byte of a request to the end of its head.
    pub head_deadline: Duration,
    /// For looking a name up, and again for connecting.
    pub connect_deadline: Duration,
    /// How long a connection may be silent in both directions.
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            head_bytes: 16 * 1024,
            head_deadline: Duration::from_secs(10),
            connect_deadline: Duration::from_secs(15),
            idle: Duration::from_secs(30 * 60),
        }
    }
}

/// A proxy that is not yet running.
pub struct Proxy {
    judge: Arc<dyn Judge>,
    resolver: Arc<dyn Resolve>,
    bounds: Bounds,
}

impl Proxy {
    /// Starts a proxy with the usual bounds that looks names up as this machine does.
    pub fn start(listener: TcpListener, judge: Arc<dyn Judge>) -> io::Result<ProxyHandle> {
        Self::new(judge).run(listener)
    }

    /// A proxy for which `judge` decides.
    #[must_use]
    pub fn new(judge: Arc<dyn Judge>) -> Self {
        Self {
            judge,
            resolver: Arc::new(SystemResolver),
            bounds: Bounds::default(),
        }
    }

    /// Looks names up with `resolver` instead.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Keeps within `bounds` instead.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Serves `listener` on a thread of its own, until the handle is dropped.
    pub fn run(self, listener: TcpListener) -> io::Result<ProxyHandle> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(MAX_LOOKUPS)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let shared = Arc::new(Shared {
            judge: self.judge,
            resolver: self.resolver,
            bounds: self.bounds,
            stopped: Arc::default(),
        });
        let stopped = Arc::clone(&shared.stopped);
        let (stop, stopping) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("ward-proxy".to_owned())
            .spawn(move || {
                runtime.block_on(accept(listener, shared, stopping));
                // A name that is just being looked up must not hold up the end.
                runtime.shutdown_background();
            })?;
        Ok(ProxyHandle {
            stop: Some(stop),
            thread: Some(thread),
            stopped,
        })
    }
}

/// What the connections of one proxy have in common.
struct Shared {
    judge: Arc<dyn Judge>,
    resolver: Arc<dyn Resolve>,
    bounds: Bounds,
    stopped: Arc<StoppedLog>,
}

/// Takes connections until `stopping`; returning ends them all.
async fn accept(
    listener: tokio::net::TcpListener,
    shared: Arc<Shared>,
    mut stopping: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut stopping => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < shared.bounds.connections => {
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection::serve(stream, Arc::clone(&shared)));
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the proxy could not take a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }
}

/// A running proxy. Dropping it ends its thread and every connection through it.
#[derive(Debug)]
pub struct ProxyHandle {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    stopped: Arc<StoppedLog>,
}

impl ProxyHandle {
    /// What was refused since the last call: `host:port`, each once, in order. What could not be
    /// read as a host and port is there in printable form.
    #[must_use]
    pub fn take_stopped(&self) -> Vec<Stopped> {
        self.stopped.take()
    }
}

impl Drop for ProxyHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A judge that owns the handle may drop it on the proxy's own thread, which ends anyway.
            if thread.thread().id() != std::thread::current().id() {
                drop(thread.join());
            }
        }
    }
}
