//! How things fail: a sentence for people, a stable kind for programs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Every way Ward refuses or fails. The word never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A frame or its JSON could not be read.
    ParseError,
    /// JSON, but not a JSON-RPC request (batches too).
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// The parameters do not fit.
    InvalidParams,
    /// A fault of Ward's own.
    Internal,
    /// The client cancelled the request.
    Cancelled,
    /// A frame over the limit.
    FrameTooLarge,
    /// `initialize` has to come first.
    NotInitialized,
    /// `shutdown` was asked for; nothing new starts.
    ShuttingDown,
    /// The token is missing or wrong.
    Unauthorized,
    /// The connection is gone.
    Disconnected,
    /// No such action.
    UnknownAction,
    /// The same id was used for something else.
    Conflict,
    /// Too much is under way.
    Busy,
    /// The server is standalone: no permits, no walls.
    Standalone,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The path carries authority; agents may not change it.
    Protected,
    /// Nothing is there.
    NotFound,
    /// Something is there already.
    AlreadyExists,
    /// Not a regular file: a folder, a device, a FIFO, a socket.
    NotAFile,
    /// Not a folder.
    NotADirectory,
    /// The folder still has entries.
    NotEmpty,
    /// It is not what it was when it was looked at.
    Changed,
    /// `old` of an edit does not occur.
    NoMatch,
    /// `old` of an edit occurs more than once.
    AmbiguousMatch,
    /// A hunk of the patch does not fit.
    PatchFailed,
    /// More than the limit allows.
    TooLarge,
    /// Not the encoding it was said to be.
    BadEncoding,
    /// A regex or glob that cannot be read.
    BadPattern,
    /// The operating system refused.
    PermissionDenied,
    /// The operating system failed.
    Io,
    /// No such program.
    CommandNotFound,
    /// No such terminal.
    UnknownTerminal,
    /// HTTP: this address does not take this method.
    MethodNotAllowed,
    /// HTTP: the request was meant for another host, as in DNS rebinding.
    WrongHost,
    /// HTTP: another site's page sent the request.
    WrongOrigin,
    /// HTTP: the body is not JSON.
    WrongContentType,
    /// HTTP: the request took too long to arrive.
    TimedOut,
    /// HTTP: this address speaks another protocol, for which the connection has to be upgraded.
    UpgradeRequired,
    /// The policy, or a person, said no.
    Denied,
    /// Whoever this is may not do that, whatever the policy says.
    Forbidden,
    /// No such approval, action, grant or token, or not yours.
    Unknown,
    /// It was answered already, or ran out.
    Closed,
    /// There is no such role, or it cannot be used.
    UnknownRole,
    /// The runtime ended while it worked on this. Nobody knows how far it came.
    RuntimeLost,
    /// The runtime cannot be had at the moment.
    RuntimeUnavailable,
    /// No runtime is what was asked for.
    NoRuntime,
    /// Several runtimes are what was asked for.
    SeveralRuntimes,
    /// The runtime's connection is lost; it may come back.
    RuntimeAway,
    /// The runtime cannot do this action.
    NotCapable,
    /// The runtime did not answer in time.
    RuntimeTimeout,
    /// Too many wrong tokens.
    TooManyAttempts,
    /// The rules or roles have mistakes in them.
    BadPolicy,
    /// The sandbox cannot hold here what the settings demand.
    SandboxUnavailable,
    /// A layer of the sandbox could not be set up.
    SandboxFailed,
    /// No provider for this model, or the provider does not know it.
    UnknownModel,
    /// There is no key for the model's provider.
    MissingKey,
    /// There is a limit of cost, and nobody has said what the model costs.
    UnknownPrice,
    /// The provider's address or key cannot be used.
    BadEndpoint,
    /// The provider refused the key.
    KeyRefused,
    /// Nothing is left to spend at the provider.
    QuotaExhausted,
    /// The provider takes no more for now.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The conversation is longer than the model can read.
    ContextFull,
    /// The provider did not like the request.
    ProviderRefused,
    /// The provider failed.
    ProviderFailed,
    /// The provider could not be reached.
    ProviderUnreachable,
    /// The provider sent nothing for too long.
    ProviderTimeout,
    /// The provider's answer ended before its end.
    StreamCut,
    /// The provider gave up in the middle of its answer.
    StreamFailed,
    /// The provider's answer cannot be read.
    BadStream,
    /// The model called a tool that it does not have.
    UnknownTool,
    /// Ward ended while a session was under way.
    Interrupted,
    /// These events are gone; what they amounted to is kept.
    Compacted,
}

