//! `/roles` and `/runtimes`: who agents can be, and where actions run.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use gate::runtime::RuntimeInfo;
use protocol::http::Roles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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

/// Answer of `GET /runtimes`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runtimes {
    /// Those that were needed so far.
    runtimes: Vec<RuntimeInfo>,
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

/// `GET /runtimes`: how they are.
pub(crate) async fn runtimes<S: Store>(State(app): State<Arc<App<S>>>, _: Person) -> Response {
    ok(&Runtimes {
        runtimes: app.gate.runtimes(),
    })
}
