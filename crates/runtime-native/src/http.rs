//! The way to Ward: requests, and events as they happen. [`Remote`] is the one over the network; a
//! process that is Ward itself has another.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use reqwest::ClientBuilder;
use runtime_core::Unanswered;
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};
use tower::filter::FilterLayer;

use crate::owner::stranger;

/// How long Ward has for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that says nothing for so long, not even that it is there, is lost.
const SILENCE: Duration = Duration::from_secs(60);
/// The largest answer that is taken.
const MAX_ANSWER: usize = 128 << 20;
/// The header that carries a runtime session's token.
pub(crate) const RUNTIME: &str = "x-ward-runtime";

/// What Ward answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// What was refused, in Ward's words.
    pub(crate) fn sentence(&self) -> String {
        match self.json()["error"].as_str() {
            Some(sentence) => sentence.to_owned(),
            None => format!("Ward answered {}.", self.status),
        }
    }

    /// The same as an error: another time may be better, or not.
    pub(crate) fn unanswered(&self) -> Unanswered {
        match self.status {
            408 | 425 | 429 | 500.. => Unanswered::Away(self.sentence()),
            _ => Unanswered::Refused(self.sentence()),
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Something that happened, with its number in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Its number; what is true only now has none.
    pub id: Option<u64>,
    /// What, as JSON.
    pub data: String,
}

/// Events as they come; an error is the end of it.
pub type Events = Pin<Box<dyn Stream<Item = Result<Happened, String>>>>;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// Its path, with the query.
    pub path: String,
    /// The token of a runtime session.
    pub runtime: Option<&'a str>,
    /// What the body is.
    pub content_type: Option<&'a str>,
    /// The body.
    pub body: Vec<u8>,
}

/// The way to Ward, as the person whose token it has.
pub trait Http {
    /// Asks for something. An error is that Ward cannot be reached.
    fn call(&self, request: Request<'_>) -> impl Future<Output = Result<Answer, String>>;

    /// Follows a stream of events.
    fn follow(&self, path: &str) -> impl Future<Output = Result<Result<Events, Answer>, String>>;
}

/// Ward at an address.
#[derive(Clone)]
pub struct Remote {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// The Ward at this address. Nothing is followed elsewhere: the token is for it alone.
    pub fn new(url: &str, token: &str) -> Result<Self, String> {
        Self::with(builder(), url, token)
    }

    /// The same, where the token is for nobody but a Ward that this user, or root, runs here: before
    /// each connection it is seen who listens.
    pub fn ours_alone(url: &str, token: &str) -> Result<Self, String> {
        let address = url.to_owned();
        let is_ours = FilterLayer::new(move |connection| match stranger(&address) {
            None => Ok(connection),
            Some(user) => Err(format!(
                "at {address} another user of this machine answers (uid {user}); nothing was sent there"
            )),
        });
        Self::with(builder().connector_layer(is_ours), url, token)
    }

    fn with(builder: ClientBuilder, url: &str, token: &str) -> Result<Self, String> {
        // It is an error only where another part of this process was first, with the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            client: builder.build().map_err(|error| error.to_string())?,
            url: url.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
        })
    }

    fn request(&self, method: &str, path: &str) -> Result<reqwest::RequestBuilder, String> {
        let method = reqwest::Method::from_bytes(method.as_bytes());
        let method = method.map_err(|error| error.to_string())?;
        let address = format!("{}{path}", self.url);
        Ok(self
            .client
            .request(method, address)
            .bearer_auth(&self.token))
    }
}

fn builder() -> ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(SILENCE)
        .no_proxy()
}

impl Http for Remote {
    async fn call(&self, asked: Request<'_>) -> Result<Answer, String> {
        let mut request = self.request(asked.method, &asked.path)?.timeout(PATIENCE);
        if let Some(token) = asked.runtime {
            request = request.header(RUNTIME, token);
        }
        if let Some(content_type) = asked.content_type {
            request = request
                .header(reqwest::header::CONTENT_TYPE, content_type)
                .body(asked.body);
        }
        let response = request.send().await.map_err(|error| away(&error))?;
        whole(response).await
    }

    async fn follow(&self, path: &str) -> Result<Result<Events, Answer>, String> {
        let request = self.request("GET", path)?;
        let request = request.header(reqwest::header::ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(|error| away(&error))?;
        if !response.status().is_success() {
            return Ok(Err(whole(response).await?));
        }
        let bytes = Box::pin(response.bytes_stream());
        let events = SseByteStream::new(bytes);
        let events = events.filter_map(|event| std::future::ready(happened(event)));
        Ok(Ok(Box::pin(events)))
    }
}

/// An event as it came; nothing for one that says nothing.
fn happened(event: Result<Sse, sse_stream::Error>) -> Option<Result<Happened, String>> {
    match event {
        Ok(event) => Some(Ok(Happened {
            id: event.id.as_deref().and_then(|id| id.trim().parse().ok()),
            data: event.data?,
        })),
        Err(error) => Some(Err(error.to_string())),
    }
}

async fn whole(response: reqwest::Response) -> Result<Answer, String> {
    let status = response.status().as_u16();
    let mut bytes = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(piece) = bytes.next().await {
        body.extend_from_slice(&piece.map_err(|error| away(&error))?);
        if body.len() > MAX_ANSWER {
            return Err("Ward's answer is too long.".to_owned());
        }
    }
    Ok(Answer { status, body })
}

/// The innermost reason, which says what happened; the address may hold what is not for a log.
fn away(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}
