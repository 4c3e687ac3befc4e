//! A workspace as the gate knows it: its policy, read again when a file of it changes, and its
//! runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ErrorKind, Failure};

use crate::files::{Files, Here, Place, Trust};
use crate::runtime::Runtime;

/// A workspace.
pub(crate) struct Workspace {
    /// Its real path.
    pub(crate) real: PathBuf,
    /// The same, as text.
    pub(crate) name: String,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Which folder it is.
    place: Option<Place>,
    book: Mutex<Option<Arc<Files>>>,
}

impl Workspace {
    pub(crate) fn new(real: PathBuf, name: String, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            place: Here::look(&real).map(|here| here.place()),
            real,
            name,
            runtime,
            book: Mutex::default(),
        }
    }

    /// Whether its real path still leads to the folder it was found as: cheaper than to resolve the
    /// path anew for every action.
    pub(crate) fn is_there(&self) -> bool {
        self.here().is_some()
    }

    fn here(&self) -> Option<Here<'_>> {
        Here::look(&self.real).filter(|here| Some(here.place()) == self.place)
    }

    /// The policy where nothing of it has changed since it was read, and the workspace is still
    /// there.
    pub(crate) fn unchanged(&self) -> Option<Result<Arc<Files>, Failure>> {
        let here = self.here()?;
        let book = self.book();
        let files = book.as_ref().filter(|files| files.is_current(&here))?;
        Some(sound(files))
    }

    /// The policy as it is now: read again where a file of it has changed.
    ///
    /// Refuses (`bad_policy`) where a rule cannot be read: it may be one that denies.
    pub(crate) fn policy(&self, config: &Path) -> Result<Arc<Files>, Failure> {
        if let Some(policy) = self.unchanged() {
            return policy;
        }
        let bad =
            |error: &dyn std::fmt::Display| Failure::new(ErrorKind::BadPolicy, error.to_string());
        let trust = Trust::read(config).map_err(|error| bad(&error))?;
        let files = Files::read(config, &self.real, &trust).map_err(|error| bad(&error))?;
        let files = Arc::new(files);
        *self.book() = Some(Arc::clone(&files));
        sound(&files)
    }

    fn book(&self) -> MutexGuard<'_, Option<Arc<Files>>> {
        // Nothing panics while it is held.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sound(files: &Arc<Files>) -> Result<Arc<Files>, Failure> {
    let Some(mistake) = files.refused().first() else {
        return Ok(Arc::clone(files));
    };
    Err(Failure::new(
        ErrorKind::BadPolicy,
        format!(
            "The rules cannot be read, so nothing is decided: {mistake} `ward roles check` lists every mistake."
        ),
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_moved_away_or_replaced_by_a_link_is_no_longer_there() {
        let above = tempfile::tempdir().unwrap();
        let (folder, moved) = (above.path().join("work"), above.path().join("moved"));
        std::fs::create_dir(&folder).unwrap();
        let place = |path: &Path| Here::look(path).map(|here| here.place());
        let found = place(&folder);
        assert!(found.is_some());
        assert_eq!(place(&folder), found);
        std::fs::rename(&folder, &moved).unwrap();
        assert_eq!(place(&folder), None);
        // The same folder under another name: its real path is to be found anew.
        std::os::unix::fs::symlink(&moved, &folder).unwrap();
        assert_eq!(place(&folder), None);
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        assert_ne!(place(&folder), found);
    }
}
