//! `GET /healthz`: whether Ward is well, for programs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::sandbox::SandboxStatus;
use serde::Serialize;
use store::Store;

use crate::App;
use crate::failure::HttpFailure;

#[derive(Serialize)]
pub(crate) struct Health {
    status: &'static str,
    version: String,
    workspace: String,
    sandbox: SandboxStatus,
    store: StoreHealth,
}

#[derive(Serialize)]
struct StoreHealth {
    path: String,
    events: u64,
}

pub(crate) async fn show<S: Store>(
    State(app): State<Arc<App<S>>>,
) -> Result<Json<Health>, HttpFailure> {
    let events = app.store.count().await?;
    let about = &app.about;
    Ok(Json(Health {
        status: "ok",
        version: about.version.clone(),
        workspace: about.workspace.clone(),
        sandbox: about.sandbox.clone(),
        store: StoreHealth {
            path: about.store.clone(),
            events,
        },
    }))
}
