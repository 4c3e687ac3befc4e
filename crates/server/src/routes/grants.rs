//! `/grants`: remembered answers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use protocol::http::Grants;
use store::Store;

use super::whole;
use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::extract::Id;
use crate::failure::HttpFailure;

/// `GET /grants`: those that hold for this person's agents.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
) -> Result<Response, HttpFailure> {
    let grants = app.gate.grants(&caller.actor)?;
    Ok(ok(&Grants { grants }))
}

/// `DELETE /grants/{id}`: takes one back. It holds no longer when this is answered.
pub(crate) async fn revoke<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let gate = app.gate.clone();
    let revoked = async move { gate.revoke(&caller.actor, &id).await };
    Ok(ok(&whole(revoked).await?))
}
