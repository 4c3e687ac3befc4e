//! `/approvals`: what a person is asked, and the answers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use protocol::http::{Approvals, PostAnswer};
use store::Store;

use super::whole;
use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::extract::{Id, Json};
use crate::failure::HttpFailure;

/// `GET /approvals`: what waits for this person's answer.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
) -> Result<Response, HttpFailure> {
    let approvals = app.gate.approvals(&caller.actor)?;
    Ok(ok(&Approvals { approvals }))
}

/// `GET /approvals/{id}`: one of them, whole.
pub(crate) async fn get<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let gate = app.gate.clone();
    // It closes what nobody answered in time, which is not left half done.
    let found = async move { gate.approval(&caller.actor, &id).await };
    Ok(ok(&whole(found).await?))
}

/// `POST /approvals/{id}`: the person's answer.
pub(crate) async fn answer<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    Json(answer): Json<PostAnswer>,
) -> Result<Response, HttpFailure> {
    let gate = app.gate.clone();
    let answered = async move { gate.answer(&caller.actor, &id, answer.into()).await };
    Ok(ok(&whole(answered).await?))
}
