//! Rich outputs: one thing in several media types, inline or as artifacts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest media type.
const LONGEST: usize = 127;

/// One thing in several media types, such as `text/plain` and `image/png`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// The content, by media type.
    pub data: BTreeMap<String, Media>,
    /// What is said about it, such as the width of an image.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Content in one media type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// As it is: text, base64 for what is no text, or JSON.
    Inline(Value),
    /// Kept beside the notebook.
    Artifact(ArtifactRef),
}

/// Something large that is kept beside the notebook, by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// `sha256:<hex>` of the bytes.
    pub digest: String,
    /// How many bytes.
    pub size: u64,
    /// What they are.
    pub media_type: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ArtifactRef {
    /// Whether the digest is written as one: it becomes part of a name in a folder.
    #[must_use]
    pub fn is_digest(text: &str) -> bool {
        text.strip_prefix("sha256:").is_some_and(|hex| {
            let good = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            hex.len() == 64 && hex.bytes().all(good)
        })
    }
}

impl Bundle {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let media = Media::Inline(Value::String(text.into()));
        Self {
            data: BTreeMap::from([("text/plain".to_owned(), media)]),
            metadata: Map::new(),
        }
    }
}

/// Whether this can be a media type, with or without parameters.
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.bytes().all(good)
    };
    let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let essence = text.split(';').next().unwrap_or("").trim();
    text.len() <= LONGEST
        && text.bytes().all(printable)
        && essence
            .split_once('/')
            .is_some_and(|(family, kind)| token(family) && token(kind))
}
