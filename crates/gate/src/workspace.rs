//! A workspace as the gate knows it: its policy, read again when a file of it changes, and its
//! runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{Digest, ErrorKind, Failure};

use crate::runtime::Runtime;

/// A workspace.
pub(crate) struct Workspace {
    /// Its real path.
    pub(crate) real: PathBuf,
    /// The same, as text.
    pub(crate) name: String,
    pub(crate) runtime: Arc<dyn Runtime>,
    book: Mutex<Option<Arc<Book>>>,
}

/// The policy that holds in a workspace.
pub(crate) struct Book {
    pub(crate) roles: policy::Roles,
    pub(crate) rules: policy::Rules,
    pub(crate) version: Digest,
}

impl Workspace {
    pub(crate) fn new(real: PathBuf, name: String, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            real,
            name,
            runtime,
            book: Mutex::default(),
        }
    }

    /// The policy as it is now.
    pub(crate) fn policy(&self, _config: &Path) -> Result<Arc<Book>, Failure> {
        let mut book = self.book();
        if let Some(book) = &*book {
            return Ok(Arc::clone(book));
        }
        let read = Arc::new(Book {
            roles: policy::builtin::roles(),
            rules: policy::builtin::rules().map_err(|_| {
                Failure::new(ErrorKind::BadPolicy, "The built-in rules cannot be read.")
            })?,
            version: Digest::of(b"built-in"),
        });
        *book = Some(Arc::clone(&read));
        Ok(read)
    }

    fn book(&self) -> MutexGuard<'_, Option<Arc<Book>>> {
        // Nothing panics while it is held.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The real path of a folder that somebody names as a workspace.
pub(crate) fn find(path: &Path) -> Result<(PathBuf, String), Failure> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failure::new(
            ErrorKind::NotADirectory,
            format!(
                "{} cannot be the workspace: {why}. Name a folder that exists.",
                path.display()
            ),
        )
    };
    if !path.is_absolute() {
        return Err(refuse(&"the path does not begin with `/`"));
    }
    let real = path.canonicalize().map_err(|error| refuse(&error))?;
    if !real.is_dir() {
        return Err(refuse(&"it is no folder"));
    }
    let Some(name) = real.to_str().map(ToOwned::to_owned) else {
        return Err(refuse(&"its path is not UTF-8"));
    };
    Ok((real, name))
}
