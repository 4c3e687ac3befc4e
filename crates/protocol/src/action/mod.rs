//! What can be done: the names of the actions, and the parameters and results of each.

pub mod editor;
pub mod fs;
pub mod terminal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Every action Ward knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ActionName {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl ActionName {
            /// All of them, in the order they are listed to a client.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as it is written.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The action of this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

actions! {
    /// Read a file.
    FsRead = "fs.read",
    /// List a folder.
    FsList = "fs.list",
    /// What is at a path.
    FsStat = "fs.stat",
    /// Files whose path fits a pattern.
    FsGlob = "fs.glob",
    /// Lines that fit a regular expression.
    FsSearch = "fs.search",
    /// Replace or make a file.
    FsWrite = "fs.write",
    /// Replace pieces of a file.
    FsEdit = "fs.edit",
    /// Apply a unified diff.
    FsPatch = "fs.patch",
    /// Make a folder.
    FsMkdir = "fs.mkdir",
    /// Move or rename.
    FsMove = "fs.move",
    /// Delete.
    FsDelete = "fs.delete",
    /// Run a command to its end, or in the background.
    TerminalRun = "terminal.run",
    /// Open a terminal.
    TerminalOpen = "terminal.open",
    /// Type into a terminal.
    TerminalWrite = "terminal.write",
    /// Change a terminal's size.
    TerminalResize = "terminal.resize",
    /// Close a terminal, ending what runs in it.
    TerminalClose = "terminal.close",
    /// List terminals and background commands.
    TerminalList = "terminal.list",
    /// What a terminal or background command has printed.
    TerminalRead = "terminal.read",
    /// Stop a background command.
    TerminalStop = "terminal.stop",
    /// Show a file.
    EditorOpen = "editor.open",
    /// What is selected.
    EditorSelection = "editor.selection",
    /// What the editor found wrong.
    EditorDiagnostics = "editor.diagnostics",
    /// Show a change, to be accepted or rejected.
    EditorDiff = "editor.diff",
    /// The symbols of a file or the workspace.
    EditorSymbols = "editor.symbols",
    /// Format a file.
    EditorFormat = "editor.format",
    /// Rename a symbol everywhere.
    EditorRename = "editor.rename",
    /// Run a command of the editor.
    EditorCommand = "editor.command",
    /// Run a task of the editor.
    EditorTask = "editor.task",
    /// Run a cell of a notebook.
    CellExecute = "cell.execute",
}

impl ActionName {
    /// Whether only an editor can do it.
    #[must_use]
    pub fn is_editors(self) -> bool {
        self.as_str().starts_with("editor.")
    }

    /// Whether only a notebook's runtime can do it.
    #[must_use]
    pub fn is_cells(self) -> bool {
        self.as_str().starts_with("cell.")
    }
}

impl std::fmt::Display for ActionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
