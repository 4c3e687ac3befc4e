//! A session: one conversation with one agent, as it is asked for and as it is told.
//!
//! [`SessionEvent`] is everything that a session's stream says, in order. Whoever reads it from the
//! first event knows the whole conversation.

mod event;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::runtime::RuntimeChoice;

pub use self::event::*;

/// The longest that a request waits for a session, in seconds.
pub const MAX_SESSION_WAIT: u64 = 3600;
/// How long it waits where nothing is said.
pub const DEFAULT_SESSION_WAIT: u64 = 600;

/// Body of `POST /sessions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostSession {
    /// What the agent is asked.
    pub input: Input,
    /// Who it is; `system_agent` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its model; the role's, or the usual one, where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its actions may run, at the freest; `sandbox` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The workspace, by its absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where its actions run; the local runtime where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeChoice>,
    /// Whether the answer is told as events while it comes. `Accept: text/event-stream` says the
    /// same.
    #[serde(default)]
    pub stream: bool,
    /// How much it may use; never more than its role may.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// The client's id of it. Sent again, it is begun once; one is made where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_-]{0,49}$"))]
    pub id: Option<String>,
    /// What happens where a person has to be asked.
    #[serde(default)]
    pub ask: crate::gate::Ask,
    /// Without `stream`: how many seconds to wait for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 3600))]
    pub wait: Option<u64>,
}

/// Body of `POST /sessions/{id}/messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostMessage {
    /// What the agent is told.
    pub input: Input,
    /// Another role from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Another model from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another mode from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How much the session may use from here on, counted from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Whether the answer is told as events while it comes.
    #[serde(default)]
    pub stream: bool,
    /// The client's id of it. Sent again, it is said once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_-]{0,49}$"))]
    pub id: Option<String>,
    /// Without `stream`: how many seconds to wait for the end; 0 is not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 3600))]
    pub wait: Option<u64>,
}

/// Body of `PATCH /sessions/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSession {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub title: Option<String>,
    /// Another role from the next turn on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Another model from the next turn on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another mode from the next turn on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// Body of `POST /sessions/{id}/fork`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostFork {
    /// The number of the event up to which the new session knows the conversation; all of it where
    /// nothing is said. A turn that is not complete there is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// What an agent is told: words, or words with pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected text, or an object with `text` and `images`"
)]
pub enum Input {
    /// Words.
    Text(String),
    /// Words and pictures.
    Parts(InputParts),
}

/// Words and pictures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputParts {
    /// The words.
    #[serde(default)]
    pub text: String,
    /// The pictures.
    #[serde(default)]
    pub images: Vec<InputImage>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputImage {
    /// Such as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// How much a session and the sub-agents below it may use together. What they have used counts from
/// its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tokens, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost: Option<f64>,
    /// Seconds that it works; waiting for a person does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What turns took, in tokens. The parts do not overlap: the whole input is `input` + `cache_read`
/// + `cache_write`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Read, and neither from nor into a cache.
    pub input: u64,
    /// Written, with `reasoning`.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Read, and put into the cache.
    pub cache_write: u64,
    /// Of the output: thinking.
    pub reasoning: u64,
}

impl Usage {
    /// All that was read and written.
    #[must_use]
    pub fn total(&self) -> u64 {
        let all = [self.input, self.output, self.cache_read, self.cache_write];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
    }
}

/// Who a message comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Origin {
    /// A person.
    User,
    /// The agent in this role.
    Role(String),
    /// An agent that another one called.
    SubAgent(String),
    /// A tool.
    Tool,
    /// Ward itself.
    System,
    /// A client that speaks for itself, such as an agent's token.
    Client(String),
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The agent works.
    Running,
    /// The agent waits for a person's answer, and for nothing else.
    Waiting,
    /// The agent has said what it wanted to; a message goes on.
    Idle,
    /// Something went wrong; a message goes on.
    Failed,
}

/// A session, as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Its id.
    pub session_id: String,
    /// What it is called: what was asked first, until somebody says otherwise.
    pub title: String,
    /// How far it is.
    pub state: SessionState,
    /// Who the agent is.
    pub role: String,
    /// Its model, as it was chosen.
    pub model: String,
    /// How its actions may run, at the freest.
    pub mode: Mode,
    /// The workspace's real path.
    pub workspace: String,
    /// Where its actions run, where that is not the local runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeChoice>,
    /// Who began it.
    pub actor: String,
    /// The session whose agent called this one, for a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Turns of the model so far.
    pub turns: u64,
    /// What they took.
    pub usage: Usage,
    /// What they cost in dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// When it began, in milliseconds since 1970.
    pub created_at: u64,
    /// When something happened last.
    pub updated_at: u64,
}

/// Answer of `GET /sessions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// Yours, the latest first; sub-agents are with the session that called them.
    pub sessions: Vec<SessionInfo>,
}

/// Answer of `POST /sessions` and `POST /sessions/{id}/messages` without `stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionAnswer {
    /// The session.
    #[serde(flatten)]
    pub session: SessionInfo,
    /// What the agent said last, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// The questions that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<String>,
    /// How many messages wait for the next one, where a limit or a cancel came before them.
    #[serde(default, skip_serializing_if = "event::is_zero")]
    pub waiting: u64,
}

/// Answer of `GET /models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// The model where neither role nor request names one.
    pub default: String,
    /// Who can be asked, and why not.
    pub providers: Vec<ProviderInfo>,
}

/// A provider, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderInfo {
    /// What stands before the slash in `provider/model`.
    pub provider: String,
    /// Its language: `anthropic`, `responses`, `chat`, `gemini`; `offline` has none.
    pub wire: String,
    /// Its address, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Its models: by name where they are known, otherwise how their names begin.
    pub models: Vec<String>,
    /// Why it cannot be used, and what to do; left out if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// Why an agent stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted to.
    Done,
    /// Its answer became too long.
    Length,
    /// The model would not.
    Refusal,
    /// The provider kept the answer back.
    ContentFilter,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit of turns was reached.
    TurnLimit,
    /// A limit of tokens was reached.
    TokenLimit,
    /// A limit of cost was reached.
    CostLimit,
    /// A limit of time was reached.
    TimeLimit,
}
