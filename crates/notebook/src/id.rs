//! Ids: 1 to 64 letters, digits, `_` or `-`, as Jupyter has them for cells. They are safe to show, to
//! log and to put into the path of a URL.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest id.
const MAX_ID: usize = 64;

/// Why something cannot be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be an id. An id has 1 to {MAX_ID} letters, digits, `_` or `-`.")]
pub struct BadId(String);

pub(crate) fn is_good(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(good)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// The id, if it can be one.
            pub fn new(text: impl Into<String>) -> Result<Self, BadId> {
                let text = text.into();
                match is_good(&text) {
                    true => Ok(Self(text)),
                    false => Err(BadId(text.escape_debug().take(80).collect())),
                }
            }

            /// As it is written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Which cell; no two of a notebook have one, also not one after the other.
    CellId
);
id!(
    /// Which run of a cell.
    ExecutionId
);
id!(
    /// Which output, where it can be changed later: Jupyter's display id.
    OutputId
);
id!(
    /// Which session of a runtime.
    SessionId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_and_plain_also_when_it_is_read() {
        assert!(serde_json::from_str::<CellId>(r#""a-B_9""#).is_ok());
        let long = "a".repeat(65);
        for text in ["", "a b", "../x", "ä", "a\n", &long] {
            assert!(CellId::new(text).is_err(), "{text:?}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<CellId>(&json).is_err(), "{text:?}");
        }
    }
}
