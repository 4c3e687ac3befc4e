//! The digest of a file's content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256, written `sha256:<hex>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(&Sha256::digest(bytes).into())
    }

    /// The digest with this SHA-256, for who reads the bytes piece by piece.
    #[must_use]
    pub fn from_hash(hash: &[u8; 32]) -> Self {
        const NAME: &[u8; 7] = b"sha256:";
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| DIGITS[usize::from(nibble & 15)];
        let mut text = [0; NAME.len() + 2 * 32];
        let (name, digits) = text.split_at_mut(NAME.len());
        name.copy_from_slice(NAME);
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(hash) {
            *pair = [digit(byte >> 4), digit(*byte)];
        }
        Self(String::from_utf8_lossy(&text).into_owned())
    }

    /// The digest that is written so; none where it is not written as one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (hex.len() == 64 && hex.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_as_one_is_read_as_one() {
        let digest = Digest::of(b"x");
        let text = digest.as_str();
        assert_eq!(Digest::read(text), Some(digest.clone()));
        let others = ["", &text[1..], &text[..70], &text.to_uppercase()];
        let with = |last: &str| format!("{}{last}", &text[..70]);
        for other in others
            .map(str::to_owned)
            .into_iter()
            .chain(["\"", "g", "00"].map(with))
        {
            assert_eq!(Digest::read(&other), None, "{other}");
        }
    }

    #[test]
    fn a_digest_is_sha256_in_hex_with_its_name() {
        assert_eq!(
            Digest::of(b"").as_str(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
