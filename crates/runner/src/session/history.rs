//! What a session's model has been told and has said: the fold of a stream of its own, which no
//! client reads.
//!
//! It keeps every turn as its provider wrote it, also those that the model is no longer told.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::provider::{Message, Role, ToolCall, ToolResult};

/// How much of what was asked for is told beside what it was summed up in, in bytes.
const ASKED: usize = 32 * 1024;

/// Something that was added to a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A message, in its place.
    Message(Said),
    /// What came of a call. When all of a turn are there, they are one message.
    Result(ToolResult),
    /// A message that came while the agent was busy.
    Queued(Said),
    /// The first of those that waited take their place.
    Taken {
        /// How many.
        count: usize,
    },
    /// The first messages are no longer told.
    Compacted {
        /// How many, of all that there were.
        messages: usize,
        /// What is told instead.
        summary: Option<String>,
    },
    /// A result that was cut for the model, whole.
    Whole {
        /// What it is called.
        name: String,
        /// All of it.
        text: String,
    },
}

/// A message and its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) id: String,
    pub(crate) message: Arc<Message>,
}

/// All that the model knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    messages: Vec<Said>,
    /// What came of the last turn's calls, as long as something is missing.
    results: Vec<ToolResult>,
    queue: VecDeque<Said>,
    /// How many messages are no longer told.
    untold: usize,
    /// What is told instead.
    summary: Option<String>,
    calls: u64,
    /// How many results were kept whole.
    pub(crate) wholes: u64,
}

impl History {
    /// Takes in what was written.
    pub(crate) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Message(said) => self.push(said),
            Entry::Result(result) => self.result(result),
            Entry::Queued(said) => self.queue.push_back(said),
            Entry::Taken { count } => {
                for _ in 0..count {
                    if let Some(said) = self.queue.pop_front() {
                        self.push(said);
                    }
                }
            }
            Entry::Compacted { messages, summary } => {
                self.untold = messages.min(self.messages.len());
                self.summary = summary;
            }
            Entry::Whole { .. } => self.wholes += 1,
        }
    }

    fn push(&mut self, said: Said) {
        self.calls += said.message.tool_calls().count() as u64;
        self.messages.push(said);
    }

    /// What the model is told.
    pub(crate) fn told(&self) -> Vec<Arc<Message>> {
        let told = self.messages.iter().skip(self.untold);
        let told = told.map(|said| Arc::clone(&said.message));
        let summary = self.summary.as_deref().map(summary_message);
        let before = summary.map(Arc::new).into_iter().chain(self.asked_before());
        before.chain(told).collect()
    }

    /// What a person asked for last, where it is among what is no longer told: what is told is the
    /// work on it.
    fn asked_before(&self) -> Option<Arc<Message>> {
        let is_asked = |said: &&Said| said.message.role == Role::User;
        let (untold, told) = self.messages.split_at(self.untold);
        if told.iter().any(|said| is_asked(&said)) {
            return None;
        }
        let asked = untold.iter().rev().find(is_asked)?;
        Some(shortened(&asked.message))
    }

    /// What is told instead of the messages that are no longer told.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// All messages, also those that are no longer told.
    pub(crate) fn all(&self) -> &[Said] {
        &self.messages
    }

    /// How many messages are no longer told.
    pub(crate) fn untold(&self) -> usize {
        self.untold
    }

    /// The message of this id.
    pub(crate) fn said(&self, id: &str) -> Option<&Said> {
        let mut all = self.messages.iter().chain(&self.queue);
        all.find(|said| said.id == id)
    }

    /// Messages that wait for the agent.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many calls there were in all: the number of the last one.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// The calls of the last turn that nothing came of yet, each with its number.
    pub(crate) fn open_calls(&self) -> Vec<(u64, ToolCall)> {
        let is_open = |(_, call): &(u64, ToolCall)| {
            let mut results = self.results.iter();
            results.all(|result| result.call_id != call.call_id)
        };
        self.waiting().into_iter().filter(is_open).collect()
    }

    /// All calls of the last turn, if it waits for what comes of them.
    fn waiting(&self) -> Vec<(u64, ToolCall)> {
        let Some(last) = self.messages.last() else {
            return Vec::new();
        };
        let calls: Vec<ToolCall> = last.message.tool_calls().cloned().collect();
        let first = self.calls - calls.len() as u64 + 1;
        (first..).zip(calls).collect()
    }

    fn result(&mut self, result: ToolResult) {
        self.results.push(result);
        let calls = self.waiting();
        if calls.is_empty() || self.results.len() < calls.len() {
            return;
        }
        let mut results = std::mem::take(&mut self.results);
        // In the order of the calls, whichever came first.
        let place = |result: &ToolResult| {
            let mut calls = calls.iter();
            calls.position(|(_, call)| call.call_id == result.call_id)
        };
        results.sort_by_key(place);
        self.push(Said {
            id: format!("results-{}", self.calls),
            message: Arc::new(Message::tool_results(results)),
        });
    }

    /// What the agent said last.
    pub(crate) fn last_words(&self) -> String {
        let said = self.messages.iter().rev();
        let mut said = said.filter(|said| said.message.role == Role::Assistant);
        said.next()
            .map(|said| said.message.text())
            .unwrap_or_default()
    }
}

