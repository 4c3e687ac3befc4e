//! What is asked and answered over HTTP.

use std::borrow::Cow;

use notebook::{Capabilities, Comm, ExecutionId, Notebook, NotebookEvent, Presence, SessionId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Body of `POST /notebooks`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PostNotebook {
    /// What people call it.
    #[schemars(length(max = 200))]
    pub title: Option<String>,
    /// The workspace, by its absolute path: whose rules and roles count.
    pub workspace: Option<String>,
    /// Who else may use it, by name.
    pub people: Vec<String>,
    /// A whole `.ipynb` file, format 4, that it begins with: the object that it is, or its text as a
    /// string. As text it may have `NaN` and `Infinity`, as Python writes them.
    pub ipynb: Option<NotebookFile>,
}

/// A whole `.ipynb` file, as it came: what is read in between would lose digits of numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotebookFile(Box<RawValue>);

impl NotebookFile {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let came = self.0.get();
        match came.starts_with('"').then(|| serde_json::from_str(came)) {
            Some(Ok(text)) => Cow::Owned(text),
            // A string that is none is no file either, and whoever reads it says why.
            Some(Err(_)) | None => Cow::Borrowed(came),
        }
    }
}

impl PartialEq for NotebookFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl JsonSchema for NotebookFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("NotebookFile")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "object", "additionalProperties": true}, {"type": "string"}],
        })
    }
}

/// A notebook, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookInfo {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// Who made it.
    pub owner: String,
    /// Who else may use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
    /// The workspace whose rules and roles count.
    pub workspace: String,
    /// When it was made, in milliseconds since 1970.
    pub made_at: u64,
    /// What was dropped of its events; left out where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
}

/// What was dropped of a notebook's events: what they amounted to is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// The last event that was dropped.
    pub through: u64,
    /// How many were: of a notebook in all, and in the answer to compacting it by that alone.
    pub events: u64,
}

/// Answer of `GET /notebooks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookList {
    /// Yours, the latest first.
    pub notebooks: Vec<NotebookInfo>,
}

/// Answer of `GET /notebooks/{id}`: what its events amount to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotebookState {
    /// About it.
    pub notebook: NotebookInfo,
    /// Up to which event this is; those after it are told by `GET /notebooks/{id}/events?from=`.
    pub seq: u64,
    /// The notebook.
    pub state: Notebook,
}

/// Body of `POST /notebooks/{id}/events`: entries with the writer's ids, or events without.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PostEvents {
    /// The number of the last event that is known. Where others came since, nothing is appended.
    pub expected: Option<u64>,
    /// Events with ids: sent again, they are appended once.
    pub entries: Vec<PostEntry>,
    /// Events that are given ids here.
    pub events: Vec<NotebookEvent>,
}

/// An event with its id, as a replica has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostEntry {
    /// Which one.
    pub id: PostId,
    /// What happened.
    pub event: NotebookEvent,
}

/// Which event this is: its writer, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostId {
    /// The replica that it was written to; no two have one name.
    pub writer: String,
    /// Counted from 1 there.
    pub number: u64,
}

/// Answer of `POST /notebooks/{id}/events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Appended {
    /// The number of the last event now.
    pub head: u64,
    /// How many were new.
    pub appended: usize,
}

/// Body of `POST /notebooks/{id}/runtimes`: a runtime announces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostNotebookRuntime {
    /// Which runtime, in its own words, such as `browser-echo`.
    #[schemars(length(min = 1, max = 100))]
    pub runtime_id: String,
    /// What it runs, such as `python`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_-]{0,39}$"))]
    pub runtime_type: String,
    /// The person whose it is: you.
    pub client_id: String,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The session that it goes on with, where it was away and has its token still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Answer of `POST /notebooks/{id}/runtimes` and of a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Announced {
    /// The session.
    pub session_id: SessionId,
    /// What shows that an event is this session's, in the header `X-Ward-Runtime`; only when it is
    /// announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// For how many seconds it is taken to be there; a renewal or an event of its own renews it.
    pub lease_s: u64,
    /// The number of the last event now.
    pub head: u64,
}

/// Body of `POST /notebooks/{id}/input`: what a person answers to a run that asks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostInput {
    /// Which run.
    pub execution_id: ExecutionId,
    /// The answer. It is handed to the runtime and kept nowhere.
    pub value: String,
}

impl std::fmt::Debug for PostInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostInput")
            .field("execution_id", &self.execution_id)
            .finish_non_exhaustive()
    }
}

/// Body of `POST /notebooks/{id}/runtimes/{session}/input`: a runtime fetches an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchInput {
    /// Which run asked.
    pub execution_id: ExecutionId,
}

/// An answer, for the runtime alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// What was answered.
    pub value: String,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
}

/// Body of `POST /notebooks/{id}/agents`: Ward is to start a runtime for the notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostNotebookAgent {
    /// What runs the cells: `echo`, `python`, or the name of a Jupyter kernel on Ward's machine.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$"))]
    pub kernel: String,
}

/// A runtime that Ward started, as a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Its id, to end it by. It is also its `runtime_id`.
    pub id: String,
    /// What runs the cells.
    pub kernel: String,
    /// Whose it is.
    pub person: String,
}

/// A kernel that Ward can start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// Its language.
    pub language: String,
}

/// Answer of `GET /notebooks/{id}/agents`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// The runtimes that Ward started for the notebook, and that go on.
    pub agents: Vec<AgentInfo>,
    /// What Ward could start.
    pub kernels: Vec<KernelInfo>,
}

/// Body of `POST /notebooks/{id}/presence`.
pub type PostPresence = Presence;

/// Somebody is in the notebook: told as an event `presence` without a number, and never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Present {
    /// Who authenticated.
    pub actor: String,
    /// Where they are.
    #[serde(flatten)]
    pub presence: Presence,
}

/// Body of `POST /notebooks/{id}/runtimes/{session}/comms`: what a runtime says over its comms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PostComms {
    /// What, in order.
    pub messages: Vec<Comm>,
    /// How many it had to drop before them.
    pub dropped: u64,
}

/// A message of a runtime's: told as an event `comm` without a number, and never kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToldComm {
    /// Which session's.
    pub session_id: SessionId,
    /// What it says.
    #[serde(flatten)]
    pub message: Comm,
}

/// What a runtime said at once.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldComms {
    /// The messages.
    pub messages: Vec<ToldComm>,
    /// How many were dropped before them.
    pub dropped: u64,
}

/// Some messages of a runtime's are lost: told as an event `comm.dropped` without a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommsDropped {
    /// How many, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Answer of `GET /notebooks/{id}/runtimes/{session}/comms`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenComms {
    /// What waits, in order; none where nothing came for a while.
    pub messages: Vec<NumberedComm>,
}

/// A message for a runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberedComm {
    /// Its number: `after` says that the runtime has it.
    pub number: u64,
    /// What it says.
    pub message: Comm,
}
