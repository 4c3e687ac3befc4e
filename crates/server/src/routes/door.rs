//! `GET /gate`: the connection becomes one of JSON-RPC with the gate, as `ward gate --stdio` speaks
//! it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use protocol::http::UPGRADE;
use schemars::JsonSchema;
use serde::Deserialize;
use store::Store;

use crate::app::App;
use crate::auth::Caller;
use crate::connection::Connection;
use crate::extract::Params;
use crate::failure::HttpFailure;
use crate::upgrade;

/// Query of `GET /gate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// Where things happen that name no workspace of their own, by its absolute path; in Ward's own
    /// where nothing is said. An agent has its own.
    workspace: Option<String>,
}

pub(crate) async fn open<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Caller,
    connection: Connection,
    Params(query): Params<Query>,
    mut request: Request,
) -> Result<Response, HttpFailure> {
    let Some(upgrade) = upgrade::asked(&mut request, UPGRADE) else {
        return Ok(upgrade::required(
            UPGRADE,
            "The gate speaks JSON-RPC here. Send `Connection: upgrade` and `Upgrade: ward-gate`.",
        ));
    };
    let hold = app.hold(&caller)?;
    tokio::spawn(async move {
        let Some(stream) = upgrade::made(upgrade).await else {
            return;
        };
        let stop = connection.stop.child_token();
        let (reader, writer) = tokio::io::split(stream);
        let actor = caller.actor.clone();
        let workspace = query.workspace.map(PathBuf::from);
        let served = app
            .gate
            .serve(actor, workspace, reader, writer, stop.clone());
        tokio::pin!(served);
        tokio::select! {
            end = &mut served => drop(end),
            () = caller.gone(&app.tokens) => {
                stop.cancel();
                served.await;
            }
        }
        drop(hold);
    });
    Ok(upgrade::switching(UPGRADE))
}
