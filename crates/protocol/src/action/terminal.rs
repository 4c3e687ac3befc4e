//! Commands and terminals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Encoding;
use crate::sandbox::SandboxReport;

/// Parameters of `terminal.run`: either `command` or `argv`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// A line for the shell.
    #[serde(default)]
    pub command: Option<String>,
    /// The words, without a shell.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    /// The folder to run in; the workspace where left out.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What it reads from standard input; nothing where left out.
    #[serde(default)]
    pub stdin: Option<String>,
    /// How `stdin` is written.
    #[serde(default)]
    pub stdin_encoding: Encoding,
    /// When to end it.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Answer at once with a `terminal_id` and let it go on.
    #[serde(default)]
    pub background: bool,
}

/// Result of `terminal.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal's name, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Standard output: all of it, or its head and tail with a line between that says what was cut.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// How `stdout` is written.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub stdout_encoding: Encoding,
    /// How `stderr` is written.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub stderr_encoding: Encoding,
    /// From start to end.
    pub duration_ms: u64,
    /// Whether the timeout ended it.
    pub timed_out: bool,
    /// Whether anything was cut from `stdout` or `stderr`.
    pub truncated: bool,
    /// How many bytes were cut from each; left out where nothing was.
    #[serde(default, skip_serializing_if = "Cut::is_nothing")]
    pub cut: Cut,
    /// What held it, and what was stopped.
    pub sandbox: SandboxReport,
}

/// How many bytes a result leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// Of standard output.
    pub stdout: u64,
    /// Of standard error.
    pub stderr: u64,
}

impl Cut {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Result of `terminal.run` in the background, and of `terminal.open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenResult {
    /// Its name from now on.
    pub terminal_id: String,
}

/// Parameters of `terminal.open`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenParams {
    /// A line for the shell; a login-less interactive shell where neither this nor `argv` is given.
    #[serde(default)]
    pub command: Option<String>,
    /// The words, without a shell.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    /// The folder to run in; the workspace where left out.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Columns.
    #[serde(default = "eighty")]
    pub cols: u16,
    /// Rows.
    #[serde(default = "twenty_four")]
    pub rows: u16,
}

/// Parameters of `terminal.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    /// Which terminal.
    pub terminal_id: String,
    /// What to type.
    pub data: String,
    /// How `data` is written.
    #[serde(default)]
    pub encoding: Encoding,
}

/// Parameters of `terminal.resize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    /// Which terminal.
    pub terminal_id: String,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Parameters of `terminal.close` and `terminal.stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalParams {
    /// Which terminal or background command.
    pub terminal_id: String,
}

/// Parameters of `terminal.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputReadParams {
    /// Which terminal or background command.
    pub terminal_id: String,
    /// Where to go on: `next` of the last answer; the oldest kept where left out.
    #[serde(default)]
    pub from: Option<u64>,
}

/// Result of `terminal.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputReadResult {
    /// The output.
    pub data: String,
    /// How `data` is written.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub encoding: Encoding,
    /// Bytes between `from` and the oldest kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Where to go on.
    pub next: u64,
    /// Whether it still runs.
    pub running: bool,
}

/// Parameters of `terminal.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `terminal.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResult {
    /// In the order they were opened.
    pub terminals: Vec<TerminalInfo>,
}

/// One terminal or background command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalInfo {
    /// Its name.
    pub terminal_id: String,
    /// Which of the two.
    pub kind: TerminalKind,
    /// What runs in it.
    pub command: String,
    /// Where.
    pub cwd: String,
    /// Whether it still runs.
    pub running: bool,
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal's name, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// What a `terminal_id` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalKind {
    /// A PTY.
    Pty,
    /// A command in the background.
    Background,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn eighty() -> u16 {
    80
}

fn twenty_four() -> u16 {
    24
}
