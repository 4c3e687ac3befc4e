//! Ward over HTTP: the page, the health check, and failures in one shape.
//!
//! [`router`] makes the service from what it is to show; [`serve`] answers on a listener until it
//! is told to stop.
//!
//! Invariants:
//! - Every failure is `{"error", "code", "kind"}`, also for addresses that do not exist.
//! - A request that was meant for another host is refused before anything looks at it: a web page
//!   that points its own name at this machine (DNS rebinding) gets nothing.
//! - Nothing on the page comes from elsewhere, and its policy lets the browser fetch nothing.

#![forbid(unsafe_code)]

mod failure;
mod health;
mod host;
mod page;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use axum::routing::get;
use protocol::sandbox::SandboxStatus;
use store::Store;
use tokio::net::TcpListener;

/// How long answers that are under way have when it is told to stop.
const PATIENCE: Duration = Duration::from_secs(3);

/// What Ward says about itself.
#[derive(Debug, Clone)]
pub struct About {
    /// Its version.
    pub version: String,
    /// The workspace's real path.
    pub workspace: String,
    /// What the sandbox can enforce here.
    pub sandbox: SandboxStatus,
    /// Where the store is.
    pub store: String,
}

/// What every request may look at.
#[derive(Debug)]
struct App<S> {
    about: About,
    store: S,
}

/// The service, for a listener that is bound to `address`.
pub fn router<S: Store>(about: About, store: S, address: SocketAddr) -> Router {
    Router::new()
        .route("/", get(page::show::<S>))
        .route("/healthz", get(health::show::<S>))
        .fallback(failure::no_such_address)
        .method_not_allowed_fallback(failure::no_such_method)
        .with_state(Arc::new(App { about, store }))
        .layer(middleware::from_fn_with_state(
            host::Names::of(address),
            host::check,
        ))
}

/// Answers until `stop` is ready; what is under way then has a few seconds to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopped, mut stopping) = tokio::sync::watch::channel(());
    let graceful = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        drop(stopped);
    });
    tokio::select! {
        result = graceful => result,
        () = async {
            // Nothing is ever sent: this ends when the sender is dropped.
            let _ = stopping.changed().await;
            tokio::time::sleep(PATIENCE).await;
        } => Ok(()),
    }
}
