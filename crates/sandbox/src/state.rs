//! A room's own folder on disk.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::SandboxError;

/// A room's own folder on disk; taken away with it.
#[derive(Debug)]
pub(crate) struct StateFolder {
    pub(crate) path: PathBuf,
}

impl StateFolder {
    /// Makes a new one below Ward's own.
    pub(crate) fn make(below: &Path) -> Result<Self, SandboxError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = below
            .join("rooms")
            .join(format!("{}-{number}", std::process::id()));
        let made = std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&path);
        made.map_err(|error| SandboxError::Layer {
            layer: "scratch home",
            why: format!("{}: {error}", path.display()),
        })?;
        Ok(Self { path })
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
