//! Names and paths of the system's, which need not be UTF-8, in JSON.
//!
//! Text stands as it is. What is not UTF-8 follows a NUL, which no name can hold, one character a
//! byte.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name, a path or an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OsText(pub(crate) OsString);

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

/// For `#[serde(with)]` on whatever a path or a name is.
pub(crate) fn serialize<S: Serializer>(
    text: &impl AsRef<OsStr>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = text.as_ref();
    match text.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => {
            let bytes = text.as_bytes().iter().map(|byte| char::from(*byte));
            serializer.serialize_str(&std::iter::once('\0').chain(bytes).collect::<String>())
        }
    }
}

/// For `#[serde(with)]` on whatever can be made of a name.
pub(crate) fn deserialize<'de, T: From<OsString>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let Some(bytes) = text.strip_prefix('\0') else {
        return Ok(OsString::from(text).into());
    };
    let bytes: Result<Vec<u8>, _> = bytes.chars().map(u8::try_from).collect();
    bytes
        .map(|bytes| OsString::from_vec(bytes).into())
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_comes_back_as_it_was_and_text_stays_readable() {
        let text = OsText("grün".into());
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"grün\"");
        for name in [&b"grun"[..], "grün".as_bytes(), b"\xff\xfe/x", b""] {
            let name = OsText(OsString::from_vec(name.to_vec()));
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), name);
        }
    }
}
