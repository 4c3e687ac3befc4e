//! The name of a stream.

use std::fmt;
use std::sync::Arc;

/// The name of a stream, such as `ward` or `session/4f2a`: letters, digits and `.`, `_`, `-`, with
/// `/` between parts. It is safe to show, to log and to put into a path of a URL; a clone is the same
/// text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

/// Why a name cannot be a stream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a stream. A name has 1 to {max} letters, digits, `.`, `_` or `-`, with `/` between parts.",
    max = StreamName::MAX
)]
pub struct BadStreamName(String);

impl StreamName {
    /// How long a name may be.
    pub const MAX: usize = 200;

    /// The name, if it can be one.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, BadStreamName> {
        let name = name.into();
        let good_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
                && part.bytes().any(|byte| byte != b'.')
        };
        if name.len() <= Self::MAX && name.split('/').all(good_part) {
            Ok(Self(name))
        } else {
            Err(BadStreamName(name.escape_debug().take(80).collect()))
        }
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_plain_parts() {
        for name in ["ward", "session/4f2a", "a.b_c-D/1"] {
            assert_eq!(StreamName::new(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(201);
        for name in [
            "", "/", "a/", "/a", "a//b", "a b", "..", "a/../b", "ä", "a\n", &long,
        ] {
            assert!(StreamName::new(name).is_err(), "{name:?}");
        }
    }
}
