//! `GET /assets/{name}`: what the page is made of, as it was built into this binary.
//!
//! A name has the digest of its content in it, so an answer may be kept for ever. The bytes stay
//! where the binary has them: nothing is read, unpacked or copied at start.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use protocol::ErrorKind;

use crate::extract::Id;
use crate::failure::HttpFailure;

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    /// The same in gzip, where that is smaller.
    packed: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

pub(crate) async fn show(Id(name): Id, headers: HeaderMap) -> Result<Response, HttpFailure> {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Err(HttpFailure::new(
            ErrorKind::NotFound,
            "The page has no such part. Load it again: Ward may have been updated.",
        ));
    };
    let etag = format!("\"{}\"", asset.name);
    let known = headers.get(IF_NONE_MATCH).and_then(|tag| tag.to_str().ok());
    let mut response = if known.is_some_and(|known| known.contains(&etag)) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match asset.packed.filter(|_| takes_gzip(&headers)) {
            Some(packed) => ([(CONTENT_ENCODING, "gzip")], Body::from(packed)).into_response(),
            None => Body::from(asset.plain).into_response(),
        }
    };
    let answer = response.headers_mut();
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    answer.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    answer.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        answer.insert(ETAG, etag);
    }
    Ok(response)
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT_ENCODING)
        .and_then(|accepted| accepted.to_str().ok())
        .is_some_and(|accepted| {
            accepted.split(',').any(|coding| {
                let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
                name.trim() == "gzip" && !matches!(weight.trim(), "q=0" | "q=0.0")
            })
        })
}
