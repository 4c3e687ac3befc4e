//! Ward over HTTP: who is talking, the gate's interface, events as they happen, the page.
//!
//! [`Server::new`] composes the service from its [`Parts`]; [`serve`] answers on an address and
//! [`serve_unix`] on Ward's own socket, both with the same [`Server::router`], which can also be
//! called without any socket. `operations` is the table of everything that can be asked, by whom.
//!
//! Invariants:
//! - Every failure is `{"error", "code", "kind"}`, also for addresses that do not exist.
//! - A request that was meant for another host is refused before anything looks at it: a web page
//!   that points its own name at this machine (DNS rebinding) gets nothing. So is one that another
//!   site's page sent, where it would change something or comes with the cookie.
//! - Who asks is what their token says. Who may use an operation stands in the table, and is looked
//!   at before the operation is.
//! - What the table says is what is served and what `/openapi.json` describes.
//! - Bodies, heads, connections, waiting answers and wrong guesses have limits.
//! - Nothing on the page comes from elsewhere, and its policy lets the browser fetch nothing that is
//!   not Ward's own.

#![forbid(unsafe_code)]

mod answer;
mod app;
mod assets;
pub mod auth;
mod beside;
mod connection;
mod entrance;
mod extract;
mod failure;
mod hello;
mod host;
mod listen;
mod openapi;
mod operations;
mod origin;
mod places;
mod routes;
mod sse;
mod upgrade;
mod user;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::{Router, middleware};
use broker::Broker;
use gate::Gate;
use notebooks::Notebooks;
use protocol::sandbox::SandboxStatus;
use runner::Runner;
use store::Store;

use crate::app::App;
use crate::auth::{Logins, Tokens, TokensError};
use crate::entrance::Entrance;
use crate::operations::Operation;
pub use listen::{Socket, serve, serve_unix};

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

/// What a server is made of.
#[derive(Debug)]
pub struct Parts<S: Store> {
    /// What it says about itself.
    pub about: About,
    /// The gate that it serves.
    pub gate: Gate<S>,
    /// Who runs agents.
    pub runner: Runner<S>,
    /// Who knows the editors.
    pub broker: Broker<S>,
    /// Who keeps the notebooks.
    pub notebooks: Notebooks<S>,
    /// Who may talk to it.
    pub tokens: Arc<Tokens>,
    /// Where it listens; nothing, where there is no page to sign in to.
    pub address: Option<SocketAddr>,
}

/// Ward over HTTP. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Server {
    router: Router,
    tokens: Arc<Tokens>,
    logins: Arc<Logins>,
    address: Option<SocketAddr>,
}

impl Server {
    /// Composes it. Nothing listens yet.
    #[must_use]
    pub fn new<S: Store>(parts: Parts<S>) -> Self {
        let Parts {
            about,
            gate,
            runner,
            broker,
            notebooks,
            tokens,
            address,
        } = parts;
        let logins = Arc::new(Logins::default());
        let known = Arc::clone(&tokens);
        gate.call(Box::new(move |agent| known.knows_agent(agent)));
        let app = Arc::new(App::new(
            about,
            gate,
            runner,
            broker,
            notebooks,
            Arc::clone(&tokens),
            address,
            Arc::clone(&logins),
        ));
        Self {
            router: router(&app),
            tokens,
            logins,
            address,
        }
    }

    /// The service, for [`serve`], [`serve_unix`] or a call without any socket.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Who may talk to it.
    #[must_use]
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// A link that signs one browser in as the first person, for ten minutes; none where there is
    /// no page.
    pub fn login_link(&self) -> Result<Option<String>, TokensError> {
        let Some(address) = self.address else {
            return Ok(None);
        };
        let person = self.tokens.first_person()?;
        let code = self.logins.open(&person.id, Instant::now())?;
        Ok(Some(routes::login::url(address, &code)))
    }
}

/// What `GET /openapi.json` answers.
#[must_use]
pub fn openapi<S: Store>(version: &str) -> serde_json::Value {
    openapi::document(version, operations::all::<S>())
}

fn router<S: Store>(app: &Arc<App<S>>) -> Router {
    let editors = app.broker.layer(auth::for_editors(app));
    let entrance = Arc::new(Entrance {
        names: host::Names::of(app.address),
        broker: app.broker.clone(),
    });
    routes(app, operations::all())
        .layer(editors)
        // The last is the first that a request meets.
        .layer(middleware::from_fn_with_state(
            entrance,
            entrance::pass::<S>,
        ))
}

/// The operations that tell events, for who follows several over one connection.
fn streams<S: Store>(app: &Arc<App<S>>) -> Router {
    let all = operations::all().into_iter();
    routes(app, all.filter(|operation| operation.events))
}

fn routes<S: Store>(
    app: &Arc<App<S>>,
    operations: impl IntoIterator<Item = Operation<S>>,
) -> Router {
    let mut router = Router::new();
    for operation in operations {
        let state = (Arc::clone(app), operation.who, operation.runtimes);
        let admit = middleware::from_fn_with_state(state, auth::admit::<S>);
        router = router.route(operation.path, operation.handler.route_layer(admit));
    }
    router
        .fallback(failure::no_such_address)
        .method_not_allowed_fallback(failure::no_such_method)
        .with_state(Arc::clone(app))
}
