//! What a request brings: a body in JSON, an id in its path, parameters in its query.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use bytes::Bytes;
use futures_util::StreamExt as _;
use notebooks::MAX_FILE;
use protocol::{ErrorKind, Failure};
use serde::de::DeserializeOwned;

use crate::failure::HttpFailure;

/// How large a body can be.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// The same with the text of a notebook's file in it: as a string it has a backslash before each of
/// its quotes and instead of each end of a line, so that it is twice as large at most.
pub(crate) const MAX_WITH_FILE: usize = 2 * MAX_FILE + 1024 * 1024;
/// How long a body has to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);
/// How much of a body that is too large is still taken, and for how long, so that its sender gets to
/// read the answer.
const MAX_DRAINED: usize = 4 * MAX_BODY;
const DRAIN: Duration = Duration::from_secs(3);

/// A body in JSON. Refuses another content type (415), one that is too large (413), too slow (408),
/// no JSON or not what is asked for (400).
pub(crate) struct Json<T, const MAX: usize = MAX_BODY>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned, const MAX: usize> FromRequest<S> for Json<T, MAX> {
    type Rejection = HttpFailure;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpFailure> {
        let (parts, body) = request.into_parts();
        if !parts.headers.get(CONTENT_TYPE).is_some_and(is_json) {
            return Err(not_json());
        }
        let bytes = read::<MAX>(&parts.headers, body).await?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let error = error.into_inner();
            if !error.is_data() {
                let hint = match is_no_number(&bytes, &error) {
                    true => " `NaN` and `Infinity` are no JSON, though Python writes them. A notebook's file with them can be sent as a string, which is its text; elsewhere put null or a text in their place.",
                    false => "",
                };
                return Failure::new(
                    ErrorKind::ParseError,
                    format!("The body is not JSON that can be read: {error}.{hint}"),
                );
            }
            match path.as_str() {
                "." => Failure::new(
                    ErrorKind::InvalidParams,
                    format!("The body does not fit: {error}."),
                ),
                field => Failure::new(
                    ErrorKind::InvalidParams,
                    format!("`{field}` of the body does not fit: {error}."),
                )
                .with("field", field),
            }
        })?;
        reader.end().map_err(|error| {
            HttpFailure::new(
                ErrorKind::ParseError,
                format!("Something follows the JSON of the body: {error}."),
            )
        })?;
        Ok(Self(value))
    }
}

/// Whether what cannot be read is a number that JSON does not have.
fn is_no_number(body: &[u8], error: &serde_json::Error) -> bool {
    let mut lines = body.split(|byte| *byte == b'\n');
    let line = lines
        .nth(error.line().saturating_sub(1))
        .unwrap_or_default();
    // It stops at the letter that does not fit: the first, or the one after the sign.
    let from = error.column().saturating_sub(2);
    let rest = line.get(from..).unwrap_or_default();
    let words: [&[u8]; 2] = [b"NaN", b"Infinity"];
    let begins = |at: usize| {
        let rest = rest.get(at..).unwrap_or_default();
        words.iter().any(|word| rest.starts_with(word))
    };
    (0..=2).any(begins)
}

/// No body is needed. Refuses one that is not JSON (415); what is in it is not looked at.
pub(crate) struct NoBody;

impl<S: Sync> FromRequestParts<S> for NoBody {
    type Rejection = HttpFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpFailure> {
        match parts.headers.get(CONTENT_TYPE) {
            Some(other) if !is_json(other) => Err(not_json()),
            Some(_) | None => Ok(Self),
        }
    }
}

fn is_json(value: &axum::http::HeaderValue) -> bool {
    let Ok(text) = value.to_str() else {
        return false;
    };
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn not_json() -> HttpFailure {
    HttpFailure::new(
        ErrorKind::WrongContentType,
        "The body has to be JSON. Send `Content-Type: application/json`.",
    )
}

async fn read<const MAX: usize>(headers: &HeaderMap, body: Body) -> Result<Bytes, HttpFailure> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok())
        .unwrap_or_default();
    let mut pieces = body.into_data_stream();
    let arrived = async {
        let mut body = Vec::with_capacity(announced.min(MAX));
        while announced <= MAX
            && let Some(piece) = pieces.next().await
        {
            let piece = piece.map_err(|error| {
                HttpFailure::new(
                    ErrorKind::InvalidRequest,
                    format!("The body could not be read: {error}."),
                )
            })?;
            body.extend_from_slice(&piece);
            if body.len() > MAX {
                return Err(too_large(MAX));
            }
        }
        if announced > MAX {
            return Err(too_large(MAX));
        }
        Ok(body.into())
    };
    match tokio::time::timeout(ARRIVAL, arrived).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(failure)) => {
            drain(pieces).await;
            Err(failure)
        }
        Err(_) => Err(HttpFailure::new(
            ErrorKind::TimedOut,
            format!("The body took longer than {} seconds.", ARRIVAL.as_secs()),
        )),
    }
}

async fn drain(mut pieces: BodyDataStream) {
    let taken = async {
        let mut taken = 0;
        while let Some(Ok(piece)) = pieces.next().await {
            taken += piece.len();
            if taken > MAX_DRAINED {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN, taken).await;
}

fn too_large(most: usize) -> HttpFailure {
    HttpFailure::new(
        ErrorKind::TooLarge,
        format!(
            "The body is larger than {} MiB, the most that is taken. Send what is in it in several requests.",
            most >> 20
        ),
    )
}

/// The id in a path.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = HttpFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpFailure> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(error) => Err(HttpFailure::new(
                ErrorKind::InvalidParams,
                format!("The id in the path cannot be read: {}.", error.body_text()),
            )),
        }
    }
}

/// What is wrong with a query, without what axum says before it.
fn without_its_own_words(said: &str) -> &str {
    let own = "Failed to deserialize query string: ";
    said.strip_prefix(own).unwrap_or(said)
}

/// The parameters of a query. Refuses what does not fit (400).
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = HttpFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpFailure> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(error) => Err(HttpFailure::new(
                ErrorKind::InvalidParams,
                format!(
                    "The query does not fit: {}. `/openapi.json` says what its parameters are.",
                    without_its_own_words(&error.body_text())
                ),
            )),
        }
    }
}
