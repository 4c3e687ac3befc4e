//! Hosts behind a gate: it is asked, and the connection waits for its answer.

use std::sync::Arc;

use protocol::method::WALL_ASK;
use protocol::wall::{WallAskParams, WallAskResult};
use rpc::Remote;
use sandbox::proxy::{Judge, Pending, Target, Verdict};

use super::guests::Guests;

/// Asks the gate whether the commands of one room may reach a host. No answer is no.
#[derive(Debug)]
pub(crate) struct AskGate {
    pub(crate) gate: Remote,
    pub(crate) session: Option<String>,
    pub(crate) guests: Arc<Guests>,
}

impl Judge for AskGate {
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict> {
        Box::pin(async move {
            let asked = WallAskParams {
                session: self.session.clone(),
                actions: self.guests.ids(),
                host: target.to_string(),
            };
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
}
