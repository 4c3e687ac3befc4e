//! `/roles` and `/runtimes`: who agents can be, and where actions run.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use protocol::http::Roles;
use schemars::JsonSchema;
use serde::Deserialize;
use store::Store;

use super::blocking;
use crate::answer::ok;
use crate::app::App;
use crate::auth::Person;
use crate::extract::Params;
use crate::failure::HttpFailure;

/// Query of `GET /roles`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// The workspace, by its absolute path; Ward's own where none is named.
    workspace: Option<String>,
}

/// `GET /roles`: all roles, also those that may not be used.
pub(crate) async fn list<S: Store>(
    State(app): State<Arc<App<S>>>,
    Person(caller): Person,
    Params(query): Params<Query>,
) -> Result<Response, HttpFailure> {
    let gate = app.gate.clone();
    let roles = blocking(move || {
        let workspace = query.workspace.as_deref().map(Path::new);
        gate.roles(&caller.actor, workspace)
    });
    Ok(ok(&Roles {
        roles: roles.await?,
    }))
}
