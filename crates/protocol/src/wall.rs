//! What the gate tells a runtime with an action: under which permit it runs and what it may touch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::mode::Mode;

/// The gate's permit as it crosses the private pipe. The pipe is what makes it true: a runtime
/// takes one only from the gate that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermitParams {
    /// The digest of exactly what was decided on.
    pub digest: Digest,
    /// How it runs.
    pub mode: Mode,
}

/// What this one action may touch beyond the wall of its room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WallParams {
    /// Whether a file action may touch the paths of its facts that are outside the workspace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// Paths that a command may touch although the wall would stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub widen: Vec<Widen>,
}

/// A path beyond the wall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Widen {
    /// The real path.
    pub path: String,
    /// How far it goes.
    pub access: WidenAccess,
}

/// How far a widening goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WidenAccess {
    /// To be read only.
    Read,
    /// To be written as well.
    Write,
}

/// Parameters of [`WALL_ASK`](crate::method::WALL_ASK).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WallAskParams {
    /// The session in whose room the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The actions that run in that room: it is one of these.
    pub actions: Vec<String>,
    /// `name:port`.
    pub host: String,
    /// Its connection is open already: whether there is still leave for it. Nobody is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// Result of [`WALL_ASK`](crate::method::WALL_ASK).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WallAskResult {
    /// Whether it may.
    pub allow: bool,
    /// Why not, as a clause without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
