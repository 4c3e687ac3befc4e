//! Models on this machine: Ollama and llama.cpp are found by asking where they usually listen.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;

use crate::provider::Endpoint;

/// Where they listen, and under which name they are then known.
pub(super) const USUAL: [(&str, &str); 2] = [
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
];

/// Whoever does not answer by then is not there.
const PATIENCE: Duration = Duration::from_millis(300);

/// How much of a list is read.
const LARGEST: usize = 1 << 20;

/// The models that are served there, if what answers is such a server at all.
pub(super) async fn models(endpoint: &Endpoint) -> Option<Vec<String>> {
    let asked = async {
        let address = format!("{}/models", endpoint.base());
        let response = endpoint.client().ok()?.get(address).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        let mut bytes = Box::pin(response.bytes_stream());
        while let Some(piece) = bytes.next().await {
            body.extend_from_slice(&piece.ok()?);
            if body.len() > LARGEST {
                return None;
            }
        }
        list(&serde_json::from_slice(&body).ok()?)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok()?
}

fn list(body: &Value) -> Option<Vec<String>> {
    if body["object"] != "list" {
        return None;
    }
    let models = body["data"].as_array()?.iter();
    models
        .map(|model| model["id"].as_str().map(str::to_owned))
        .collect()
}
