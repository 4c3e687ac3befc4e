//! The id of a request: a string or a number, given back as it came.

use serde::{Deserialize, Serialize};

/// A request's id. `null` is not one: JSON-RPC keeps it for errors whose request is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A number, as `vscode-jsonrpc` counts.
    Number(serde_json::Number),
    /// A string.
    String(String),
}

impl Id {
    /// The id that this JSON text is, if it is one.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        // By hand, because an untagged enum would build a tree first, for every request.
        if json.starts_with('"') {
            serde_json::from_str(json).ok().map(Self::String)
        } else {
            serde_json::from_str(json).ok().map(Self::Number)
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => write!(f, "{text:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_are_ids_and_nothing_else_is() {
        assert_eq!(Id::from_json("7"), Some(Id::from(7)));
        assert_eq!(Id::from_json("\"7\""), Some(Id::String("7".into())));
        assert_eq!(Id::from_json(r#""a\n""#), Some(Id::String("a\n".into())));
        for json in ["null", "true", "[]", "{}"] {
            assert_eq!(Id::from_json(json), None, "{json}");
        }
    }
}
