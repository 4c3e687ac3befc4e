//! An event: something that happened, as it was written.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::seq::Seq;

/// Milliseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// An event that is to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// What kind of thing happened, such as `ward.started`.
    pub kind: Cow<'static, str>,
    /// When, by the clock of whoever appends it.
    pub at: Millis,
    /// What is to be known about it.
    pub data: Json,
}

/// JSON as text, made where it is known and written as it is: the one who writes for all does not
/// have to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes the word of whoever made it that this is JSON.
    #[must_use]
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The same, to be kept elsewhere too.
    #[must_use]
    pub fn text(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // Through `Display` it is more work.
        Self(
            serde_json::to_string(&value)
                .unwrap_or_else(|_| value.to_string())
                .into(),
        )
    }
}

/// An event in its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the stream.
    pub seq: Seq,
    /// What kind of thing happened.
    pub kind: String,
    /// When.
    pub at: Millis,
    /// What is to be known about it.
    pub data: Value,
}
