//! Runtimes that register: editors, and how one is chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name that stands for the runtime server of this machine.
pub const LOCAL: &str = "local";

/// Where actions run: a runtime by its id, or what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the id of a runtime, or an object with `kind`, `capability` or `workspace`"
)]
pub enum RuntimeChoice {
    /// The runtime of this id; `local` is the runtime server of this machine.
    Id(
        #[serde(deserialize_with = "an_id")]
        #[schemars(length(min = 1))]
        String,
    ),
    /// The one runtime that is all of this.
    Need(RuntimeNeed),
}

fn an_id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    match id.is_empty() {
        true => Err(serde::de::Error::custom("an id is not empty")),
        false => Ok(id),
    }
}

impl RuntimeChoice {
    /// Whether it is the runtime server of this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Id(id) => id == LOCAL,
            Self::Need(need) => need.kind.as_deref() == Some(LOCAL),
        }
    }

    /// Whether it is a certain runtime, which has a workspace of its own.
    #[must_use]
    pub fn is_one(&self) -> bool {
        matches!(self, Self::Id(_)) && !self.is_local()
    }
}

impl std::fmt::Display for RuntimeChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Need(need) => {
                let parts = [
                    need.kind.as_ref().map(|kind| format!("of the kind {kind}")),
                    need.capability
                        .as_ref()
                        .map(|what| format!("that can {what}")),
                    need.workspace.as_ref().map(|place| format!("in {place}")),
                ];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                f.write_str(
                    match parts.is_empty() {
                        true => "of any kind".to_owned(),
                        false => parts.join(" "),
                    }
                    .as_str(),
                )
            }
        }
    }
}

/// What a runtime has to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeNeed {
    /// Its kind, such as `vscode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// An action that it can do, such as `editor.open`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The folder that it shows; the request's workspace where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Body of `POST /runtimes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostRuntime {
    /// The id of the Socket.IO connection that it is asked over: its own.
    pub socket_id: String,
    /// What it is, such as `vscode`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_-]{0,39}$"))]
    pub kind: String,
    /// The folder that it shows, by its absolute path.
    pub workspace_path: String,
    /// What people call that folder.
    #[serde(default)]
    pub workspace_name: String,
    /// The editor's version.
    #[serde(default)]
    pub version: String,
    /// The extension's version.
    #[serde(default)]
    pub extension_version: String,
    /// The actions that it can do.
    pub capabilities: Vec<String>,
    /// The id that it had before: it keeps it, unless something else is connected under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// Ids that were had for this folder before: the first that nothing is connected under is given
    /// again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub former_ids: Vec<String>,
    /// A word that each process makes anew for itself. With it, one whose connection was lost has its
    /// id again before Ward has noticed the loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// Answer of `POST /runtimes` and of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// The runtime's id.
    pub runtime_id: String,
    /// For how many seconds it is taken to be there; a heartbeat renews it.
    pub lease_s: u64,
    /// Ward's own socket. A runtime on Ward's machine asks for `/runtimes/{id}/here` over it; what
    /// it runs is then confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Whether Ward's machine has its folder, so that it can be named as a workspace.
    pub has_folder: bool,
}

/// A runtime, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeInfo {
    /// Its id; `local` for the runtime server of this machine.
    pub runtime_id: String,
    /// Its kind: `local`, `vscode` …
    pub kind: String,
    /// The workspace's path.
    pub workspace: String,
    /// What people call the workspace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace_name: String,
    /// What it is doing.
    pub state: RuntimeHealth,
    /// The actions that it can do; left out for the local one, which can do all but the editor's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The editor's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The extension's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extension_version: String,
    /// Whether an editor's commands are confined: it has shown that it is on Ward's machine. Left
    /// out for the local one, whose commands always are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// How often the local one was started anew after it had ended by itself, or a person began a
    /// notebook's anew.
    #[serde(default)]
    pub restarts: u64,
    /// The local one's process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

/// What a runtime is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeHealth {
    /// It starts.
    Starting,
    /// It takes actions.
    Ready,
    /// It takes them, and does them one after the other: a notebook's, while a cell runs.
    Busy,
    /// It ended by itself, and is started again in a moment.
    Restarting,
    /// It was ended.
    Stopped,
    /// Its connection is lost; it may come back.
    Away,
}

/// Answer of `GET /runtimes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtimes {
    /// Those that can be used, or could be a moment ago.
    pub runtimes: Vec<RuntimeInfo>,
}

/// Event to an editor: do one action. Acknowledged with how it ended.
pub const EVENT_EXECUTE: &str = "action:execute";
/// Event to an editor: stop an action.
pub const EVENT_CANCEL: &str = "action:cancel";
/// Event from an editor: some of what an action printed.
pub const EVENT_OUTPUT: &str = "action:output";

/// Data of [`EVENT_EXECUTE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteEvent {
    /// The action's id.
    pub id: String,
    /// Which action.
    pub action: String,
    /// Its parameters.
    pub params: serde_json::Value,
    /// Where what it touches was seen to be when it was decided on: nothing else is touched.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Whether `argv` of the parameters is a whole `ward exec`, to be started as it is and not
    /// through a shell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// For how many milliseconds the answer is waited for.
    pub deadline_ms: u64,
}

/// Data of [`EVENT_CANCEL`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelEvent {
    /// The action's id.
    pub id: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<RuntimeChoice, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_choice_is_an_id_or_a_need_and_says_so_of_anything_else() {
        assert_eq!(read(json!("r1")), Ok(RuntimeChoice::Id("r1".to_owned())));
        let need = RuntimeNeed {
            kind: Some("vscode".to_owned()),
            ..RuntimeNeed::default()
        };
        assert_eq!(
            read(json!({"kind": "vscode"})),
            Ok(RuntimeChoice::Need(need))
        );
        let told = |choice: Value| read(choice).map(|choice| format!("no runtime {choice}"));
        for (choice, sentence) in [
            (json!("r1"), "no runtime r1"),
            (json!({}), "no runtime of any kind"),
            (
                json!({"kind": "vscode", "workspace": "/w"}),
                "no runtime of the kind vscode in /w",
            ),
            (
                json!({"capability": "fs.read"}),
                "no runtime that can fs.read",
            ),
        ] {
            assert_eq!(told(choice), Ok(sentence.to_owned()));
        }
        let sentence =
            "expected the id of a runtime, or an object with `kind`, `capability` or `workspace`";
        for other in [json!(""), json!(7), json!({"name": "x"})] {
            assert_eq!(read(other), Err(sentence.to_owned()));
        }
    }
}
