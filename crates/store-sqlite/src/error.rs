//! Why a data folder or its database could not be opened.

use std::path::PathBuf;

/// Why the store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process owns the folder.
    #[error(
        "The data folder {folder} is in use by {owner}. Stop that one, or name another folder with --data.",
        folder = folder.display()
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// Who holds it, in words.
        owner: String,
    },
    /// Others could read what is in it.
    #[error(
        "The data folder {folder} can be entered by other users (mode {mode:o}). Close it with `chmod 700 {folder}`, or name another folder with --data.",
        folder = folder.display()
    )]
    OpenToOthers {
        /// The folder.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The folder cannot be made or used.
    #[error(
        "The data folder {folder} cannot be used: {why}. Name another folder with --data.",
        folder = folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's words.
        why: std::io::Error,
    },
    /// A later Ward wrote it.
    #[error(
        "The database {path} was written by a newer Ward (its schema is {found}, this Ward knows {known}). Use that Ward, or name another folder with --data.",
        path = path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest that is known here.
        known: i64,
    },
    /// Something else wrote it.
    #[error(
        "The file {path} is not a database of Ward's. Move it away, or name another folder with --data.",
        path = path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be trusted any more.
    #[error(
        "The database {path} is damaged ({why}). It was left as it is; restore it from a backup, or move it away to begin anew.",
        path = path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        why: String,
    },
    /// SQLite failed for another reason.
    #[error("The database {path} could not be opened: {why}.", path = path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// SQLite's words.
        why: rusqlite::Error,
    },
    /// The writer's thread could not be started.
    #[error("The store's writer could not be started: {0}.")]
    Thread(std::io::Error),
}
