//! What a file action changed, and taking it back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::permissions::Permissions;

/// What is, or was, at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Of its content.
        digest: Digest,
        /// In bytes, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        /// Its permission bits, where they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Permissions>,
    },
    /// A folder.
    Directory {
        /// Its permission bits, where they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Permissions>,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points, as it is written in it.
        target: String,
    },
    /// A device, a FIFO, a socket, or what cannot be read.
    Other,
}

impl State {
    /// Whether the two are the same kind of thing with the same content, whoever may read it.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) | (Self::Directory { .. }, Self::Directory { .. }) => true,
            (Self::File { digest: one, .. }, Self::File { digest: two, .. }) => one == two,
            (Self::Symlink { target: one }, Self::Symlink { target: two }) => one == two,
            // What cannot be told apart is not the same.
            (
                Self::Absent
                | Self::File { .. }
                | Self::Directory { .. }
                | Self::Symlink { .. }
                | Self::Other,
                _,
            ) => false,
        }
    }
}

/// What an action did to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The real path.
    pub path: String,
    /// What was there.
    pub before: State,
    /// What the action left there.
    pub after: State,
    /// Whether what was there can be put back.
    pub kept: bool,
    /// Why not, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unkept: Option<Unkept>,
}

impl FileChange {
    /// A change, and why what was there is not kept, if it is not.
    #[must_use]
    pub fn new(path: String, before: State, after: State, unkept: Option<Unkept>) -> Self {
        Self {
            path,
            before,
            after,
            kept: unkept.is_none(),
            unkept,
        }
    }
}

/// Why something is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unkept {
    /// It is more than is kept of one file or one action.
    TooLarge,
    /// It could not be read, or not be written where it would be kept.
    Unreadable,
    /// It is a device, a FIFO or a socket, or its name is not UTF-8.
    Special,
}

impl Unkept {
    /// As a clause about "it".
    #[must_use]
    pub fn as_clause(self) -> &'static str {
        match self {
            Self::TooLarge => "it was too large to be kept",
            Self::Unreadable => "it could not be kept when it was replaced",
            Self::Special => "such a thing cannot be kept",
        }
    }
}

/// Parameters of [`UNDO`](crate::method::UNDO): an action, a session, or nothing for the last
/// action in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoParams {
    /// The action to take back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// All of this session, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The workspace, by its absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Result of [`UNDO`](crate::method::UNDO).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// What was taken back, in that order: the newest first.
    pub actions: Vec<UndoneAction>,
}

/// One action that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoneAction {
    /// Which.
    pub action_id: String,
    /// The undo is an action as well: give this id to take it back.
    pub undo_id: String,
    /// What changed by that.
    pub files: Vec<FileChange>,
}

/// Answer of `GET /actions/{id}/changes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// In the order it was done.
    pub files: Vec<ShownChange>,
    /// How many more there are that are not told.
    #[serde(default)]
    pub more: u64,
}

/// What an action did to one path, as people read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownChange {
    /// The real path.
    pub path: String,
    /// What was there.
    pub before: State,
    /// What the action left there.
    pub after: State,
    /// As a unified diff in which nothing is invisible; left out where it is no text, too long, or
    /// no longer to be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}