impl ErrorKind {
    /// The JSON-RPC error code: the standard one where there is one.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest | Self::FrameTooLarge => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::NotInitialized => -32002,
            Self::Cancelled => -32800,
            Self::Changed => -32801,
            Self::ShuttingDown
            | Self::Unauthorized
            | Self::Disconnected
            | Self::UnknownAction
            | Self::Conflict
            | Self::Busy
            | Self::Standalone
            | Self::OutsideWorkspace
            | Self::Protected
            | Self::NotFound
            | Self::AlreadyExists
            | Self::NotAFile
            | Self::NotADirectory
            | Self::NotEmpty
            | Self::NoMatch
            | Self::AmbiguousMatch
            | Self::PatchFailed
            | Self::TooLarge
            | Self::BadEncoding
            | Self::BadPattern
            | Self::PermissionDenied
            | Self::Io
            | Self::CommandNotFound
            | Self::UnknownTerminal
            | Self::MethodNotAllowed
            | Self::WrongHost
            | Self::WrongOrigin
            | Self::WrongContentType
            | Self::TimedOut
            | Self::UpgradeRequired
            | Self::Denied
            | Self::Forbidden
            | Self::Unknown
            | Self::Closed
            | Self::UnknownRole
            | Self::RuntimeLost
            | Self::RuntimeUnavailable
            | Self::NoRuntime
            | Self::SeveralRuntimes
            | Self::RuntimeAway
            | Self::NotCapable
            | Self::RuntimeTimeout
            | Self::TooManyAttempts
            | Self::BadPolicy
            | Self::SandboxUnavailable
            | Self::SandboxFailed
            | Self::UnknownModel
            | Self::MissingKey
            | Self::UnknownPrice
            | Self::BadEndpoint
            | Self::KeyRefused
            | Self::QuotaExhausted
            | Self::RateLimited
            | Self::Overloaded
            | Self::ContextFull
            | Self::ProviderRefused
            | Self::ProviderFailed
            | Self::ProviderUnreachable
            | Self::ProviderTimeout
            | Self::StreamCut
            | Self::StreamFailed
            | Self::BadStream
            | Self::UnknownTool
            | Self::Interrupted
            | Self::Compacted => -32000,
        }
    }

    /// The HTTP status: the one table.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::ParseError
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::BadEncoding
            | Self::BadPattern
            | Self::Standalone => 400,
            Self::Unauthorized => 401,
            Self::Denied
            | Self::Forbidden
            | Self::WrongHost
            | Self::WrongOrigin
            | Self::OutsideWorkspace
            | Self::Protected
            | Self::PermissionDenied => 403,
            Self::NotFound
            | Self::Unknown
            | Self::UnknownAction
            | Self::UnknownRole
            | Self::UnknownTerminal
            | Self::UnknownTool
            | Self::NoRuntime
            | Self::MethodNotFound
            | Self::CommandNotFound
            | Self::NotADirectory => 404,
            Self::MethodNotAllowed => 405,
            Self::TimedOut => 408,
            Self::Conflict
            | Self::Closed
            | Self::Changed
            | Self::AlreadyExists
            | Self::NotAFile
            | Self::NotEmpty
            | Self::NoMatch
            | Self::AmbiguousMatch
            | Self::PatchFailed
            | Self::NotInitialized
            | Self::Cancelled
            | Self::Interrupted
            | Self::SeveralRuntimes
            | Self::BadPolicy => 409,
            Self::Compacted => 410,
            Self::TooLarge | Self::FrameTooLarge => 413,
            Self::WrongContentType => 415,
            // The request is well made; with this model nothing can come of it here.
            Self::UnknownModel
            | Self::MissingKey
            | Self::UnknownPrice
            | Self::BadEndpoint
            | Self::ContextFull
            | Self::NotCapable => 422,
            Self::UpgradeRequired => 426,
            Self::TooManyAttempts | Self::RateLimited => 429,
            Self::Internal | Self::Io | Self::SandboxFailed => 500,
            Self::KeyRefused
            | Self::QuotaExhausted
            | Self::ProviderRefused
            | Self::ProviderFailed
            | Self::ProviderUnreachable
            | Self::ProviderTimeout
            | Self::StreamCut
            | Self::StreamFailed
            | Self::BadStream => 502,
            Self::Busy
            | Self::Overloaded
            | Self::ShuttingDown
            | Self::Disconnected
            | Self::RuntimeLost
            | Self::RuntimeUnavailable
            | Self::RuntimeAway
            | Self::RuntimeTimeout
            | Self::SandboxUnavailable => 503,
        }
    }
}

/// A failure as it crosses a boundary: what happened, why, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The stable word.
    pub kind: ErrorKind,
    /// The sentence.
    pub message: String,
    /// More for programs: it joins `kind` in the error's `data`.
    pub details: Map<String, Value>,
}

impl Failure {
    /// A failure with no details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Map::new(),
        }
    }

    /// Adds one detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// What a JSON-RPC error carries as `data`.
    #[must_use]
    pub fn data(&self) -> Value {
        let mut data = self.details.clone();
        data.insert("kind".to_owned(), serde_json::json!(self.kind));
        Value::Object(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_failure_carries_its_kind_beside_the_details() {
        let failure = Failure::new(ErrorKind::OutsideWorkspace, "no").with("path", "../x");
        assert_eq!(
            failure.data(),
            serde_json::json!({"kind": "outside_workspace", "path": "../x"})
        );
    }
}
