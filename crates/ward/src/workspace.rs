//! The folder that Ward works in: the one that was named, or the current one.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The real path of the workspace.
pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(path) = named else {
        return std::env::current_dir().context(
            "The current folder cannot be used as the workspace. Go to one that exists, or name one with --workspace",
        );
    };
    let real = path.canonicalize().with_context(|| {
        format!(
            "The workspace `{}` cannot be used; --workspace names an existing folder",
            path.display()
        )
    })?;
    if !real.is_dir() {
        bail!(
            "The workspace `{}` is not a folder. Name the folder with --workspace.",
            path.display()
        );
    }
    Ok(real)
}
