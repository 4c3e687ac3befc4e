//! `GET /frames/output`: where a notebook's page shows HTML that a cell made.
//!
//! The document is a world of its own: its policy makes its origin opaque, so that nothing in it can
//! read the page, its storage or its cookie, or ask Ward for anything. It runs one script, its own,
//! known by its digest: what is shown brings none that runs. It can fetch nothing. All that comes and
//! goes is what the page sends over one message port, and how tall the frame would like to be.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use sha2::Digest as _;

const SCRIPT: &str = include_str!("frame.js");
const STYLE: &str = include_str!("frame.css");

const PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(SCRIPT));
    format!(
        "sandbox allow-scripts; default-src 'none'; script-src 'sha256-{digest}'; \
         style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
});

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Output</title>\n\
         <style>{STYLE}</style>\n<body>\n<script>{SCRIPT}</script>\n"
    )
});

pub(crate) async fn output() -> Response {
    let head = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // A name that is looked up is a word to whoever answers for it.
        (PREFETCH, "off"),
    ];
    let mut response = (head, DOCUMENT.as_str()).into_response();
    // The policy is made of letters, digits and signs that a header may have.
    let policy = HeaderValue::from_str(&POLICY);
    let policy = policy.unwrap_or(HeaderValue::from_static("sandbox; default-src 'none'"));
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, policy);
    response
}
