//! What the providers that are asked over HTTP have in common: an endpoint, one attempt, and the
//! decision to try again.
//!
//! A wire is two things: a function from a request to JSON, and a [`Reader`] that is fed the events
//! of the answer one by one. Neither does any I/O, so both are tested with values.

mod attempt;
mod body;
mod endpoint;
pub(super) mod events;
mod failure;
mod retry;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use endpoint::{Endpoint, Timeouts};
pub use retry::Retries;

pub(super) use body::Body;
pub(super) use failure::Fault;

use super::{Delta, Deltas, Provider, ProviderError, TurnRequest, Wire};

/// One language, for one turn.
pub(super) trait Reader: Send + Sized + Unpin + 'static {
    /// A reader for the answer to this request, to whoever is called `provider`.
    fn new(provider: &str, request: &TurnRequest) -> Self;

    /// One event: its name, if it has one, and its data. What it means is put into `out`.
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), Fault>;

    /// The connection has ended. Puts [`Delta::Done`] into `out`, unless the answer was not whole.
    fn end(self, out: &mut Vec<Delta>) -> Result<(), Fault>;

    /// Whether nothing that matters can follow, so that nobody has to wait for the connection to
    /// end.
    fn is_complete(&self) -> bool;
}

/// Where a turn is sent, what, and with which headers.
pub(super) struct Call {
    /// Behind the base address, beginning with `/`.
    pub(super) path: String,
    /// Of this wire; the key is among them.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}

/// The data of an event, which is an object on every wire.
pub(super) fn object(data: &str) -> Result<Value, Fault> {
    match serde_json::from_str(data) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Fault::Unreadable("an event is no JSON object".to_owned())),
        Err(error) => Err(Fault::Unreadable(format!("an event is no JSON ({error})"))),
    }
}

/// What is under a key, taken out; nothing where there is no such key, or no object.
pub(super) fn take(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Text under a key, taken out.
pub(super) fn take_text(value: &mut Value, key: &str) -> String {
    match take(value, key) {
        Value::String(text) => text,
        _ => String::new(),
    }
}

/// A provider over HTTP.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    endpoint: Endpoint,
    wire: Wire,
}

impl HttpProvider {
    /// A provider that speaks `wire` at this endpoint. [`Wire::Offline`] is spoken nowhere.
    #[must_use]
    pub fn new(endpoint: Endpoint, wire: Wire) -> Self {
        Self { endpoint, wire }
    }

    fn ask<R: Reader>(
        &self,
        call: Call,
        request: TurnRequest,
        cancel: CancellationToken,
    ) -> Deltas {
        retry::turn::<R>(self.endpoint.clone(), call, request, cancel)
    }
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        self.endpoint.name()
    }

    fn wire(&self) -> Wire {
        self.wire
    }

    fn turn(&self, request: TurnRequest, cancel: CancellationToken) -> Deltas {
        use super::{anthropic, chat, gemini, responses};
        let endpoint = &self.endpoint;
        match self.wire {
            Wire::Anthropic => {
                let call = anthropic::request::call(endpoint, &request);
                self.ask::<anthropic::reader::Reader>(call, request, cancel)
            }
            Wire::Responses => {
                let call = responses::request::call(endpoint, &request);
                self.ask::<responses::reader::Reader>(call, request, cancel)
            }
            Wire::Chat => {
                let call = chat::request::call(endpoint, &request);
                self.ask::<chat::reader::Reader>(call, request, cancel)
            }
            Wire::Gemini => {
                let call = gemini::request::call(endpoint, &request);
                self.ask::<gemini::reader::Reader>(call, request, cancel)
            }
            Wire::Offline => {
                let error = ProviderError::BadEndpoint {
                    provider: endpoint.name().to_owned(),
                    why: "`offline` is not asked over a network.".to_owned(),
                };
                futures_util::stream::iter([Err(error)]).boxed()
            }
        }
    }
}
