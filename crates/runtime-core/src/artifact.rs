//! What is large is kept beside the notebook, by its content, over the platform's transport.

use std::future::Future;

use notebook::ArtifactRef;
use sha2::{Digest as _, Sha256};

/// The largest thing that is kept, in bytes.
pub const MAX_ARTIFACT: usize = 64 << 20;

/// How bytes get to the server and back: the platform's business. A transport is bound to one
/// notebook and to who authenticated.
pub trait Transport {
    /// What goes wrong on the way.
    type Error: std::fmt::Display;

    /// Sends bytes; answers what the server keeps.
    fn put(
        &self,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<ArtifactRef, Self::Error>>;

    /// Fetches bytes, at most `limit`.
    fn get(&self, digest: &str, limit: usize)
    -> impl Future<Output = Result<Vec<u8>, Self::Error>>;

    /// Takes them away.
    fn delete(&self, digest: &str) -> impl Future<Output = Result<(), Self::Error>>;
}

/// Why something could not be kept or fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// It is too large.
    #[error("It has {0} bytes; at most {MAX_ARTIFACT} are kept beside a notebook.")]
    TooLarge(usize),
    /// What came is not what was asked for.
    #[error("What the server has is not what its digest says. It was not used.")]
    Changed,
    /// The digest cannot be one.
    #[error("`{0}` is no digest, such as sha256:… with 64 digits behind it.")]
    Digest(String),
    /// The transport failed.
    #[error("{0}")]
    Transport(String),
}

impl ArtifactError {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "too_large",
            Self::Changed => "changed",
            Self::Digest(_) => "invalid_params",
            Self::Transport(_) => "disconnected",
        }
    }
}

/// Uploads and downloads what is large. It believes no server: what comes back is checked by its
/// digest.
#[derive(Debug, Clone)]
pub struct ArtifactClient<T> {
    transport: T,
}

impl<T: Transport> ArtifactClient<T> {
    /// A client on this transport.
    pub fn new(transport: T) -> Self {
        Self { transport }
    }

    /// Keeps bytes beside the notebook.
    pub async fn upload(
        &self,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ArtifactRef, ArtifactError> {
        if bytes.len() > MAX_ARTIFACT {
            return Err(ArtifactError::TooLarge(bytes.len()));
        }
        let (digest, size) = (digest(&bytes), bytes.len() as u64);
        let kept = self.transport.put(media_type, bytes).await;
        let kept = kept.map_err(|error| ArtifactError::Transport(error.to_string()))?;
        match kept.digest == digest && kept.size == size {
            true => Ok(kept),
            false => Err(ArtifactError::Changed),
        }
    }

    /// Fetches what is kept.
    pub async fn download(&self, artifact: &ArtifactRef) -> Result<Vec<u8>, ArtifactError> {
        let wanted = checked(&artifact.digest)?;
        let bytes = self.transport.get(wanted, MAX_ARTIFACT).await;
        let bytes = bytes.map_err(|error| ArtifactError::Transport(error.to_string()))?;
        match digest(&bytes) == wanted {
            true => Ok(bytes),
            false => Err(ArtifactError::Changed),
        }
    }

    /// Takes it away.
    pub async fn delete(&self, artifact: &ArtifactRef) -> Result<(), ArtifactError> {
        let gone = self.transport.delete(checked(&artifact.digest)?).await;
        gone.map_err(|error| ArtifactError::Transport(error.to_string()))
    }
}

/// A digest becomes part of an address, so it has to be one.
fn checked(digest: &str) -> Result<&str, ArtifactError> {
    match ArtifactRef::is_digest(digest) {
        true => Ok(digest),
        false => Err(ArtifactError::Digest(
            digest.escape_debug().take(80).collect(),
        )),
    }
}

/// `sha256:<hex>` of the bytes.
fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A server in memory that can lie.
    #[derive(Default)]
    struct Memory {
        kept: RefCell<BTreeMap<String, Vec<u8>>>,
        lies: bool,
    }

    impl Transport for &Memory {
        type Error = String;

        async fn put(&self, media_type: &str, mut bytes: Vec<u8>) -> Result<ArtifactRef, String> {
            if self.lies {
                bytes.push(0);
            }
            let artifact = ArtifactRef {
                digest: digest(&bytes),
                size: bytes.len() as u64,
                media_type: media_type.to_owned(),
                name: None,
            };
            self.kept
                .borrow_mut()
                .insert(artifact.digest.clone(), bytes);
            Ok(artifact)
        }

        async fn get(&self, digest: &str, _limit: usize) -> Result<Vec<u8>, String> {
            let mut bytes = self.kept.borrow().get(digest).cloned().ok_or("not there")?;
            if self.lies {
                bytes.push(0);
            }
            Ok(bytes)
        }

        async fn delete(&self, digest: &str) -> Result<(), String> {
            self.kept.borrow_mut().remove(digest);
            Ok(())
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn what_is_uploaded_can_be_fetched_and_taken_away() {
        let server = Memory::default();
        let client = ArtifactClient::new(&server);
        let kept = now(client.upload("image/png", b"picture".to_vec())).unwrap();
        assert_eq!(now(client.download(&kept)), Ok(b"picture".to_vec()));
        now(client.delete(&kept)).unwrap();
        assert!(now(client.download(&kept)).is_err());
    }

    #[test]
    fn a_server_that_sends_something_else_is_not_believed() {
        let mut server = Memory::default();
        let kept = now(ArtifactClient::new(&server).upload("a/b", b"x".to_vec())).unwrap();
        server.lies = true;
        let client = ArtifactClient::new(&server);
        assert_eq!(now(client.download(&kept)), Err(ArtifactError::Changed));
        let told = now(client.upload("a/b", b"y".to_vec()));
        assert_eq!(told, Err(ArtifactError::Changed));
    }

    #[test]
    fn what_is_no_digest_never_becomes_part_of_an_address() {
        let server = Memory::default();
        let client = ArtifactClient::new(&server);
        let bad = ArtifactRef {
            digest: "sha256:../../etc/passwd".into(),
            size: 1,
            media_type: "a/b".into(),
            name: None,
        };
        assert_eq!(
            now(client.download(&bad)).unwrap_err().kind(),
            "invalid_params"
        );
    }
}
