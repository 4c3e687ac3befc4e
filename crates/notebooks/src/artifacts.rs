//! What is large, beside the events: by its content, in a folder of each notebook.

use std::path::{Path, PathBuf};

use notebook::ArtifactRef;
use protocol::{Digest, ErrorKind, Failure};

/// The largest artifact, and the most of all in one notebook.
pub const MAX_ARTIFACT: usize = 32 * 1024 * 1024;
const MAX_ALL: u64 = 1024 * 1024 * 1024;

/// Artifacts of all notebooks.
#[derive(Debug, Clone)]
pub struct Artifacts {
    folder: PathBuf,
}

impl Artifacts {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Keeps bytes, and answers what they are called. `kept` is what the notebook has already.
    pub async fn keep(
        &self,
        notebook: &str,
        kept: u64,
        bytes: Vec<u8>,
        media_type: String,
        name: Option<String>,
    ) -> Result<ArtifactRef, Failure> {
        if bytes.len() > MAX_ARTIFACT || kept + bytes.len() as u64 > MAX_ALL {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                format!(
                    "An artifact has at most {} MiB, all of a notebook {} MiB. Delete some.",
                    MAX_ARTIFACT >> 20,
                    MAX_ALL >> 20
                ),
            ));
        }
        let digest = Digest::of(&bytes);
        let artifact = ArtifactRef {
            digest: digest.as_str().to_owned(),
            size: bytes.len() as u64,
            media_type,
            name,
        };
        let path = self.path(notebook, &artifact.digest)?;
        let beside = path.with_extension(gate::new_id()?);
        blocking(move || write(&path, &beside, &bytes)).await?;
        Ok(artifact)
    }

    /// The bytes of an artifact that the notebook has.
    pub async fn read(&self, notebook: &str, digest: &str) -> Result<Vec<u8>, Failure> {
        let path = self.path(notebook, digest)?;
        blocking(move || std::fs::read(path)).await
    }

    /// Takes one away.
    pub async fn remove(&self, notebook: &str, digest: &str) -> Result<(), Failure> {
        let path = self.path(notebook, digest)?;
        blocking(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
        .await
    }

    /// Takes all of a notebook away.
    pub(crate) async fn remove_all(&self, notebook: &str) {
        let folder = self.folder.join(notebook);
        let removed = blocking(move || match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        });
        if let Err(failure) = removed.await {
            tracing::warn!(%failure, "a notebook's artifacts could not be removed");
        }
    }

    /// Where one is. Neither part can lead out of the folder.
    fn path(&self, notebook: &str, digest: &str) -> Result<PathBuf, Failure> {
        let plain = notebook.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !plain || notebook.is_empty() || !ArtifactRef::is_digest(digest) {
            return Err(Failure::new(
                ErrorKind::Unknown,
                "There is no such artifact in this notebook.",
            ));
        }
        let hex = digest.trim_start_matches("sha256:");
        Ok(self.folder.join(notebook).join(hex))
    }
}

/// Whole, or not at all.
fn write(path: &Path, beside: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let folder = path.parent().unwrap_or(path);
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true).mode(0o700).create(folder)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(beside)?;
    std::io::Write::write_all(&mut file, bytes)?;
    std::fs::rename(beside, path)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::new(
            ErrorKind::Unknown,
            "There is no such artifact in this notebook.",
        )),
        Ok(Err(error)) => Err(Failure::new(
            ErrorKind::Io,
            format!("An artifact could not be read or written: {error}."),
        )),
        Err(error) => Err(Failure::new(ErrorKind::Internal, error.to_string())),
    }
}