/// A message that has to leave room for others: a long one by its head.
fn shortened(message: &Arc<Message>) -> Arc<Message> {
    let text = message.text();
    if text.len() <= ASKED {
        return Arc::clone(message);
    }
    let head = &text[..text.floor_char_boundary(ASKED)];
    let mut short = Message::user(format!("{head}\n\n(The rest is left out.)"));
    short.origin = message.origin.clone();
    Arc::new(short)
}

fn summary_message(text: &str) -> Message {
    let mut message = Message::user(format!(
        "This conversation is longer than can be read at once. What was said before, in short:\n\n{text}"
    ));
    message.origin = crate::provider::Origin::System;
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::{Origin, Part};

    fn said(id: &str, message: Message) -> Said {
        Said {
            id: id.to_owned(),
            message: Arc::new(message),
        }
    }

    fn calls(names: &[&str]) -> Message {
        let call = |name: &&str| {
            Part::ToolCall(ToolCall {
                call_id: format!("call-{name}"),
                name: (*name).to_owned(),
                arguments: json!({}),
                malformed: None,
            })
        };
        Message {
            role: Role::Assistant,
            origin: Origin::System,
            content: names.iter().map(call).collect(),
            raw: None,
        }
    }

    #[test]
    fn calls_are_numbered_over_the_whole_conversation_and_open_until_something_came_of_them() {
        let mut history = History::default();
        history.add(Entry::Message(said("1", Message::user("Go."))));
        history.add(Entry::Message(said("2", calls(&["a", "b"]))));
        let open = |history: &History| -> Vec<(u64, String)> {
            let open = history.open_calls().into_iter();
            open.map(|(number, call)| (number, call.name)).collect()
        };
        assert_eq!(open(&history), [(1, "a".to_owned()), (2, "b".to_owned())]);

        let done: Vec<ToolCall> = history.open_calls().into_iter().map(|(_, c)| c).collect();
        history.add(Entry::Result(ToolResult::text(&done[1], "second")));
        assert_eq!(open(&history), [(1, "a".to_owned())]);
        assert_eq!(history.told().len(), 2);
        history.add(Entry::Result(ToolResult::text(&done[0], "first")));
        let in_order = done.iter().zip(["first", "second"]);
        let in_order = in_order.map(|(call, text)| ToolResult::text(call, text));
        assert_eq!(*history.told()[2], Message::tool_results(in_order));
        assert_eq!(open(&history), []);
        history.add(Entry::Message(said("4", calls(&["c"]))));
        assert_eq!(open(&history), [(3, "c".to_owned())]);
    }

    #[test]
    fn what_waits_takes_its_place_when_it_is_taken_and_what_is_compacted_is_kept_untold() {
        let mut history = History::default();
        history.add(Entry::Message(said("1", Message::user("One."))));
        history.add(Entry::Queued(said("2", Message::user("Two."))));
        let told = |history: &History| -> Vec<String> {
            history
                .told()
                .iter()
                .map(|message| message.text())
                .collect()
        };
        assert_eq!((told(&history), history.queued()), (vec!["One.".into()], 1));
        history.add(Entry::Taken { count: 1 });
        history.add(Entry::Compacted {
            messages: 1,
            summary: None,
        });
        assert_eq!((told(&history), history.queued()), (vec!["Two.".into()], 0));
        assert_eq!(history.all().len(), 2);
    }

    #[test]
    fn what_was_asked_last_stands_before_the_work_on_it_and_a_long_one_by_its_head() {
        for (asked, told) in [
            ("Go.".to_owned(), "Go.".to_owned()),
            (
                "é".repeat(ASKED),
                format!("{}\n\n(The rest is left out.)", "é".repeat(ASKED / 2)),
            ),
        ] {
            let mut history = History::default();
            history.add(Entry::Message(said("1", Message::user("Before."))));
            history.add(Entry::Message(said("2", Message::user(asked))));
            history.add(Entry::Message(said("3", calls(&["a"]))));
            history.add(Entry::Compacted {
                messages: 2,
                summary: None,
            });
            let texts: Vec<String> = history.told().iter().map(|m| m.text()).collect();
            assert_eq!(texts, [told, String::new()]);
        }
    }
}
