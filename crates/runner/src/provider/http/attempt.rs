//! One attempt: the request is sent, and either an answer begins or a refusal is read.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use serde_json::Value;
use sse_stream::Sse;

use super::{Call, Endpoint, Fault, events, failure};
use crate::provider::{Patience, ProviderError, TurnRequest};

/// How much of a refusal is read.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The events of an answer. Dropping it closes the connection.
pub(super) type Answer = Pin<Box<dyn Stream<Item = Result<Sse, ProviderError>> + Send>>;

/// What is asked, and whom.
pub(super) struct Asking {
    pub(super) endpoint: Endpoint,
    pub(super) request: TurnRequest,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Asking {
    pub(super) fn new(endpoint: Endpoint, call: Call, request: TurnRequest) -> Self {
        Self {
            endpoint,
            request,
            path: call.path,
            headers: call.headers,
            body: call.body,
        }
    }

    pub(super) async fn ask(&self) -> Result<Answer, ProviderError> {
        let provider = || self.endpoint.name().to_owned();
        let waited = self.endpoint.timeouts().first_byte;
        let mut request = self
            .endpoint
            .client()?
            .post(format!("{}{}", self.endpoint.base(), self.path))
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(self.body.clone());
        for (name, value) in &self.headers {
            let mut value =
                HeaderValue::from_str(value).map_err(|_| ProviderError::BadEndpoint {
                    provider: provider(),
                    why: format!("the header {name} cannot be sent; check the key."),
                })?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let silent = |_| ProviderError::Timeout {
            provider: provider(),
            patience: Patience::FirstByte,
            after: waited,
        };
        let response = tokio::time::timeout(waited, request.send())
            .await
            .map_err(silent)?;
        let response = response.map_err(|error| ProviderError::Connect {
            provider: provider(),
            address: self.endpoint.address().to_owned(),
            why: events::root(&error),
        })?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        if let Some(kind) = no_stream(&response) {
            return Err(self.no_events(response, &kind).await);
        }
        let bytes = Box::pin(response.bytes_stream());
        Ok(Box::pin(events::events(
            provider(),
            bytes,
            self.endpoint.timeouts(),
        )))
    }

    async fn refused(&self, response: reqwest::Response) -> ProviderError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = all(response).await;
        failure::refused(&self.endpoint, &self.request.model, status, &headers, &body)
    }

    /// A page or an object where events were asked for: whoever stands in between answers so.
    async fn no_events(&self, response: reqwest::Response, kind: &str) -> ProviderError {
        let body = all(response).await;
        match serde_json::from_str::<Value>(&body) {
            Ok(body) if !body["error"].is_null() => {
                Fault::told(&body["error"]).into_error(&self.endpoint)
            }
            Ok(_) | Err(_) => ProviderError::BadStream {
                provider: self.endpoint.name().to_owned(),
                why: format!(
                    "it answered with {kind} where a stream of events was asked for; is {} its address",
                    self.endpoint.base()
                ),
            },
        }
    }
}

/// What an answer says it is, where that is no stream of events.
fn no_stream(response: &reqwest::Response) -> Option<String> {
    let kind = response.headers().get("content-type")?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    let is_other = ["application/json", "text/html"]
        .iter()
        .any(|other| kind.eq_ignore_ascii_case(other));
    is_other.then(|| kind.to_owned())
}

/// A short body, or its beginning.
async fn all(response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let mut bytes = Box::pin(response.bytes_stream());
    let read = async {
        while let Some(Ok(piece)) = bytes.next().await {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_REFUSAL {
                break;
            }
        }
    };
    // Whatever came of it will do: the status is known already.
    let _ = tokio::time::timeout(Duration::from_secs(5), read).await;
    String::from_utf8_lossy(&body).into_owned()
}
