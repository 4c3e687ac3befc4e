//! `GET /healthz`: whether Ward is well, for programs.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use protocol::http::{Health, StoreHealth};
use store::Store;

use crate::answer::ok;
use crate::app::App;
use crate::auth::Caller;
use crate::failure::HttpFailure;

pub(crate) async fn show<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Result<Caller, HttpFailure>,
) -> Result<Response, HttpFailure> {
    let about = &app.about;
    let mut health = Health {
        status: "ok".into(),
        version: about.version.clone(),
        actor: None,
        address: None,
        workspace: None,
        sandbox: None,
        store: None,
        open_questions: None,
    };
    // Also for who is told nothing of it: without its store, Ward is not well.
    let events = app.gate.store().count().await?;
    if let Ok(caller) = caller {
        let open = u64::try_from(app.gate.open_questions()).unwrap_or(u64::MAX);
        health.actor = Some(caller.actor.name());
        if caller.is_runtime() {
            return Ok(ok(&health));
        }
        health.address = app.address.map(|address| address.to_string());
        health.workspace = Some(about.workspace.clone());
        health.sandbox = Some(about.sandbox.clone());
        health.open_questions = Some(open);
        health.store = Some(StoreHealth {
            path: about.store.clone(),
            events,
        });
    }
    Ok(ok(&health))
}
