//! What is said over HTTP: the bodies that are sent, and those that are answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::ActionName;
use crate::approval::{AnswerParams, AnswerScope, Approval, Choice, GrantInfo, RuleInfo};
use crate::digest::Digest;
use crate::failure::ErrorKind;
use crate::gate::{ActionRequest, Ask};
use crate::mode::Mode;
use crate::runtime::RuntimeChoice;
use crate::sandbox::SandboxStatus;

/// The cookie of a person's browser that has signed in.
pub const COOKIE: &str = "ward";
/// The protocol that `GET /gate` upgrades a connection to: JSON-RPC with the gate.
pub const UPGRADE: &str = "ward-gate";
/// The host that requests over Ward's socket may name.
pub const SOCKET_HOST: &str = "ward.sock";
/// Event of `GET /approvals/events`, and of an action's own: a person is asked.
pub const EVENT_REQUESTED: &str = "permission.requested";
/// Event of `GET /approvals/events`, and of an action's own: a question was closed.
pub const EVENT_RESOLVED: &str = "permission.resolved";
/// First event of `GET /approvals/events`: who this client is. It has no number.
pub const EVENT_HELLO: &str = "hello";
/// Event of `GET /approvals/events`: another client is asked first now. It has no number.
pub const EVENT_ROUTED: &str = "permission.routed";

/// The longest that `POST /actions` waits, in seconds.
pub const MAX_WAIT: u64 = 3600;
/// How long it waits where nothing is said.
pub const DEFAULT_WAIT: u64 = 60;

/// An action that the policy or a person refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeniedBody {
    /// What happened, why, and what to do.
    pub error: String,
    /// The status.
    pub code: u16,
    /// `denied`; or `forbidden`, `wrong_host`, `wrong_origin` where the request itself was refused.
    pub kind: ErrorKind,
    /// The action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What refused it; left out where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleInfo>,
    /// The person who did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Body of `POST /actions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostAction {
    /// Which action.
    #[schemars(with = "ActionName")]
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// The client's id of it. Sent again, it is done once; one is made where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"))]
    pub id: Option<String>,
    /// In which role; `system_agent` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How it may run, at the freest; `sandbox` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The workspace, by its absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The session it belongs to: its commands share a room, and grants can be for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"))]
    pub session: Option<String>,
    /// Where it runs; the local runtime where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeChoice>,
    /// How many seconds to wait for the outcome; 0 is not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 3600))]
    pub wait: Option<u64>,
    /// What happens where a person has to be asked.
    #[serde(default)]
    pub ask: Ask,
}

impl PostAction {
    /// As the gate takes it.
    #[must_use]
    pub fn into_request(self) -> ActionRequest {
        ActionRequest {
            action: self.action,
            params: self.params,
            id: self.id,
            role: self.role,
            mode: self.mode,
            workspace: self.workspace,
            session: self.session,
            runtime: self.runtime,
            ask: self.ask,
        }
    }
}

/// An action that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionEnded {
    /// Its id.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done {
        /// The action's own result.
        result: Value,
        /// From the request to the end.
        duration_ms: u64,
    },
    /// It was not, or not wholly.
    Failed {
        /// What happened, why, and what to do.
        error: String,
        /// The stable word.
        kind: ErrorKind,
        /// More for programs.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        details: Map<String, Value>,
        /// From the request to the end.
        duration_ms: u64,
    },
}

/// How far an action is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionState {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: ActionStep,
    /// What a person is asked, while one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A step of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionStep {
    /// Nothing is decided yet.
    Deciding,
    /// A person is asked.
    Asking,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// Answer of `GET /approvals`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// What is open, the oldest first.
    pub approvals: Vec<Approval>,
}

/// Body of `POST /approvals/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostAnswer {
    /// Yes or no.
    pub decision: Choice,
    /// How far it goes.
    #[serde(default)]
    pub scope: AnswerScope,
    /// The digest of the approval that the person saw.
    pub digest: Digest,
    /// What the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The grants to make, where they shall differ from those offered. They have to answer the
    /// whole question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<String>>,
    /// When the grants end, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl From<PostAnswer> for AnswerParams {
    fn from(answer: PostAnswer) -> Self {
        Self {
            decision: answer.decision,
            scope: answer.scope,
            digest: answer.digest,
            reason: answer.reason,
            patterns: answer.patterns,
            expires_at: answer.expires_at,
        }
    }
}

/// What a client says over the websocket of `GET /events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// Tell what `GET` of this path tells.
    Follow {
        /// The client's own number for it, which it uses once.
        id: u64,
        /// An operation's that tells events, with its query.
        path: String,
        /// The number of the last event that is known, as in `Last-Event-ID`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
    },
    /// Tell no more of it.
    Stop {
        /// Of which.
        id: u64,
    },
}

/// What a client is told over the websocket of `GET /events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// How it was answered. Where that is no success, the failure follows.
    Answered {
        /// To what.
        id: u64,
        /// The status.
        status: u16,
    },
    /// The next piece of the answer: server-sent events, whole ones.
    Piece {
        /// Of which.
        id: u64,
        /// As it would have been answered to a `GET`.
        data: String,
    },
    /// Nothing more comes of it.
    Ended {
        /// Of which.
        id: u64,
    },
}

/// Data of [`EVENT_HELLO`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// What approvals name this client by, and `POST /clients/{id}` too.
    pub client_id: String,
}

/// Data of [`EVENT_ROUTED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routed {
    /// Which approval.
    pub approval_id: String,
    /// The client that is asked first now; left out where none is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Body of `POST /clients/{id}`: where a client is with its person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostAttention {
    /// Whether it is in front.
    #[serde(default)]
    pub front: bool,
    /// The session that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Answer of `GET /grants`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grants {
    /// Those that hold.
    pub grants: Vec<GrantInfo>,
}

/// Answer of `GET /roles`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Roles {
    /// All of them, by name.
    pub roles: Vec<RoleInfo>,
}

/// A role, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The freest mode it may have.
    pub mode: Mode,
    /// What it may do, as patterns.
    pub skills: Vec<String>,
    /// The model it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where it is written.
    pub origin: RoleOrigin,
    /// Whether it may be used: not, where it is from a workspace that nobody has trusted.
    pub usable: bool,
}

/// Where a role is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleOrigin {
    /// Whose it is, as people read it: built in, your own, the workspace.
    pub source: String,
    /// Its file.
    pub file: String,
    /// The line in it.
    pub line: usize,
}

/// Answer of `GET /healthz`. Whoever has not signed in is told the status and the version alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Ward's version.
    pub version: String,
    /// Who asks, as it was authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Where Ward listens, such as `127.0.0.1:3000`; nowhere, where it only does one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The workspace where none is named, by its real path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What the sandbox can enforce here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxStatus>,
    /// The store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreHealth>,
    /// How many questions are open, of all persons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_questions: Option<u64>,
}

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreHealth {
    /// Its file.
    pub path: String,
    /// How many events it has.
    pub events: u64,
}

/// Answer of `POST /login`: a link that signs one browser in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoginLink {
    /// The link. It works once.
    pub url: String,
    /// When it no longer does, in milliseconds since 1970.
    pub expires_at: u64,
}
