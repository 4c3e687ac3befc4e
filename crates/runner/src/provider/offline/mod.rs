//! `offline`: a small deterministic model of Ward's own, for where there is no key and no network.
//!
//! It reasons about nothing and says so. It understands plain requests ("list the files, then read
//! README.md"), answers with real tool calls, and tells what came of them. The same conversation
//! always gets the same answer.

mod answer;
mod phrase;
mod plan;
mod step;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{
    Delta, Deltas, Message, Origin, Part, Provider, ProviderError, Role, Stop, ToolCall,
    ToolChoice, ToolResult, Turn, TurnRequest, Usage, Wire,
};
use step::Step;

/// The model, and the provider, that needs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Offline {
    /// Its name everywhere.
    pub const NAME: &str = "offline";
}

impl Provider for Offline {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn wire(&self) -> Wire {
        Wire::Offline
    }

    fn turn(&self, request: TurnRequest, cancel: CancellationToken) -> Deltas {
        let deltas = deltas(&request, reply(&request));
        futures_util::stream::iter(deltas)
            .scan(false, move |over, delta| {
                let next = match (*over, cancel.is_cancelled()) {
                    (true, _) => None,
                    (false, true) => {
                        *over = true;
                        Some(Err(ProviderError::Cancelled))
                    }
                    (false, false) => Some(Ok(delta)),
                };
                std::future::ready(next)
            })
            .boxed()
    }
}

/// What it says and does in a turn.
struct Reply {
    text: String,
    calls: Vec<ToolCall>,
}

impl Reply {
    fn text(text: String) -> Self {
        Self {
            text,
            calls: Vec::new(),
        }
    }
}

fn reply(request: &TurnRequest) -> Reply {
    let asked = request
        .messages
        .iter()
        .rposition(|message| message.role == Role::User && message.origin != Origin::System);
    let Some(asked) = asked else {
        return Reply::text(answer::not_understood(""));
    };
    let since = &request.messages[asked + 1..];
    let mut reply = follow(request, &request.messages[asked].text(), since);
    let shown = &request.messages[asked].content;
    if since.is_empty() && shown.iter().any(|part| matches!(part, Part::Image(_))) {
        reply.text.insert_str(0, answer::BLIND);
    }
    reply
}

/// What comes next of a request, after what was done since.
fn follow(request: &TurnRequest, asked: &str, since: &[Arc<Message>]) -> Reply {
    let plan = match plan::plan(asked) {
        Ok(plan) => plan,
        Err(words) => return Reply::text(answer::not_understood(&words)),
    };
    let done = since
        .iter()
        .filter(|message| message.tool_calls().next().is_some())
        .count();
    let results = results(since.iter().map(AsRef::as_ref));
    let failed = results
        .iter()
        .any(|(_, result)| result.is_none_or(|result| result.is_error));
    match plan.get(done) {
        Some(steps) if !failed => act(request, steps),
        rest => Reply::text(summary(&results, rest)),
    }
}

/// Every call since the request, with what came of it.
fn results<'a>(
    since: impl Iterator<Item = &'a Message> + Clone,
) -> Vec<(&'a ToolCall, Option<&'a ToolResult>)> {
    let found: HashMap<&str, &ToolResult> = since
        .clone()
        .flat_map(|message| &message.content)
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some((result.call_id.as_str(), result)),
            Part::Text { .. } | Part::Image(_) | Part::ToolCall(_) => None,
            Part::Reasoning { .. } => None,
        })
        .collect();
    since
        .flat_map(Message::tool_calls)
        .map(|call| (call, found.get(call.call_id.as_str()).copied()))
        .collect()
}

fn act(request: &TurnRequest, steps: &[Step]) -> Reply {
    let offered = |step: &Step| {
        request.tool_choice != ToolChoice::None
            && request.tools.iter().any(|tool| tool.name == step.tool())
    };
    if let Some(step) = steps.iter().find(|step| !offered(step)) {
        return Reply::text(format!(
            "To {} I would need {}, which this role does not have. Nothing was done; choose a role \
             that has it.",
            step.intent(),
            step.tool().replacen('_', ".", 1)
        ));
    }
    let before = request
        .messages
        .iter()
        .flat_map(|message| message.tool_calls())
        .count();
    let calls = steps
        .iter()
        .zip(before + 1..)
        .map(|(step, number)| ToolCall {
            call_id: format!("{}-{number}", Offline::NAME),
            name: step.tool().to_owned(),
            arguments: step.arguments(),
            malformed: None,
        })
        .collect();
    let intents: Vec<String> = steps.iter().map(Step::intent).collect();
    Reply {
        text: format!("I will {}.", intents.join(", and ")),
        calls,
    }
}

fn summary(results: &[(&ToolCall, Option<&ToolResult>)], rest: Option<&Vec<Step>>) -> String {
    let mut told: Vec<String> = results
        .iter()
        .map(|(call, result)| match result {
            Some(result) => answer::result(call, result),
            None => format!("Nothing was heard of {}.", call.name.replacen('_', ".", 1)),
        })
        .collect();
    if let Some(steps) = rest {
        let intents: Vec<String> = steps.iter().map(Step::intent).collect();
        told.push(format!("So I did not {}.", intents.join(", nor ")));
    }
    told.join("\n\n")
}

fn deltas(request: &TurnRequest, reply: Reply) -> Vec<Delta> {
    let mut deltas: Vec<Delta> = reply
        .text
        .split_inclusive(char::is_whitespace)
        .map(|word| Delta::Text(word.to_owned()))
        .collect();
    let mut content = vec![Part::Text { text: reply.text }];
    for call in reply.calls {
        deltas.push(Delta::ToolCallStarted {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
        });
        deltas.push(Delta::ArgumentsDelta {
            call_id: call.call_id.clone(),
            text: call.arguments.to_string(),
        });
        deltas.push(Delta::ToolCall(call.clone()));
        content.push(Part::ToolCall(call));
    }
    let message = Message {
        role: Role::Assistant,
        origin: Origin::System,
        content,
        raw: None,
    };
    let stop = match message.tool_calls().next() {
        Some(_) => Stop::ToolUse,
        None => Stop::EndTurn,
    };
    let usage = Usage {
        input: tokens(&request.instructions)
            + request.messages.iter().map(|m| size(m)).sum::<u64>(),
        output: size(&message),
        ..Usage::default()
    };
    deltas.push(Delta::Done(Turn {
        message,
        usage,
        stop,
    }));
    deltas
}

fn size(message: &Message) -> u64 {
    message
        .content
        .iter()
        .map(|part| match part {
            Part::Text { text } | Part::Reasoning { text } => tokens(text),
            Part::ToolCall(call) => tokens(&call.name) + tokens(&call.arguments.to_string()),
            Part::ToolResult(result) => tokens(&result.words()),
            Part::Image(_) => 0,
        })
        .sum()
}

/// Four letters to a token, as people reckon.
fn tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}
