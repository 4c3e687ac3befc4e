//! A conversation as all wires want it: turns that alternate, and the results of a turn's calls
//! together, before anything else that was said.

use std::sync::Arc;

use super::{Image, Message, Part, Role, ToolResult};

/// One side's turn.
pub(super) enum Side<'a> {
    /// What the model is told: results first, in the order they came, then everything else.
    Told {
        results: Vec<&'a ToolResult>,
        rest: Vec<Told<'a>>,
    },
    /// What the model said.
    Said(&'a Message),
}

/// What people say.
pub(super) enum Told<'a> {
    Text(&'a str),
    Image(&'a Image),
}

/// The conversation, side by side.
pub(super) fn sides(messages: &[Arc<Message>]) -> Vec<Side<'_>> {
    let mut sides: Vec<Side<'_>> = Vec::new();
    for message in messages {
        if message.role == Role::Assistant {
            sides.push(Side::Said(message));
            continue;
        }
        if !matches!(sides.last(), Some(Side::Told { .. })) {
            sides.push(Side::Told {
                results: Vec::new(),
                rest: Vec::new(),
            });
        }
        let Some(Side::Told { results, rest }) = sides.last_mut() else {
            continue;
        };
        for part in &message.content {
            match part {
                Part::ToolResult(result) => results.push(result),
                // Empty text is refused by some, and says nothing to any.
                Part::Text { text } if text.is_empty() => {}
                Part::Text { text } => rest.push(Told::Text(text)),
                Part::Image(image) => rest.push(Told::Image(image)),
                Part::ToolCall(_) | Part::Reasoning { .. } => {}
            }
        }
    }
    sides
}

/// Ids for calls that came without one. No two in a conversation are the same.
#[derive(Debug)]
pub(super) struct CallIds {
    next: usize,
}

impl CallIds {
    const PREFIX: &str = "ward_call_";

    pub(super) fn new(messages: &[Arc<Message>]) -> Self {
        let calls = messages.iter().flat_map(|message| message.tool_calls());
        Self {
            next: calls.count() + 1,
        }
    }

    pub(super) fn make(&mut self) -> String {
        let id = format!("{}{}", Self::PREFIX, self.next);
        self.next += 1;
        id
    }

    /// Whether the provider has never heard of this id.
    pub(super) fn is_ours(id: &str) -> bool {
        id.starts_with(Self::PREFIX)
    }
}

/// An image as an address.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.base64)
}
