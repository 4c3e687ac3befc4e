//! `GET /gate`: the connection becomes one of JSON-RPC with the gate, as `ward gate --stdio` speaks
//! it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, HeaderName, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use store::Store;

use crate::app::App;
use crate::auth::Caller;
use crate::connection::Connection;
use crate::extract::Params;
use crate::failure::HttpFailure;

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
    let headers = request.headers();
    let asked =
        says(headers, &CONNECTION, "upgrade") && says(headers, &UPGRADE, protocol::http::UPGRADE);
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (true, Some(upgrade)) = (asked, upgrade) else {
        return Err(HttpFailure::new(
            ErrorKind::UpgradeRequired,
            "The gate speaks JSON-RPC here. Send `Connection: upgrade` and `Upgrade: ward-gate`.",
        ));
    };
    let hold = app.hold(&caller)?;
    tokio::spawn(async move {
        let stream = match upgrade.await {
            Ok(stream) => TokioIo::new(stream),
            Err(error) => {
                tracing::debug!(%error, "a connection was not upgraded after all");
                return;
            }
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
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(protocol::http::UPGRADE));
    Ok(response)
}

fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(word))
}
