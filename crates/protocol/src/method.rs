//! The JSON-RPC methods and notifications, with their parameters and results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::ActionName;
use crate::data::Encoding;
use crate::facts::Facts;
use crate::sandbox::{SandboxReport, SandboxStatus};
use crate::wall::{PermitParams, WallParams};

/// Request: the first one on a connection.
pub const INITIALIZE: &str = "initialize";
/// Request: what an action would touch.
pub const ACTION_RESOLVE: &str = "action/resolve";
/// Request: do one action.
pub const ACTION_EXECUTE: &str = "action/execute";
/// Notification to the client: output of an action, in order.
pub const ACTION_OUTPUT: &str = "action/output";
/// Notification to the client: a terminal or a background command has ended.
pub const TERMINAL_EXITED: &str = "terminal/exited";
/// Request, and notification when it changes: how the runtime is.
pub const RUNTIME_STATUS: &str = "runtime/status";
/// Request from a runtime to its gate: may a running command reach a host? The connection is held
/// until the answer comes.
pub const WALL_ASK: &str = "wall/ask";
/// Notification from a gate to its runtime: leave to reach a host may have been taken back. Who has
/// let connections through asks about them again, and closes those that have none left.
pub const WALL_REVIEW: &str = "wall/review";
/// Request from a gate to its runtime: end what a session runs, and its rooms.
pub const SESSION_CLOSE: &str = "session/close";
/// Notification: stop working on a request of mine.
pub const CANCEL_REQUEST: &str = "$/cancelRequest";
/// Notification from a gate: a person is asked.
pub const PERMISSION_REQUESTED: &str = "permission/requested";
/// Request to a gate: a person's answer.
pub const PERMISSION_RESPOND: &str = "permission/respond";
/// Notification from a gate: a question is closed, and how.
pub const PERMISSION_RESOLVED: &str = "permission/resolved";
/// Request to a gate: take back what an action, or a session, did to files.
pub const UNDO: &str = "undo";
/// Notification to a gate: whether this client is in front of its person, and what it shows.
pub const CLIENT_ATTENTION: &str = "client/attention";
/// Request: end all work; only `exit` may follow.
pub const SHUTDOWN: &str = "shutdown";
/// Notification: end the process.
pub const EXIT: &str = "exit";

/// Parameters of [`INITIALIZE`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InitializeParams {
    /// Who is asking, for the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// The token, where the connection came over a port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// The name a client gives itself. Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Result of [`INITIALIZE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InitializeResult {
    /// Always `ward`.
    pub name: String,
    /// Ward's version.
    pub version: String,
    /// The workspace's real path.
    pub workspace: String,
    /// Whether a gate stands in front.
    pub authority: Authority,
    /// Every action that can be asked for.
    pub actions: Vec<ActionInfo>,
    /// What the sandbox can enforce here.
    pub sandbox: SandboxStatus,
}

/// Who decides what this runtime may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// Started by hand, without a gate: sandbox mode only.
    Standalone,
    /// Started by a gate over a private pipe: every action needs its permit.
    Gated,
}

/// One action as `initialize` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionInfo {
    /// Its name.
    pub name: ActionName,
    /// What it does, in a sentence.
    pub description: String,
    /// The JSON Schema of its parameters.
    pub params: Value,
}

/// Parameters of [`ACTION_RESOLVE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// Which action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// Result of [`ACTION_RESOLVE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveResult {
    /// What the action would touch.
    pub facts: Facts,
}

/// Parameters of [`ACTION_EXECUTE`]. Its result is the action's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteParams {
    /// The client's id of this action. Sent twice, it is done once.
    pub id: String,
    /// Which action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Whose room a command runs in; one room is shared where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The gate's permit: needed behind a gate, refused without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit: Option<PermitParams>,
    /// What it may touch beyond the wall of its room; refused without a permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<WallParams>,
    /// The facts that were decided on; where they changed, the action is refused as `changed`.
    /// Needed behind a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Facts>,
}

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A terminal, where the two are one.
    Pty,
    /// Nothing was passed on here: `data` says how many bytes were dropped.
    Dropped,
}

/// Parameters of [`ACTION_OUTPUT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputParams {
    /// The id of the action whose output this is.
    pub id: String,
    /// Counts from 0, without gaps, per action.
    pub seq: u64,
    /// Where it came from.
    pub stream: OutputStream,
    /// The output; a character is never split.
    pub data: String,
    /// `base64` where the bytes are not UTF-8; left out for text.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub encoding: Encoding,
}

/// Parameters of [`TERMINAL_EXITED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExitedParams {
    /// The id of the action that opened it.
    pub id: String,
    /// Which terminal.
    pub terminal_id: String,
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal's name, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What held it, and what was stopped.
    pub sandbox: SandboxReport,
}

/// Result of [`RUNTIME_STATUS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusResult {
    /// What it is doing.
    pub state: RuntimeState,
    /// Actions under way.
    pub running: u32,
    /// Rooms that are open.
    pub rooms: u32,
    /// Terminals and background commands.
    pub terminals: u32,
}

/// What a runtime is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeState {
    /// It takes actions.
    Ready,
    /// `shutdown` was asked for.
    ShuttingDown,
}

/// Parameters of [`SESSION_CLOSE`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCloseParams {
    /// Whose; what belongs to no session where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Result of [`SESSION_CLOSE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCloseResult {
    /// Whether there was anything to end.
    pub changed: bool,
}

/// Parameters of [`CANCEL_REQUEST`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelParams {
    /// The JSON-RPC id of the request to stop.
    pub id: Value,
}
