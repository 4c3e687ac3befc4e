//! Failures as they are answered: a sentence, the status, a stable word, and more for programs.

use std::time::Duration;

use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use protocol::gate::Failed;
use protocol::{ErrorKind, Failure};

use crate::answer::json;
use crate::auth::TokensError;

/// A failure on its way to the client.
#[derive(Debug)]
pub(crate) struct HttpFailure {
    failure: Failure,
    retry_after: Option<Duration>,
}

impl HttpFailure {
    pub(crate) fn new(kind: ErrorKind, sentence: impl Into<String>) -> Self {
        Failure::new(kind, sentence).into()
    }

    /// What happened, for people.
    pub(crate) fn sentence(&self) -> &str {
        &self.failure.message
    }

    /// Says when to come again.
    pub(crate) fn after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }
}

impl IntoResponse for HttpFailure {
    fn into_response(self) -> Response {
        let kind = self.failure.kind;
        let body = Failed::from(self.failure);
        // The table has no number that is not a status.
        let status = StatusCode::from_u16(body.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &body);
        let headers = response.headers_mut();
        if kind == ErrorKind::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(pause) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(pause.as_secs().max(1)));
        }
        response
    }
}

impl From<Failure> for HttpFailure {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            retry_after: None,
        }
    }
}

impl From<store::StoreError> for HttpFailure {
    fn from(error: store::StoreError) -> Self {
        tracing::error!(%error, "the store failed");
        Self::new(ErrorKind::Internal, error.to_string())
    }
}

impl From<TokensError> for HttpFailure {
    fn from(error: TokensError) -> Self {
        tracing::error!(%error, "the tokens could not be used");
        // Where they are is nobody's business who has not signed in.
        Self::new(
            ErrorKind::Internal,
            "The tokens could not be used. Ward's log says why.",
        )
    }
}

pub(crate) async fn no_such_address(uri: Uri) -> HttpFailure {
    HttpFailure::new(
        ErrorKind::NotFound,
        format!(
            "There is nothing at `{}`. `GET /openapi.json` says what is there.",
            uri.path()
        ),
    )
}

pub(crate) async fn no_such_method(method: Method, uri: Uri) -> HttpFailure {
    HttpFailure::new(
        ErrorKind::MethodNotAllowed,
        format!(
            "`{}` does not take {method}; the `{ALLOW}` header says what it takes.",
            uri.path()
        ),
    )
}
