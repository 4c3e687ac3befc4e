//! Where an action's output goes while it happens.

use protocol::method::OutputParams;
use tokio::sync::mpsc;

/// The way from one action to the client.
#[derive(Debug, Clone)]
pub struct Output(
    #[allow(dead_code, reason = "no action has output yet")] Option<mpsc::Sender<OutputParams>>,
);

impl Output {
    /// Nobody listens.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(None)
    }
}
