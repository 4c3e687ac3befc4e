//! What can go wrong when something is appended or read.

use crate::name::StreamName;
use crate::seq::Seq;

/// Why nothing was appended, or nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else appended in between.
    #[error(
        "The stream `{stream}` is at {actual}, not at {expected} as was expected: something was appended in between. Read on from there and try again."
    )]
    Conflict {
        /// Which stream.
        stream: StreamName,
        /// Where it was expected to be.
        expected: Seq,
        /// Where it is.
        actual: Seq,
    },
    /// The engine failed; nothing of the batch was written.
    #[error("The store failed: {0}.")]
    Failed(String),
    /// The store was closed.
    #[error("The store is closed.")]
    Closed,
}
