//! What a conversation is made of, the same for all providers.

use protocol::is_plain;
pub use protocol::session::{InputImage as Image, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verbatim::{self, Verbatim};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// On which side of the conversation it stands.
    pub role: Role,
    /// Who it comes from.
    pub origin: Origin,
    /// What it says.
    pub content: Vec<Part>,
    /// On an assistant's turn: the turn as its provider wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

impl Message {
    /// A person's words.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            origin: Origin::User,
            content: vec![Part::Text { text: text.into() }],
            raw: None,
        }
    }

    /// What came of tool calls. All the results of one turn belong into one message, in the order
    /// of the calls.
    #[must_use]
    pub fn tool_results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self {
            role: Role::Tool,
            origin: Origin::Tool,
            content: results.into_iter().map(Part::ToolResult).collect(),
            raw: None,
        }
    }

    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
                Part::Reasoning { .. } => None,
            })
            .collect()
    }

    /// The tools it calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Image(_) | Part::ToolResult(_) => None,
            Part::Reasoning { .. } => None,
        })
    }

    /// The provider's own turn, if this provider wrote it.
    #[must_use]
    pub fn raw_of(&self, provider: &str, wire: Wire) -> Option<&[Verbatim]> {
        let raw = self.raw.as_ref()?;
        (raw.provider == provider && raw.wire == wire).then_some(raw.turn.as_slice())
    }
}

/// A side of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever the model answers to.
    User,
    /// The model.
    Assistant,
    /// What the model called.
    Tool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// What came of a call.
    ToolResult(ToolResult),
    /// What the model let be seen of its thinking.
    Reasoning {
        /// The words.
        text: String,
    },
}

/// The model calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to the call; unique in the conversation.
    pub call_id: String,
    /// The tool's name as the model was told it, with `_` for `.`.
    pub name: String,
    /// A JSON object; empty where [`malformed`](Self::malformed) has what came instead.
    pub arguments: Value,
    /// What the model wrote, where that is no JSON object. The call cannot be run; the model can
    /// be told and try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}

impl ToolCall {
    /// A call whose arguments came as text. No text at all means no arguments.
    #[must_use]
    pub fn from_text(call_id: String, name: String, text: &str) -> Self {
        let empty = || Value::Object(serde_json::Map::new());
        let (arguments, malformed) = match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) if is_plain(&value) => (value, None),
            _ if text.trim().is_empty() => (empty(), None),
            _ => (empty(), Some(text.to_owned())),
        };
        Self {
            call_id,
            name,
            arguments,
            malformed,
        }
    }

    /// The arguments as they go back where they came as `text`: as they were, if that is an object.
    /// Servers that read what was said before refuse anything else, then and in every later turn.
    pub(super) fn readable<'a>(&self, text: &'a str) -> &'a str {
        match self.malformed.is_some() || text.trim().is_empty() {
            true => "{}",
            false => text,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool that was called; some providers want to hear it again.
    pub name: String,
    /// What it said.
    pub content: Vec<Content>,
    /// Whether it went wrong.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// A result in words.
    #[must_use]
    pub fn text(call: &ToolCall, text: impl Into<String>) -> Self {
        Self {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            content: vec![Content::Text { text: text.into() }],
            is_error: false,
        }
    }

    /// A result that says what went wrong.
    #[must_use]
    pub fn error(call: &ToolCall, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(call, text)
        }
    }

    /// All of its text.
    #[must_use]
    pub fn words(&self) -> String {
        self.content
            .iter()
            .filter_map(|content| match content {
                Content::Text { text } => Some(text.as_str()),
                Content::Image(_) => None,
            })
            .collect()
    }
}

/// What a result can hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image(Image),
}

/// An assistant's turn as its provider wrote it, with all that Ward has no words for: signatures,
/// encrypted reasoning, blocks of a kind not known here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// Who wrote it. Nobody else could read it.
    pub provider: String,
    /// In which language.
    pub wire: Wire,
    /// What goes back verbatim: the blocks, items or parts of the turn, or the one message that it is.
    #[serde(deserialize_with = "verbatim::turn")]
    pub turn: Vec<Verbatim>,
}

/// The language a provider is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Ward's own small model: no wire at all.
    Offline,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// Chat Completions, and whatever is compatible with it.
    Chat,
    /// Google Gemini.
    Gemini,
}
