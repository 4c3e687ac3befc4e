//! A connection that becomes another one: JSON-RPC with the gate, or a websocket.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HeaderName, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use protocol::ErrorKind;

use crate::failure::HttpFailure;

/// The connection, where the request asks that it become one of this protocol.
pub(crate) fn asked(request: &mut Request, protocol: &str) -> Option<OnUpgrade> {
    let headers = request.headers();
    if !says(headers, &CONNECTION, "upgrade") || !says(headers, &UPGRADE, protocol) {
        return None;
    }
    request.extensions_mut().remove()
}

/// The connection, once it has become that.
pub(crate) async fn made(upgrade: OnUpgrade) -> Option<TokioIo<Upgraded>> {
    match upgrade.await {
        Ok(stream) => Some(TokioIo::new(stream)),
        Err(error) => {
            tracing::debug!(%error, "a connection was not upgraded after all");
            None
        }
    }
}

/// Says that the connection becomes one of this protocol.
pub(crate) fn switching(protocol: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(protocol));
    response
}

/// Says that it would have to.
pub(crate) fn required(protocol: &'static str, sentence: &str) -> Response {
    let mut response = HttpFailure::new(ErrorKind::UpgradeRequired, sentence).into_response();
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static(protocol));
    response
}

fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(word))
}
