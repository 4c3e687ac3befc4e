//! What is asked for in a turn, and what comes of it.

use std::sync::Arc;

pub use protocol::session::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Message, ToolCall};

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnRequest {
    /// The model's name as its provider knows it.
    pub model: String,
    /// What stands before the conversation. What changes from turn to turn does not belong here:
    /// providers remember prefixes that stay the same.
    pub instructions: String,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// What the model may call, always in the same order.
    pub tools: Arc<[Tool]>,
    /// Whether it must.
    pub tool_choice: ToolChoice,
    /// How long the answer may become; the provider's own measure where nothing is said.
    pub max_output_tokens: Option<u32>,
    /// Sent only where a role asks for it: newer models refuse it.
    pub temperature: Option<f64>,
    /// How hard to think; sent only where a role asks for it.
    pub effort: Option<Effort>,
    /// The same for all turns of a session, so that a provider finds the prefix it remembers.
    pub cache_key: Option<String>,
}

/// Something the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// An action's name with `_` for `.`, such as `fs_read`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Whether the model has to call something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// How hard a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of what can be seen of its thinking.
    Reasoning(String),
    /// A call begins; its arguments follow.
    ToolCallStarted {
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as text. Calls can take turns.
    ArgumentsDelta {
        /// The call.
        call_id: String,
        /// A piece of JSON.
        text: String,
    },
    /// A call is complete. Every one comes exactly once, before [`Delta::Done`].
    ToolCall(ToolCall),
    /// What the turn took so far, all of it, where a provider says that before the end. It counts where
    /// the end never comes.
    Used(Usage),
    /// The turn is complete. Always the last one.
    Done(Turn),
}

/// A whole turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the model said; its origin is [`Origin::System`](super::Origin::System) until whoever
    /// runs the agent puts the role there.
    pub message: Message,
    /// What it took.
    pub usage: Usage,
    /// Why it ended.
    pub stop: Stop,
}

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model had said what it wanted to.
    EndTurn,
    /// It waits for what comes of its calls.
    ToolUse,
    /// The answer became too long.
    MaxTokens,
    /// The conversation became too long.
    ContextFull,
    /// The model would not.
    Refusal,
    /// The provider kept the answer back.
    ContentFilter,
    /// The model has to be asked again, with its turn as it is, to go on.
    Paused,
    /// A call that not even its provider could read: ask again.
    MalformedCall,
    /// Something else, in the provider's word.
    Other(String),
}
