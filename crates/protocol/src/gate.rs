//! What a client says to the gate, and what it is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{AnswerParams, RuleInfo};
use crate::facts::Facts;
use crate::method::ActionInfo;
use crate::mode::Mode;
use crate::runtime::RuntimeChoice;
use crate::sandbox::SandboxStatus;

/// An action that a client asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// Which action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// The client's id of it. Sent again, it is done once; one is made where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    pub session: Option<String>,
    /// Where it runs; the local runtime where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeChoice>,
    /// What happens where a person has to be asked.
    #[serde(default)]
    pub ask: Ask,
}

/// What happens where a person has to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// It waits for the answer.
    #[default]
    Wait,
    /// Nobody can be asked: it is refused.
    Deny,
}

/// Result of `initialize` on a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateInfo {
    /// Always `ward`.
    pub name: String,
    /// Ward's version.
    pub version: String,
    /// The workspace where none is named, by its real path.
    pub workspace: String,
    /// Who this connection is, as it was authenticated.
    pub actor: String,
    /// What approvals name this client by; left out for an agent, which is asked nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Every action that can be asked for.
    pub actions: Vec<ActionInfo>,
    /// What the sandbox can enforce here.
    pub sandbox: SandboxStatus,
}

/// What would become of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Foreseen {
    /// What it would touch.
    pub facts: Facts,
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// What makes it so.
    pub rule: RuleInfo,
    /// How it would run.
    pub mode: Mode,
}

/// Parameters of [`PERMISSION_RESPOND`](crate::method::PERMISSION_RESPOND).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RespondParams {
    /// Which approval.
    pub id: String,
    /// The answer.
    #[serde(flatten)]
    pub answer: AnswerParams,
}

/// A failure over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// The sentence.
    pub error: String,
    /// The HTTP status.
    pub code: u16,
    /// The stable word.
    pub kind: crate::failure::ErrorKind,
    /// More for programs.
    #[serde(flatten)]
    pub details: serde_json::Map<String, Value>,
}

impl From<crate::failure::Failure> for Failed {
    fn from(failure: crate::failure::Failure) -> Self {
        let mut details = failure.details;
        for own in ["error", "code", "kind"] {
            details.remove(own);
        }
        Self {
            error: failure.message,
            code: failure.kind.status(),
            kind: failure.kind,
            details,
        }
    }
}
