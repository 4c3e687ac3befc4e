//! Text as files have it: in one piece, or line by line.

use serde_json::Value;

use super::numbers::{held, text};

/// The text that a value of a file is, whichever way it is written.
#[must_use]
pub fn joined(value: &Value) -> Option<String> {
    match value {
        Value::Array(lines) => lines.iter().map(text).collect(),
        other => text(other).map(ToOwned::to_owned),
    }
}

/// Line by line, each with its end.
pub(super) fn split(text: &str) -> Value {
    text.split_inclusive('\n').map(held).collect()
}

/// Whether a medium is JSON itself, and not text about something.
pub(super) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Whether a medium is written line by line.
pub(super) fn is_lines(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || matches!(media_type, "application/javascript" | "image/svg+xml")
}
