//! Hosts behind a gate: it is asked, and the connection waits for its answer.

use std::sync::Arc;

use protocol::method::WALL_ASK;
use protocol::wall::{WallAskParams, WallAskResult};
use rpc::Remote;
use sandbox::proxy::{Judge, Pending, Target, Verdict};
use tokio::sync::watch;

use super::guests::Guests;

/// Asks the gate whether the commands of one room may reach a host. No answer is no.
#[derive(Debug)]
pub(crate) struct AskGate {
    pub(crate) gate: Remote,
    pub(crate) session: Option<String>,
    pub(crate) guests: Arc<Guests>,
    /// Counts how often the gate said that leave was taken back.
    pub(crate) reviews: watch::Receiver<u64>,
}

impl AskGate {
    fn about(&self, target: &Target, again: bool) -> WallAskParams {
        WallAskParams {
            session: self.session.clone(),
            actions: self.guests.ids(),
            host: target.to_string(),
            again,
        }
    }

    /// Whether there is leave for each of them still. No answer is no.
    async fn still_allows(&self, targets: &[Target]) -> bool {
        for target in targets {
            let asked = self.about(target, true);
            let answer = self.gate.call::<_, WallAskResult>(WALL_ASK, &asked).await;
            if !answer.is_ok_and(|answer| answer.allow) {
                return false;
            }
        }
        true
    }
}

impl Judge for AskGate {
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict> {
        Box::pin(async move {
            let asked = self.about(target, false);
            // Dropped with the connection that waits, which withdraws the question.
            match self.gate.call::<_, WallAskResult>(WALL_ASK, &asked).await {
                Ok(answer) if answer.allow => Verdict::Allowed,
                Ok(answer) => Verdict::Denied(
                    answer
                        .reason
                        .unwrap_or_else(|| "it was not allowed".to_owned()),
                ),
                Err(failure) => {
                    tracing::warn!(host = asked.host, %failure, "the gate did not answer");
                    Verdict::Denied("nobody could be asked".to_owned())
                }
            }
        })
    }

    fn reviews(&self) -> u64 {
        *self.reviews.borrow()
    }

    fn taken_back<'a>(&'a self, reviews: u64, targets: &'a [Target]) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut counted = self.reviews.clone();
            let mut known = reviews;
            loop {
                let count = counted.wait_for(|count| *count != known).await;
                let Ok(count) = count.map(|count| *count) else {
                    // The connection to the gate is gone, and the room goes with it.
                    return std::future::pending().await;
                };
                known = count;
                if !self.still_allows(targets).await {
                    return;
                }
            }
        })
    }
}
