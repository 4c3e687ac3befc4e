//! The providers: one way to ask any model for one turn.

mod anthropic;
mod chat;
mod error;
mod gemini;
mod history;
mod http;
mod message;
mod offline;
mod registry;
mod responses;
#[cfg(test)]
mod tests;
mod turn;
mod verbatim;

use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

pub use error::{Patience, ProviderError};
pub use http::{Endpoint, HttpProvider, Retries, Timeouts};
pub use message::{Content, Image, Message, Origin, Part, Raw, Role, ToolCall, ToolResult, Wire};
pub use offline::Offline;
pub use registry::{EndpointSettings, Key, Listing, Registry, Resolved, Settings};
pub use turn::{Delta, Effort, Stop, Tool, ToolChoice, Turn, TurnRequest, Usage};
pub use verbatim::Verbatim;

/// What a turn is told as, in order. Ends after [`Delta::Done`] or the first error.
pub type Deltas = BoxStream<'static, Result<Delta, ProviderError>>;

/// Someone who can be asked for a turn.
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// What it is called in front of a model's name: `anthropic`, `offline`, an endpoint's name.
    fn name(&self) -> &str;

    /// The language it is spoken to in.
    fn wire(&self) -> Wire;

    /// Asks for one turn. Nothing happens before the stream is polled; dropping the stream, or
    /// cancelling, closes the connection. After a cancel the stream ends with
    /// [`ProviderError::Cancelled`].
    fn turn(&self, request: TurnRequest, cancel: CancellationToken) -> Deltas;
}
