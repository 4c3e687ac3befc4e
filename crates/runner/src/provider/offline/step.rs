//! One thing that `offline` can do, and the tool call that does it.

use serde_json::{Value, json};

/// One thing that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    List {
        path: String,
    },
    Read {
        path: String,
    },
    Search {
        pattern: String,
        path: String,
    },
    Glob {
        pattern: String,
        path: String,
    },
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
        all: bool,
    },
    Mkdir {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
    Delete {
        path: String,
    },
    Run {
        command: String,
    },
}

impl Step {
    /// The tool that does it.
    pub(super) fn tool(&self) -> &'static str {
        match self {
            Self::List { .. } => "fs_list",
            Self::Read { .. } => "fs_read",
            Self::Search { .. } => "fs_search",
            Self::Glob { .. } => "fs_glob",
            Self::Write { .. } => "fs_write",
            Self::Edit { .. } => "fs_edit",
            Self::Mkdir { .. } => "fs_mkdir",
            Self::Move { .. } => "fs_move",
            Self::Delete { .. } => "fs_delete",
            Self::Run { .. } => "terminal_run",
        }
    }

    /// What the tool is given.
    pub(super) fn arguments(&self) -> Value {
        match self {
            Self::List { path } | Self::Read { path } => json!({ "path": path }),
            Self::Search { pattern, path } => json!({ "pattern": pattern, "path": path }),
            Self::Glob { pattern, path } => json!({ "pattern": pattern, "path": path }),
            Self::Write { path, content } => json!({ "path": path, "content": content }),
            Self::Edit {
                path,
                old,
                new,
                all,
            } => json!({ "path": path, "edits": [{ "old": old, "new": new, "all": all }] }),
            Self::Mkdir { path } => json!({ "path": path }),
            Self::Move { from, to } => json!({ "from": from, "to": to }),
            // A folder with things in it is not deleted on a word.
            Self::Delete { path } => json!({ "path": path }),
            Self::Run { command } => json!({ "command": command }),
        }
    }

    /// What will be done, to be read after "I will".
    pub(super) fn intent(&self) -> String {
        match self {
            Self::List { path } if path == "." => "list the files here".to_owned(),
            Self::List { path } => format!("list what is in {path}"),
            Self::Read { path } => format!("read {path}"),
            Self::Search { pattern, path } if path == "." => format!("search for `{pattern}`"),
            Self::Search { pattern, path } => format!("search for `{pattern}` in {path}"),
            Self::Glob { pattern, .. } => format!("find the files that fit `{pattern}`"),
            Self::Write { path, .. } => format!("write {path}"),
            Self::Edit { path, .. } => format!("edit {path}"),
            Self::Mkdir { path } => format!("make the folder {path}"),
            Self::Move { from, to } => format!("move {from} to {to}"),
            Self::Delete { path } => format!("delete {path}"),
            Self::Run { command } => format!("run `{command}`"),
        }
    }

    /// The file or folder it is about, which "it" then means.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Read { path }
            | Self::Write { path, .. }
            | Self::Edit { path, .. }
            | Self::Mkdir { path } => Some(path),
            Self::Move { to, .. } => Some(to),
            Self::List { .. } | Self::Search { .. } | Self::Glob { .. } => None,
            Self::Delete { .. } | Self::Run { .. } => None,
        }
    }
}
