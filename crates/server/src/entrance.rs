//! What every request meets first, and every answer last. One layer for all of it: each costs every
//! request a task in a box of its own.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use broker::Broker;
use store::Store;

use crate::failure::HttpFailure;
use crate::host::Names;
use crate::{answer, hello, host, origin};

/// What the checks need to know.
pub(crate) struct Entrance<S: Store> {
    pub(crate) names: Names,
    pub(crate) broker: Broker<S>,
}

/// Lets a request in, or refuses it before anything else has looked at it.
pub(crate) async fn pass<S: Store>(
    State(entrance): State<Arc<Entrance<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match entrance.check(request).await {
        Ok(request) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    answer::guard(&mut response);
    response
}

impl<S: Store> Entrance<S> {
    async fn check(&self, request: Request) -> Result<Request, HttpFailure> {
        host::check(&self.names, &request)?;
        origin::check(&request)?;
        hello::check(&self.broker, request).await
    }
}
