//! Long conversations: when the model can read no more, older turns are summed up or dropped. The
//! history keeps them.

use std::sync::Arc;

use futures_util::StreamExt as _;
use protocol::Failure;
use protocol::session::{Compacted, Limits, SessionEvent, StopReason, Usage};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::journal::Page;
use crate::provider::{Delta, Message, Origin, Part, Role, ToolChoice, TurnRequest, Wire};
use crate::run::InTime;
use crate::runner::Inner;
use crate::session::Session;
use crate::session::history::{Entry, Said};

/// How much of the old turns the model is shown to sum them up, in bytes.
const SHOWN: usize = 200 * 1024;

const ASKED: &str = "Sum up the conversation below for yourself, so that you can go on without it: \
what was asked, what was found and decided, what was done to which files, what is still to do. \
Write only the summary.";

/// Whether a conversation is shorter now.
pub(crate) enum Shorter {
    Yes,
    /// There is too little of it.
    No,
    /// The agent stops instead.
    Stop(StopReason),
}

impl<S: Store> Inner<S> {
    /// Makes the conversation shorter, in the time that there is.
    pub(crate) async fn compact(
        &self,
        session: &Session,
        agent: &Agent,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Shorter, Failure> {
        let (before, untold, all) = {
            let mut pen = session.pen.lock().await;
            let history = self.history(session, &mut pen).await?;
            let before = history.summary().map(str::to_owned);
            (before, history.untold(), history.all().to_vec())
        };
        let Some(keep) = keep_from(&all[untold..]).map(|keep| untold + keep) else {
            return Ok(Shorter::No);
        };
        let old = transcript(before.as_deref(), &all[untold..keep]);
        let (summary, usage) = match agent.resolved.provider.wire() {
            // It reads only what was asked last.
            Wire::Offline => (None, Usage::default()),
            Wire::Anthropic | Wire::Responses | Wire::Chat | Wire::Gemini => {
                let summed = self.sum_up(session, agent, old, cancel);
                match self.in_time(session, limits, summed).await {
                    InTime::Late => return Ok(Shorter::Stop(StopReason::TimeLimit)),
                    InTime::Done(Ok((text, usage))) => (Some(text), usage),
                    InTime::Done(Err(_)) if cancel.is_cancelled() => {
                        return Ok(Shorter::Stop(StopReason::Cancelled));
                    }
                    InTime::Done(Err(failure)) => {
                        tracing::warn!(%failure, "older turns are dropped without a summary");
                        // What there was of one is not worse than before.
                        (before, Usage::default())
                    }
                }
            }
        };
        let page = Page::event(SessionEvent::Compacted(Compacted {
            messages: (keep - untold) as u64,
            summary: summary.clone(),
        }))
        .entry(Entry::Compacted {
            messages: keep,
            summary,
        });
        let cost = agent.known.cost(&usage);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        self.write(session, history, page, |progress| {
            progress.read = 0;
            progress.spend(usage, cost);
        })
        .await?;
        drop(pen);
        self.spend_above(session, usage, cost).await?;
        Ok(Shorter::Yes)
    }

    async fn sum_up(
        &self,
        session: &Session,
        agent: &Agent,
        old: String,
        cancel: &CancellationToken,
    ) -> Result<(String, Usage), Failure> {
        let request = TurnRequest {
            model: agent.resolved.model.clone(),
            instructions: ASKED.to_owned(),
            messages: vec![Arc::new(Message::user(old))],
            tool_choice: ToolChoice::None,
            cache_key: Some(session.id.clone()),
            ..TurnRequest::default()
        };
        let mut deltas = agent.resolved.provider.turn(request, cancel.clone());
        while let Some(delta) = deltas.next().await {
            if let Delta::Done(turn) = delta.map_err(|error| self.failure(error))? {
                return Ok((turn.message.text(), turn.usage));
            }
        }
        Err(Failure::new(
            protocol::ErrorKind::StreamCut,
            "The provider's answer ended before its end.",
        ))
    }
}

/// Where the younger half begins: with what a person said, so that no call is parted from what came
/// of it.
fn keep_from(told: &[Said]) -> Option<usize> {
    let is_begin = |said: &Said| said.message.role == Role::User;
    let begins = (1..told.len()).filter(|place| is_begin(&told[*place]));
    let assistants = (1..told.len()).filter(|place| told[*place].message.role == Role::Assistant);
    let half = told.len() / 2;
    begins
        .min_by_key(|place| place.abs_diff(half))
        // One long piece of work: between two of its turns.
        .or_else(|| assistants.min_by_key(|place| place.abs_diff(half)))
}

/// What is to be summed up: what was before, and the turns since.
fn transcript(before: Option<&str>, old: &[Said]) -> String {
    let mut text = String::new();
    for said in old {
        let who = match &said.message.origin {
            Origin::User | Origin::Client(_) => "Person",
            Origin::Role(_) | Origin::SubAgent(_) => "You",
            Origin::Tool => "Result",
            Origin::System => "Ward",
        };
        for part in &said.message.content {
            let words = match part {
                Part::Text { text } => text.clone(),
                Part::ToolCall(call) => format!("(calls {} with {})", call.name, call.arguments),
                Part::ToolResult(result) => head(&result.words(), 2_000).to_owned(),
                Part::Image(_) => "(a picture)".to_owned(),
                Part::Reasoning { .. } => continue,
            };
            text.push_str(&format!("{who}: {words}\n\n"));
        }
    }
    // The latest matters most.
    let from = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    let latest = text.split_off(from);
    match before {
        // Of what was before nothing else is left, so it is never cut away.
        Some(before) => {
            format!("What was said before, in short:\n\n{before}\n\n{latest}")
        }
        None => latest,
    }
}

fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role) -> Said {
        let mut message = Message::user("x");
        message.role = role;
        Said {
            id: String::new(),
            message: Arc::new(message),
        }
    }

    #[test]
    fn the_younger_half_begins_with_a_person_or_else_between_two_turns() {
        use Role::{Assistant, Tool, User};
        for (roles, keep) in [
            (vec![User], None),
            (vec![User, Assistant], Some(1)),
            (vec![User, Assistant, User, Assistant], Some(2)),
            (
                vec![User, Assistant, Tool, Assistant, User, Assistant],
                Some(4),
            ),
            (
                vec![User, Assistant, Tool, Assistant, Tool, Assistant],
                Some(3),
            ),
        ] {
            let told: Vec<Said> = roles.iter().map(|role| said(*role)).collect();
            assert_eq!(keep_from(&told), keep, "{roles:?}");
        }
    }
}
