//! File actions. Paths are relative to the workspace, or absolute inside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Encoding;
use crate::digest::Digest;
use crate::facts::EntryKind;
use crate::permissions::Permissions;

/// Parameters of `fs.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadParams {
    /// The file.
    pub path: String,
    /// The first line to read, from 1.
    #[serde(default)]
    pub offset: Option<u64>,
    /// How many lines.
    #[serde(default)]
    pub limit: Option<u64>,
    /// `utf-8` refuses what is not text, `base64` always answers so; left out, it is text where it can be.
    #[serde(default)]
    pub encoding: Option<Encoding>,
}

/// Result of `fs.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadResult {
    /// The content, or the lines that were asked for.
    pub content: String,
    /// How `content` is written.
    pub encoding: Encoding,
    /// The whole file's size in bytes.
    pub size: u64,
    /// The whole file's digest: give it back as `expect`.
    pub digest: Digest,
    /// Whether there is more than was answered.
    pub truncated: bool,
    /// Where to go on, in lines; left out at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// Bytes left out of the last line answered, where that line alone is more than fits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
}

/// Parameters of `fs.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// The folder; the workspace where left out.
    #[serde(default = "here")]
    pub path: String,
    /// How deep; 1 is the folder's own entries.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Whether names that start with a dot are listed.
    #[serde(default)]
    pub hidden: bool,
}

/// Parameters of `fs.stat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatParams {
    /// The path. A symbolic link is told as one, not followed.
    pub path: String,
}

/// Parameters of `fs.glob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobParams {
    /// Such as `src/**/*.rs`, relative to `path`.
    pub pattern: String,
    /// The folder to look in; the workspace where left out.
    #[serde(default = "here")]
    pub path: String,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Relative to the workspace.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// In bytes, for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// Where a symbolic link points, as it is written in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Result of `fs.list`, `fs.stat` and `fs.glob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesResult {
    /// Sorted by path.
    pub entries: Vec<Entry>,
    /// Whether there were more than the limit.
    pub truncated: bool,
}

/// Parameters of `fs.search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// A regular expression, in the syntax of ripgrep.
    pub pattern: String,
    /// The file or folder to look in; the workspace where left out.
    #[serde(default = "here")]
    pub path: String,
    /// Only files whose path fits, such as `*.rs` or `src/**`; `!*.md` leaves files out.
    #[serde(default)]
    pub glob: Option<String>,
    /// Lines around each match.
    #[serde(default)]
    pub context: Option<u32>,
    /// How many matches at most: 200 where left out, never more than 10,000.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// One line that fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// Relative to the workspace.
    pub path: String,
    /// From 1.
    pub line: u64,
    /// Of the first fit in the line, from 1, in characters.
    pub column: u64,
    /// The line, cut where it is very long.
    pub text: String,
    /// Lines before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Lines after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// Result of `fs.search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// Sorted by path and line.
    pub matches: Vec<Match>,
    /// Whether there were more than the limit.
    pub truncated: bool,
}

/// Parameters of `fs.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    /// The file; missing folders above it are made.
    pub path: String,
    /// What it shall hold.
    pub content: String,
    /// How `content` is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// The digest it must have now, so that nothing unseen is replaced.
    #[serde(default)]
    pub expect: Option<Digest>,
    /// Its permission bits, such as `755`; left out, it keeps those it has, and a new file gets `644`.
    #[serde(default)]
    pub mode: Option<Permissions>,
}

/// Result of `fs.write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteResult {
    /// The digest it has now.
    pub digest: Digest,
    /// Whether it is new.
    pub created: bool,
}

/// One replacement of `fs.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text as it stands there; it must occur exactly once unless `all`.
    pub old: String,
    /// What comes in its place.
    pub new: String,
    /// Every occurrence.
    #[serde(default)]
    pub all: bool,
}

/// Parameters of `fs.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditParams {
    /// The file.
    pub path: String,
    /// Done in order, each on the result of the one before; all or none.
    pub edits: Vec<Edit>,
    /// The digest it must have now.
    #[serde(default)]
    pub expect: Option<Digest>,
}

/// Result of `fs.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditResult {
    /// The digest it has now.
    pub digest: Digest,
    /// What changed, as a unified diff.
    pub diff: String,
}

/// Parameters of `fs.patch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchParams {
    /// A unified diff over one or several files, as `git diff` writes it.
    pub patch: String,
}

/// What a patch did to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// Its content changed.
    Changed,
    /// It is gone.
    Deleted,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchedFile {
    /// Relative to the workspace.
    pub path: String,
    /// What happened.
    pub change: Change,
    /// The digest it has now; left out where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// Result of `fs.patch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchResult {
    /// In the order of the patch.
    pub files: Vec<PatchedFile>,
}

/// Parameters of `fs.mkdir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MkdirParams {
    /// The folder; missing folders above it are made.
    pub path: String,
    /// Its permission bits at the most, such as `700`; the umask takes from them.
    #[serde(default)]
    pub mode: Option<Permissions>,
}

/// Parameters of `fs.move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveParams {
    /// What to move.
    pub from: String,
    /// Where to; nothing may be there unless `replace`. Missing folders above it are made.
    pub to: String,
    /// Replace a file that is there.
    #[serde(default)]
    pub replace: bool,
}

/// Parameters of `fs.delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    /// What to delete. A symbolic link is deleted itself.
    pub path: String,
    /// A folder with all that is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// Result of an action that only has to succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Whether anything changed: a folder that was there already is not made.
    pub changed: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn here() -> String {
    ".".to_owned()
}
