//! Failures as they are answered: a sentence, the status, a stable word.

use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use protocol::ErrorKind;
use serde::Serialize;

/// A failure on its way to the client.
#[derive(Debug)]
pub(crate) struct HttpFailure {
    pub(crate) status: StatusCode,
    pub(crate) kind: ErrorKind,
    pub(crate) sentence: String,
}

#[derive(Serialize)]
struct Body {
    error: String,
    code: u16,
    kind: ErrorKind,
}

impl IntoResponse for HttpFailure {
    fn into_response(self) -> Response {
        let body = Body {
            error: self.sentence,
            code: self.status.as_u16(),
            kind: self.kind,
        };
        (self.status, Json(body)).into_response()
    }
}

impl From<store::StoreError> for HttpFailure {
    fn from(error: store::StoreError) -> Self {
        tracing::error!(%error, "the store could not be read");
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            kind: ErrorKind::Internal,
            sentence: error.to_string(),
        }
    }
}

pub(crate) async fn no_such_address(uri: Uri) -> HttpFailure {
    HttpFailure {
        status: StatusCode::NOT_FOUND,
        kind: ErrorKind::NotFound,
        sentence: format!(
            "There is nothing at `{}`. `GET /` says what is there.",
            uri.path()
        ),
    }
}

pub(crate) async fn no_such_method(method: Method, uri: Uri) -> HttpFailure {
    HttpFailure {
        status: StatusCode::METHOD_NOT_ALLOWED,
        kind: ErrorKind::MethodNotAllowed,
        sentence: format!(
            "`{}` does not take {method}; the `Allow` header says what it takes.",
            uri.path()
        ),
    }
}
