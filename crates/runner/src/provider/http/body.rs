//! The body of a request: an object that is written as it is made, so that what goes into it, the
//! schemas of all tools and a long conversation, is not copied first.

use bytes::Bytes;
use serde::Serialize;

/// A JSON object to which one field after the other is added.
#[derive(Debug)]
pub(in crate::provider) struct Body(Vec<u8>);

impl Body {
    pub(in crate::provider) fn new() -> Self {
        Self(vec![b'{'])
    }

    /// Adds a field. Its name needs no escapes.
    pub(in crate::provider) fn put(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        let text = &mut self.0;
        if text.len() > 1 {
            text.push(b',');
        }
        text.push(b'"');
        text.extend_from_slice(key.as_bytes());
        text.extend_from_slice(b"\":");
        let before = text.len();
        // Nothing that is put in fails: every key is text, and memory takes all that is written.
        if serde_json::to_writer(&mut *text, value).is_err() {
            text.truncate(before);
            text.extend_from_slice(b"null");
        }
    }

    /// As it is sent.
    pub(in crate::provider) fn done(mut self) -> Bytes {
        self.0.push(b'}');
        self.0.into()
    }
}
