//! Bytes on their way through JSON: text where they are UTF-8, base64 where they are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{ErrorKind, Failure};

/// How bytes are written in a JSON string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encoding {
    /// The text itself.
    #[default]
    #[serde(rename = "utf-8", alias = "utf8")]
    Utf8,
    /// Standard base64 with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// For serde: the default need not be written.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        *self == Self::Utf8
    }
}

/// Bytes with the way they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The text, or its base64.
    pub text: String,
    /// Which of the two.
    pub encoding: Encoding,
}

impl Data {
    /// Text where the bytes are UTF-8, base64 otherwise.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self {
                text,
                encoding: Encoding::Utf8,
            },
            Err(not_text) => Self::base64(not_text.as_bytes()),
        }
    }

    /// Base64, whatever the bytes are.
    #[must_use]
    pub fn base64(bytes: &[u8]) -> Self {
        Self {
            text: STANDARD.encode(bytes),
            encoding: Encoding::Base64,
        }
    }

    /// The bytes again; refuses what is not base64 where base64 was said.
    pub fn decode(text: String, encoding: Encoding) -> Result<Vec<u8>, Failure> {
        match encoding {
            Encoding::Utf8 => Ok(text.into_bytes()),
            Encoding::Base64 => STANDARD.decode(text.as_bytes()).map_err(|error| {
                Failure::new(
                    ErrorKind::BadEncoding,
                    format!("The content is not base64 ({error}). Send standard base64 with padding, or text without `encoding`."),
                )
            }),
        }
    }
}
