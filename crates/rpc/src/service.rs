//! What one side of a connection does for the other.

use std::future::Future;
use std::sync::Arc;

use protocol::{ErrorKind, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::cancel::Cancel;
use crate::message::Answer;

/// Answers what the other side asks.
///
/// The futures are polled by the peer itself: one that is ready at once costs no task. In return
/// they must not block; what takes the processor for long belongs on a thread of its own.
pub trait Service: Send + Sync {
    /// Answers a request. Many are under way at once. When the other side cancels the request or
    /// goes away, the future is dropped, unless it took [`Request::cancel_token`].
    fn request(&self, request: Request) -> impl Future<Output = Answer> + Send;

    /// Takes a notification. What arrives after it, responses too, waits until this is done: that
    /// keeps the order and is the back-pressure. So it must not wait for an answer from the other
    /// side.
    fn notification(&self, notification: Notification) -> impl Future<Output = ()> + Send;
}

/// For a side that is never asked: every request is refused, every notification passed over.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoService;

impl Service for NoService {
    async fn request(&self, request: Request) -> Answer {
        Err(request.unknown())
    }

    async fn notification(&self, _notification: Notification) {}
}

/// Something asked by the other side.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub method: String,
    /// The parameters, as JSON that was not read yet.
    pub params: Option<Box<RawValue>>,
    pub(crate) cancel: Arc<Cancel>,
}

impl Request {
    /// The parameters as a type. None at all count as `{}`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read(&self.method, self.params.as_deref())
    }

    /// Told when the request is cancelled or the connection ends. Who takes it is not dropped then,
    /// but has to end soon and to answer.
    #[must_use]
    pub fn cancel_token(&self) -> CancellationToken {
        self.cancel.token()
    }

    /// The failure for a method that the service does not know.
    #[must_use]
    pub fn unknown(&self) -> Failure {
        Failure::new(
            ErrorKind::MethodNotFound,
            format!("There is no method `{}`.", self.method),
        )
        .with("method", self.method.as_str())
    }
}

/// Something told by the other side.
#[derive(Debug)]
pub struct Notification {
    /// What it is about.
    pub method: String,
    /// The parameters, as JSON that was not read yet.
    pub params: Option<Box<RawValue>>,
}

impl Notification {
    /// The parameters as a type. None at all count as `{}`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read(&self.method, self.params.as_deref())
    }
}

/// An answer from anything that can be written as JSON.
pub fn answer<T: Serialize + ?Sized>(result: &T) -> Answer {
    serde_json::value::to_raw_value(result).map_err(|error| {
        Failure::new(
            ErrorKind::Internal,
            format!("The result cannot be written as JSON ({error})."),
        )
    })
}

fn read<T: DeserializeOwned>(method: &str, params: Option<&RawValue>) -> Result<T, Failure> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        Failure::new(
            ErrorKind::InvalidParams,
            format!("The parameters of `{method}` do not fit: {error}."),
        )
    })
}
