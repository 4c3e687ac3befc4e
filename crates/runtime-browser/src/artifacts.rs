//! What is large is kept beside the notebook, over the page's wire.

use std::rc::Rc;

use notebook::ArtifactRef;
use runtime_core::{ArtifactClient, ArtifactError, Transport, Unanswered};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::{failure, unreadable};
use crate::replica::{Replica, Shared, read};
use crate::wire::Asked;

/// The artifacts of one notebook, for who authenticated or for a runtime session.
pub(crate) struct Beside {
    pub(crate) shared: Rc<Shared>,
    pub(crate) token: Option<String>,
}

impl Transport for Beside {
    type Error = Unanswered;

    async fn put(&self, media_type: &str, bytes: Vec<u8>) -> Result<ArtifactRef, Unanswered> {
        let asked = Asked {
            method: "POST",
            path: &format!("{}/artifacts", self.shared.path),
            runtime: self.token.clone(),
            content_type: Some(media_type),
            body: Some(&bytes),
        };
        read(&self.shared.asked(asked).await?)
    }

    async fn get(&self, digest: &str, limit: usize) -> Result<Vec<u8>, Unanswered> {
        let asked = Asked {
            method: "GET",
            path: &format!("{}/artifacts/{digest}", self.shared.path),
            ..Asked::default()
        };
        let came = self.shared.asked(asked).await?;
        match came.bytes.len() <= limit {
            true => Ok(came.bytes),
            false => Err(Unanswered::Refused("It is too large.".to_owned())),
        }
    }

    async fn delete(&self, digest: &str) -> Result<(), Unanswered> {
        let asked = Asked {
            method: "DELETE",
            path: &format!("{}/artifacts/{digest}", self.shared.path),
            runtime: self.token.clone(),
            ..Asked::default()
        };
        self.shared.asked(asked).await.map(drop)
    }
}

/// Uploads and downloads what is large; what comes back is checked by its digest.
#[wasm_bindgen(js_name = ArtifactClient)]
pub struct Artifacts(ArtifactClient<Beside>);

#[wasm_bindgen(js_class = ArtifactClient)]
impl Artifacts {
    /// The artifacts of a replica's notebook.
    #[wasm_bindgen(constructor)]
    pub fn new(replica: &Replica) -> Artifacts {
        Self(ArtifactClient::new(Beside {
            shared: replica.shared(),
            token: None,
        }))
    }

    /// Keeps bytes beside the notebook. Answers what refers to them, as JSON.
    pub async fn upload(&self, media_type: String, bytes: Vec<u8>) -> Result<String, JsValue> {
        let kept = self.0.upload(&media_type, bytes).await.map_err(thrown)?;
        serde_json::to_string(&kept).map_err(|error| unreadable("The artifact", &error))
    }

    /// Fetches what a reference, given as JSON, refers to.
    pub async fn download(&self, artifact: String) -> Result<Vec<u8>, JsValue> {
        self.0.download(&referred(&artifact)?).await.map_err(thrown)
    }

    /// Takes it away.
    pub async fn delete(&self, artifact: String) -> Result<(), JsValue> {
        self.0.delete(&referred(&artifact)?).await.map_err(thrown)
    }
}

fn referred(artifact: &str) -> Result<ArtifactRef, JsValue> {
    serde_json::from_str(artifact).map_err(|error| unreadable("The reference", &error))
}

fn thrown(error: ArtifactError) -> JsValue {
    failure(error.kind(), &error.to_string())
}
