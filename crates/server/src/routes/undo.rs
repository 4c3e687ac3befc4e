//! `POST /undo`: puts back what file actions replaced.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use gate::Undo;
use protocol::undo::UndoParams;
use store::Store;

use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::extract::Json;
use crate::failure::HttpFailure;

pub(crate) async fn post<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Json(params): Json<UndoParams>,
) -> Result<Response, HttpFailure> {
    let what = Undo::try_from(params)?;
    Ok(ok(&app.gate.undo(&caller.actor, what).await?))
}
