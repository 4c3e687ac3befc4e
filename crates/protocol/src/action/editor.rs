//! What an editor can be asked for. Paths are relative to its workspace, or absolute inside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ActionName;

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    #[serde(default = "first")]
    pub column: u32,
}

/// From one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// Parameters of `editor.open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenParams {
    /// The file.
    pub path: String,
    /// The line to show, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// What to select.
    #[serde(default)]
    pub selection: Option<Range>,
}

/// Parameters of `editor.selection`: there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectionParams {}

/// Parameters of `editor.diagnostics`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticsParams {
    /// One file; all of the workspace where left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// Parameters of `editor.diff`: shows a change, which the person accepts or rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffParams {
    /// The file.
    pub path: String,
    /// What it would hold.
    pub content: String,
    /// What the person is told.
    #[serde(default)]
    pub title: Option<String>,
}

/// Parameters of `editor.symbols`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolsParams {
    /// One file's; left out, those of the workspace that fit `query`.
    #[serde(default)]
    pub path: Option<String>,
    /// What to look for in the workspace.
    #[serde(default)]
    pub query: Option<String>,
}

/// Parameters of `editor.format`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatParams {
    /// The file.
    pub path: String,
}

/// Parameters of `editor.rename`: renames a symbol everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameParams {
    /// A file in which the symbol is.
    pub path: String,
    /// Where it is there.
    pub position: Position,
    /// What it shall be called.
    pub name: String,
    /// The other files that change with it; nothing is changed where one is missing here. Who leaves
    /// them out is told which they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Parameters of `editor.command`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandParams {
    /// The command's id, such as `workbench.action.files.saveAll`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<Value>,
}

/// Parameters of `editor.task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskParams {
    /// The task's name, as the editor lists it.
    pub task: String,
}

fn first() -> u32 {
    1
}

/// What an action of an editor does, in a sentence, and the JSON Schema of its parameters; nothing
/// for actions of others.
#[must_use]
pub fn about(action: ActionName) -> Option<(&'static str, Value)> {
    let (description, schema) = match action {
        ActionName::EditorOpen => (
            "Show a file to the person, at a line or with a selection",
            schemars::schema_for!(OpenParams),
        ),
        ActionName::EditorSelection => (
            "What the person has selected, and in which file",
            schemars::schema_for!(SelectionParams),
        ),
        ActionName::EditorDiagnostics => (
            "Errors and warnings that the editor knows of",
            schemars::schema_for!(DiagnosticsParams),
        ),
        ActionName::EditorDiff => (
            "Show a change of a file to the person, who accepts or rejects it",
            schemars::schema_for!(DiffParams),
        ),
        ActionName::EditorSymbols => (
            "Symbols of a file, or of the workspace by a query",
            schemars::schema_for!(SymbolsParams),
        ),
        ActionName::EditorFormat => (
            "Format a file with the editor's formatter",
            schemars::schema_for!(FormatParams),
        ),
        ActionName::EditorRename => (
            "Rename a symbol everywhere, with what the editor knows of the language",
            schemars::schema_for!(RenameParams),
        ),
        ActionName::EditorCommand => (
            "Run a command of the editor or of an extension",
            schemars::schema_for!(CommandParams),
        ),
        ActionName::EditorTask => (
            "Run a task that the editor lists, to its end",
            schemars::schema_for!(TaskParams),
        ),
        _ => return None,
    };
    Some((description, schema.to_value()))
}
