//! How a turn fails.

use std::time::Duration;

use protocol::ErrorKind;

/// How a turn fails: a sentence for people, [`kind`](Self::kind) for programs.
///
/// `said` are the provider's own words, cut to a bearable length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// No key. Nothing was sent.
    #[error(
        "There is no key for {provider}. Set {variable}, or `key` in [providers.{provider}] of the settings; nothing was sent."
    )]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable that would hold it.
        variable: String,
    },
    /// No provider for this model, or the provider does not know it.
    #[error("There is no model `{model}` here: {why}")]
    UnknownModel {
        /// As it was asked for.
        model: String,
        /// Why not, and what could be asked for; a whole sentence.
        why: String,
    },
    /// An address that nothing can be sent to, or a key that no header can carry.
    #[error("{provider} cannot be asked: {why}")]
    BadEndpoint {
        /// The provider.
        provider: String,
        /// Why not, and what to do; a whole sentence.
        why: String,
    },
    /// The key is not good, or not good for this.
    #[error("{provider} refused the key: {said}. Check {place}.")]
    Unauthorized {
        /// The provider.
        provider: String,
        /// Where the key is: a variable, or what the settings say.
        place: String,
        /// Its words.
        said: String,
    },
    /// Nothing is left to spend. Waiting does not help.
    #[error(
        "{provider} says that nothing is left to spend: {said}. Look at the plan and billing there."
    )]
    QuotaExhausted {
        /// The provider.
        provider: String,
        /// Its words.
        said: String,
    },
    /// Too much was asked in too short a time.
    #[error("{provider} takes no more for now: {said}.{}", wait(*retry_after))]
    RateLimited {
        /// The provider.
        provider: String,
        /// Its words.
        said: String,
        /// When it may be asked again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The provider has too much to do.
    #[error("{provider} is overloaded: {said}.{}", wait(*retry_after))]
    Overloaded {
        /// The provider.
        provider: String,
        /// Its words.
        said: String,
        /// When it may be asked again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model can read.
    #[error("The conversation is too long for this model of {provider}: {said}.")]
    ContextFull {
        /// The provider.
        provider: String,
        /// Its words.
        said: String,
    },
    /// The provider did not like the request.
    #[error("{provider} refused the request ({status}): {said}.")]
    BadRequest {
        /// The provider.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// Its words.
        said: String,
    },
    /// The provider failed.
    #[error("{provider} failed ({status}): {said}. Try again.")]
    Failed {
        /// The provider.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// Its words.
        said: String,
    },
    /// The provider could not be reached.
    #[error(
        "{provider} could not be reached at {address}: {why}. Check the address and the network."
    )]
    Connect {
        /// The provider.
        provider: String,
        /// Host and port.
        address: String,
        /// Why not.
        why: String,
    },
    /// Nothing came for too long.
    #[error("{provider} sent nothing for {} s {patience}. Try again.", after.as_secs_f32())]
    Timeout {
        /// The provider.
        provider: String,
        /// What was waited for.
        patience: Patience,
        /// How long.
        after: Duration,
    },
    /// The answer ended before its end.
    #[error(
        "{provider} broke off in the middle of its answer: {why}. What came is not the whole answer; try again."
    )]
    StreamCut {
        /// The provider.
        provider: String,
        /// What was missing.
        why: String,
    },
    /// The provider gave up while it answered.
    #[error(
        "{provider} failed in the middle of its answer: {said}. What came is not the whole answer; try again."
    )]
    InStream {
        /// The provider.
        provider: String,
        /// Its words.
        said: String,
    },
    /// What came cannot be read.
    #[error("{provider} answered something that cannot be read: {why}.")]
    BadStream {
        /// The provider.
        provider: String,
        /// What was wrong.
        why: String,
    },
    /// It was cancelled from this side.
    #[error("The turn was cancelled.")]
    Cancelled,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// The beginning of an answer.
    FirstByte,
    /// More of it.
    BetweenBytes,
}

impl std::fmt::Display for Patience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstByte => "after it was asked",
            Self::BetweenBytes => "in the middle of its answer",
        })
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!(
            " It may be asked again in {} s.",
            after.as_secs_f32().ceil()
        ),
        None => " Try again later.".to_owned(),
    }
}

impl ProviderError {
    /// The word for programs.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::MissingKey { .. } => ErrorKind::MissingKey,
            Self::UnknownModel { .. } => ErrorKind::UnknownModel,
            Self::BadEndpoint { .. } => ErrorKind::BadEndpoint,
            Self::Unauthorized { .. } => ErrorKind::KeyRefused,
            Self::QuotaExhausted { .. } => ErrorKind::QuotaExhausted,
            Self::RateLimited { .. } => ErrorKind::RateLimited,
            Self::Overloaded { .. } => ErrorKind::Overloaded,
            Self::ContextFull { .. } => ErrorKind::ContextFull,
            Self::BadRequest { .. } => ErrorKind::ProviderRefused,
            Self::Failed { .. } => ErrorKind::ProviderFailed,
            Self::Connect { .. } => ErrorKind::ProviderUnreachable,
            Self::Timeout { .. } => ErrorKind::ProviderTimeout,
            Self::StreamCut { .. } => ErrorKind::StreamCut,
            Self::InStream { .. } => ErrorKind::StreamFailed,
            Self::BadStream { .. } => ErrorKind::BadStream,
            Self::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// Whether asking once more could help, as long as nothing of the answer was passed on.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Failed { .. }
            | Self::Connect { .. }
            | Self::StreamCut { .. }
            | Self::InStream { .. } => true,
            Self::MissingKey { .. }
            | Self::UnknownModel { .. }
            | Self::BadEndpoint { .. }
            | Self::Unauthorized { .. }
            | Self::QuotaExhausted { .. }
            | Self::ContextFull { .. }
            | Self::BadRequest { .. }
            | Self::Timeout { .. }
            | Self::BadStream { .. }
            | Self::Cancelled => false,
        }
    }

    /// When the provider wants to be asked again, if it said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}
