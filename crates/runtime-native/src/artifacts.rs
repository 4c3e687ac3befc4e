//! What is kept beside a notebook, over HTTP.

use notebook::ArtifactRef;
use runtime_core::{Transport, Unanswered};

use crate::http::{Answer, Http, Request};
use crate::store::{HttpStore, read};

/// What is kept beside this notebook.
pub(crate) struct Artifacts<'a, H> {
    pub(crate) store: &'a HttpStore<H>,
    /// The token of the session that keeps it.
    pub(crate) token: Option<String>,
}

impl<H: Http> Artifacts<'_, H> {
    async fn call(
        &self,
        method: &'static str,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Answer, Unanswered> {
        self.store
            .asked(Request {
                method,
                path: format!("{}/artifacts{path}", self.store.path()),
                runtime: self.token.as_deref(),
                content_type,
                body,
            })
            .await
    }
}

impl<H: Http> Transport for Artifacts<'_, H> {
    type Error = Unanswered;

    async fn put(&self, media_type: &str, bytes: Vec<u8>) -> Result<ArtifactRef, Unanswered> {
        let answer = self.call("POST", "", Some(media_type), bytes).await?;
        read(&answer)
    }

    async fn get(&self, digest: &str, limit: usize) -> Result<Vec<u8>, Unanswered> {
        let path = format!("/{digest}");
        let answer = self.call("GET", &path, None, Vec::new()).await?;
        match answer.body.len() <= limit {
            true => Ok(answer.body),
            false => Err(Unanswered::Refused("It is too large.".to_owned())),
        }
    }

    async fn delete(&self, digest: &str) -> Result<(), Unanswered> {
        let path = format!("/{digest}");
        self.call("DELETE", &path, None, Vec::new()).await?;
        Ok(())
    }
}
