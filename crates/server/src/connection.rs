//! What is known about the connection that a request came over.

use axum::http::Extensions;
use tokio_util::sync::CancellationToken;

use crate::auth::Peer;
use crate::places::Introduced;
use crate::user::User;

/// A connection. Ward puts it beside each request; nothing that a client sends can.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    /// Whether the process at its other end is this user's, on this machine, and sees the same files.
    pub(crate) beside: bool,
    pub(crate) user: User,
    /// Whether somebody has said over it who they are.
    pub(crate) introduced: Introduced,
    /// Cancelled when Ward is told to stop.
    pub(crate) stop: CancellationToken,
}

impl Connection {
    /// The connection of a request; where there was none, it came from Ward itself.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Self {
            peer: Peer::Local,
            beside: false,
            user: User::default(),
            introduced: Introduced::default(),
            stop: CancellationToken::new(),
        })
    }
}

impl<S: Sync> axum::extract::FromRequestParts<S> for Connection {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.extensions))
    }
}
