//! `/runtimes`: where actions run, and editors that register as one more place.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocol::ErrorKind;
use protocol::runtime::{PostRuntime, RuntimeInfo, Runtimes};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Store;

use super::whole;
use crate::answer::{json, ok};
use crate::app::App;
use crate::auth::Person;
use crate::connection::Connection;
use crate::extract::{Id, Json, NoBody, Params};
use crate::failure::HttpFailure;

/// Query of `GET /runtimes`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// Only those of this workspace, by its path.
    pub(crate) workspace: Option<String>,
    /// Only those that can do this action.
    pub(crate) capability: Option<String>,
    /// Only those of this kind.
    pub(crate) kind: Option<String>,
}

/// `GET /runtimes`: yours, and how they are.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Params(query): Params<Query>,
) -> Response {
    let mut runtimes = app.gate.runtimes(&caller.actor);
    let workspace = query.workspace.as_deref().map(broker::real);
    let fits =
        |wanted: &Option<String>, is: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(is);
    runtimes.retain(|info: &RuntimeInfo| {
        fits(&workspace, &|path| info.workspace == path)
            && fits(&query.kind, &|kind| info.kind == kind)
            && fits(&query.capability, &|name| {
                info.capabilities.iter().any(|known| known == name)
            })
    });
    ok(&Runtimes { runtimes })
}

/// `POST /runtimes`: registers a connection of yours as a runtime.
pub(crate) async fn register<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Json(asked): Json<PostRuntime>,
) -> Result<Response, HttpFailure> {
    let broker = app.broker.clone();
    let registered = whole(async move { broker.register(&caller.actor, asked).await }).await?;
    Ok(json(StatusCode::CREATED, &registered))
}

/// `POST /runtimes/{id}/heartbeat`: it is still there.
pub(crate) async fn heartbeat<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    Ok(ok(&app.broker.heartbeat(&caller.actor, &id)?))
}

/// `POST /runtimes/{id}/here`: it is on this machine. Who asks over Ward's own socket shows that; a
/// word of theirs would not.
pub(crate) async fn here<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    connection: Connection,
    Id(id): Id,
    _: NoBody,
) -> Result<Response, HttpFailure> {
    if !connection.beside {
        return Err(HttpFailure::new(
            ErrorKind::Forbidden,
            "This does not show that the runtime is on Ward's machine. Ask over Ward's own socket, as its user, from where its files are.",
        ));
    }
    let tier = app.about.sandbox.tier;
    Ok(ok(&app.broker.here(&caller.actor, &id, tier)?))
}

/// `DELETE /runtimes/{id}`: it is a runtime no longer.
pub(crate) async fn unregister<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Id(id): Id,
) -> Result<Response, HttpFailure> {
    let broker = app.broker.clone();
    let gone = whole(async move { broker.unregister(&caller.actor, &id).await }).await?;
    Ok(ok(&gone))
}
