//! Everything that a session's stream says, in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Origin, StopReason, Usage};
use crate::approval::{Approval, Resolved};
use crate::data::Encoding;
use crate::gate::Failed;
use crate::method::OutputStream;
use crate::mode::Mode;
use crate::runtime::RuntimeChoice;

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($data:ty) = $name:literal,)*) => {
        /// Something that happened in a session.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "event", content = "data")]
        pub enum SessionEvent {
            $($(#[$doc])* #[serde(rename = $name)] $variant($data),)*
        }

        impl SessionEvent {
            /// Every kind there is.
            pub const KINDS: &'static [&'static str] = &[$($name,)*];

            /// Its kind, as it is written.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// What is to be known about it, as JSON.
            ///
            /// # Errors
            /// Where it cannot be written as JSON; none of these can fail so.
            pub fn data(&self) -> serde_json::Result<Value> {
                match self { $(Self::$variant(data) => serde_json::to_value(data),)* }
            }

            /// The event of this kind; none where it is not known here, or does not fit.
            #[must_use]
            pub fn read(kind: &str, data: Value) -> Option<Self> {
                match kind {
                    $($name => serde_json::from_value(data).ok().map(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// It begins. Always the first.
    Started(Started) = "session.started",
    /// Role, model, mode or title is another from here on.
    Changed(Changed) = "session.changed",
    /// The runtime that was chosen is not there: a person has to connect it.
    RuntimeAwaited(RuntimeAwaited) = "runtime.awaited",
    /// Actions run here from now on.
    RuntimeChosen(RuntimeChosen) = "runtime.chosen",
    /// Somebody said something to the agent.
    Received(Received) = "message.received",
    /// The model is asked.
    TurnStarted(TurnStarted) = "turn.started",
    /// More text.
    Text(TextDelta) = "text.delta",
    /// More of what can be seen of its thinking.
    Reasoning(TextDelta) = "reasoning.delta",
    /// The model calls a tool.
    ToolCalled(ToolCalled) = "tool.called",
    /// What the action of a call prints, as it comes.
    ToolProgress(ToolProgress) = "tool.progress",
    /// A person is asked about a call.
    PermissionRequested(PermissionRequested) = "permission.requested",
    /// The question is closed.
    PermissionResolved(PermissionResolved) = "permission.resolved",
    /// What came of a call. Exactly once for each.
    ToolOutput(ToolOutput) = "tool.output",
    /// What a turn took.
    Usage(UsageTold) = "usage",
    /// A turn of the model is complete.
    MessageCompleted(MessageCompleted) = "message.completed",
    /// The turn came to nothing; what was said of it is void, and it is asked for again or not at
    /// all.
    TurnDropped(TurnDropped) = "turn.dropped",
    /// Older turns are no longer told to the model.
    Compacted(Compacted) = "context.compacted",
    /// The agent has stopped. A message goes on from here.
    Completed(Completed) = "session.completed",
    /// Something went wrong. A message goes on from here.
    Failed(Failed) = "session.failed",
}

/// Data of `session.started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// Its id.
    pub session_id: String,
    /// Who the agent is.
    pub role: String,
    /// Its model.
    pub model: String,
    /// How its actions may run, at the freest.
    pub mode: Mode,
    /// The workspace's real path.
    pub workspace: String,
    /// The session whose agent called this one, for a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The session that this one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

/// Data of `session.changed`: what is another from here on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Who the agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its actions may run, at the freest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the agent itself handed over to another role, which may do no more than it could.
    #[serde(default)]
    pub handoff: bool,
}

/// Data of `runtime.awaited`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeAwaited {
    /// What was asked for.
    pub runtime: RuntimeChoice,
    /// Why it is not there, and what to do.
    pub reason: String,
}

/// Data of `runtime.chosen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeChosen {
    /// Its id.
    pub runtime_id: String,
    /// Its kind.
    pub kind: String,
    /// Its workspace.
    pub workspace: String,
}

/// Data of `message.received`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Its id.
    pub message_id: String,
    /// Who said it.
    pub origin: Origin,
    /// The words.
    pub text: String,
    /// How many pictures came with them.
    #[serde(default)]
    pub images: usize,
}

/// Data of `turn.started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// Counted from 1.
    pub turn: u64,
    /// Who is asked.
    pub provider: String,
    /// The model, as its provider knows it.
    pub model: String,
}

/// Data of `text.delta` and `reasoning.delta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextDelta {
    /// The words.
    pub text: String,
}

/// Data of `tool.called`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalled {
    /// Ties what comes of it to the call.
    pub call_id: String,
    /// The tool's name as the model knows it, with `_` for `.`.
    pub name: String,
    /// The action, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The action's id at the gate, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The session of the sub-agent, where one is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// What it was called with.
    pub arguments: Value,
}

/// Data of `tool.progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolProgress {
    /// The call.
    pub call_id: String,
    /// Where it came from; `dropped` where no more is told here: `GET /actions/{id}/events` has it.
    pub stream: OutputStream,
    /// The output.
    pub data: String,
    /// `base64` where the bytes are not UTF-8; left out for text.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub encoding: Encoding,
}

/// Data of `permission.requested`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRequested {
    /// The call that waits.
    pub call_id: String,
    /// The question's id: `POST /approvals/{id}` answers it.
    pub approval_id: String,
    /// The question, without its preview, which `GET /approvals/{id}` has.
    pub approval: Box<Approval>,
    /// The session of the sub-agent that asks, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
}

/// Data of `permission.resolved`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionResolved {
    /// The call that waited.
    pub call_id: String,
    /// How it was closed.
    #[serde(flatten)]
    pub resolved: Resolved,
    /// The session of the sub-agent that asked, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
}

/// Data of `tool.output`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// The call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Whether it was done.
    pub ok: bool,
    /// What the model is told: the action's result as JSON, or a sentence.
    pub output: String,
    /// Where it was not done: the stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<crate::failure::ErrorKind>,
    /// Where the output was cut for the model: the name that the rest can be read by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    /// From the call to its end.
    pub duration_ms: u64,
}

/// Data of `usage`: after a turn, also after one that was dropped once it had come to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTold {
    /// What this turn took.
    pub turn: Usage,
    /// What all turns took.
    pub total: Usage,
    /// What all of them cost in dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long the session has worked so far, in milliseconds; waiting for a person does not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub worked_ms: u64,
}

/// Data of `message.completed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCompleted {
    /// Its id.
    pub message_id: String,
    /// Who said it.
    pub origin: Origin,
    /// All of its text.
    pub text: String,
    /// What it calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// Data of `turn.dropped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnDropped {
    /// Why.
    pub reason: String,
}

/// Data of `context.compacted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// How many messages are no longer told to the model.
    pub messages: u64,
    /// What it is told in their place; left out where they were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Data of `session.completed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completed {
    /// Why it stopped.
    pub stop: StopReason,
    /// What the agent said last.
    pub output: String,
    /// What all turns took.
    pub usage: Usage,
    /// What they cost in dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How many messages came meanwhile and are not answered yet. After `length`, `refusal` and
    /// `content_filter` they begin the next run at once; after `cancelled` and where a limit is
    /// reached they wait, and are told to the model with the next message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}
