//! The workspace, held open by a descriptor.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use protocol::{ErrorKind, Failure};
use rustix::fs::{Mode, OFlags};

/// The folder the actions work in. It is held open, so that moving it away and putting something
/// else in its place leads nobody there.
#[derive(Debug)]
pub struct Workspace {
    #[allow(dead_code, reason = "the file actions come next")]
    root: OwnedFd,
    real: PathBuf,
}

impl Workspace {
    /// Opens the folder at `path`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |error: &dyn std::fmt::Display| {
            Failure::new(
                ErrorKind::NotADirectory,
                format!(
                    "{} cannot be the workspace: {error}. Name a folder that exists.",
                    path.display()
                ),
            )
        };
        let real = path.canonicalize().map_err(|error| refuse(&error))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&real, flags, Mode::empty()).map_err(|error| refuse(&error))?;
        Ok(Self { root, real })
    }

    /// The workspace's real path.
    #[must_use]
    pub fn real(&self) -> &Path {
        &self.real
    }
}
