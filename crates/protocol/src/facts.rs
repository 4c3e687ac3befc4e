//! What an action would touch, resolved: real paths, the command as it would run, hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// What an action would touch. Two equal facts mean that nothing changed in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Paths, real and absolute, after every symbolic link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFact>,
    /// The command that would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandFact>,
    /// Hosts that would be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The cell that would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellFact>,
    /// Files that the command's words name, as they are now. Ward looks only where it asks a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileFact>,
    /// Stands for further ones, where there are too many to list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_files: Option<Digest>,
    /// Words of the command, as written, whose files cannot be known before it runs: variables,
    /// substitutions, folders of the room's own. An answer does not hold them to what is in them now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbound: Vec<String>,
    /// Whose word this is, where Ward did not look itself: an editor's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_of: Option<String>,
}

/// The detail of a failed look that names the places it was at: those outside the workspace, and
/// what is protected. It is the gate's, and is told to nobody.
pub const BEYOND: &str = "beyond";

/// One path and what would happen to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathFact {
    /// The real path.
    pub path: String,
    /// What would happen to it.
    pub access: Access,
    /// What is there now; left out where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// The content's digest now, for what would be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A file that a command may run or read, because one of its words names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileFact {
    /// The real path.
    pub path: String,
    /// The content's digest now; of its size and last change where it is too large to be read.
    pub digest: Digest,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Its content or its entries are read.
    Read,
    /// It is made, replaced or changed.
    Write,
    /// It is taken away.
    Delete,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a FIFO, a socket.
    Other,
}

/// A cell of a notebook as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellFact {
    /// Which notebook.
    pub notebook_id: String,
    /// Which cell of it; left out for a message to what a cell made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cell_id: String,
    /// Which run of it; left out for such a message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub execution_id: String,
    /// The comm that such a message goes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comm_id: Option<String>,
    /// What runs it, such as `python`.
    pub language: String,
    /// Of exactly the source that would run, or of the whole message.
    pub digest: Digest,
}

/// A command as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandFact {
    /// The shell line, where a shell would read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The words as they would be executed.
    pub argv: Vec<String>,
    /// The program's real path, where one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The working directory's real path.
    pub cwd: String,
    /// What the request sets in the environment, by name and value.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub env: std::collections::BTreeMap<String, String>,
}
