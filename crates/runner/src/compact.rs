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
use crate::provider::{
    Delta, Message, Origin, Part, Role, Stop, ToolChoice, Turn, TurnRequest, Wire,
};
use crate::run::{InTime, used_up};
use crate::runner::Inner;
use crate::session::Session;
use crate::session::history::{Entry, Said};

/// How much of the old turns the model is shown to sum them up, in bytes.
const SHOWN: usize = 200 * 1024;

const ASKED: &str = "Sum up the conversation below for yourself, so that you can go on without it: \
what was asked, what was found and decided, what was done to which files, what is still to do. \
Write only the summary.";

/// What stands in the place of turns that nobody could sum up.
const LEFT_OUT: &str = "(The turns between this and what follows were left out, and nobody could sum \
them up. Look again at what you need, or ask.)";

/// How often the model is asked to sum up.
const TRIES: usize = 2;

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
        let mut usage = Usage::default();
        let summary = match agent.resolved.provider.wire() {
            // It reads only what was asked last.
            Wire::Offline => None,
            Wire::Anthropic | Wire::Responses | Wire::Chat | Wire::Gemini => {
                let summed = self.sum_up(session, agent, limits, &old, &mut usage, cancel);
                let summed = match self.in_time(session, limits, summed).await {
                    InTime::Late => Err(StopReason::TimeLimit),
                    InTime::Done(Err(_)) if cancel.is_cancelled() => Err(StopReason::Cancelled),
                    InTime::Done(Ok(text)) => Ok(text),
                    InTime::Done(Err(failure)) => {
                        tracing::warn!(%failure, "older turns are dropped without a summary");
                        Ok(None)
                    }
                };
                match summed {
                    Ok(Some(text)) => Some(text),
                    Ok(None) => Some(left_out(before)),
                    Err(stop) => {
                        self.spend(session, agent, usage).await?;
                        return Ok(Shorter::Stop(stop));
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
        {
            let mut pen = session.pen.lock().await;
            let history = self.history(session, &mut pen).await?;
            self.write(session, history, page, |progress| progress.read = 0)
                .await?;
        }
        self.spend(session, agent, usage).await?;
        Ok(Shorter::Yes)
    }

    /// Counts what was used beside the turns.
    async fn spend(&self, session: &Session, agent: &Agent, usage: Usage) -> Result<(), Failure> {
        if usage == Usage::default() {
            return Ok(());
        }
        let cost = agent.known.cost(&usage);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        self.write(session, history, Page::default(), |progress| {
            progress.spend(usage, cost);
        })
        .await?;
        drop(pen);
        self.spend_above(session, 0, usage, cost).await
    }

    /// A summary by the model, if it has one to give. What it says instead, nothing, a refusal or
    /// half of one, would take the place of all that is no longer told: then it is asked once more.
    async fn sum_up(
        &self,
        session: &Session,
        agent: &Agent,
        limits: &Limits,
        old: &str,
        usage: &mut Usage,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Failure> {
        for _ in 0..TRIES {
            let turn = self.asked_to_sum_up(session, agent, old, cancel).await?;
            *usage += turn.usage;
            let text = turn.message.text();
            if is_whole(&turn.stop) && !text.trim().is_empty() {
                return Ok(Some(text));
            }
            tracing::warn!(stop = ?turn.stop, "the model did not sum up older turns");
            let mut spent = session.record().progress.clone();
            spent.spend(*usage, agent.known.cost(usage));
            if used_up(limits, &spent).is_some() {
                break;
            }
        }
        Ok(None)
    }

    async fn asked_to_sum_up(
        &self,
        session: &Session,
        agent: &Agent,
        old: &str,
        cancel: &CancellationToken,
    ) -> Result<Turn, Failure> {
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
                return Ok(turn);
            }
        }
        Err(Failure::new(
            protocol::ErrorKind::StreamCut,
            "The provider's answer ended before its end.",
        ))
    }
}

/// Whether an answer that ended so is all of it.
fn is_whole(stop: &Stop) -> bool {
    match stop {
        Stop::EndTurn | Stop::Other(_) => true,
        Stop::ToolUse
        | Stop::MaxTokens
        | Stop::ContextFull
        | Stop::Refusal
        | Stop::ContentFilter
        | Stop::Paused
        | Stop::MalformedCall => false,
    }
}

/// What is told where nobody could sum up: what there was of a summary before, and that something is
/// missing.
fn left_out(before: Option<String>) -> String {
    match before {
        Some(before) if before.ends_with(LEFT_OUT) => before,
        Some(before) => format!("{before}\n\n{LEFT_OUT}"),
        None => LEFT_OUT.to_owned(),
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

    #[test]
    fn where_nobody_could_sum_up_what_was_summed_up_before_stays_and_the_gap_is_told_once() {
        let first = left_out(None);
        assert_eq!(first, LEFT_OUT);
        let second = left_out(Some("They paint.".to_owned()));
        assert_eq!(second, format!("They paint.\n\n{LEFT_OUT}"));
        assert_eq!(left_out(Some(second.clone())), second);
    }

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
