//! Answers: JSON, and the headers that every answer has.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

/// An answer in JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    let (status, body) = match serde_json::to_vec(value) {
        Ok(body) => (status, body),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            let failed = StatusCode::INTERNAL_SERVER_ERROR;
            let body =
                br#"{"error":"The answer could not be written.","code":500,"kind":"internal"}"#;
            (failed, body.to_vec())
        }
    };
    written(status, body)
}

/// An answer that is JSON already.
pub(crate) fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A good answer in JSON.
pub(crate) fn ok<T: Serialize>(value: &T) -> Response {
    json(StatusCode::OK, value)
}

/// What keeps an answer from being kept, taken for something else or read by other sites.
pub(crate) fn guard(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
