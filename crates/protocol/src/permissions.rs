//! The permission bits of a file or folder.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Who may read, write and execute, written in octal: `644`, `755`. No other bits can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Permissions(u32);

impl Permissions {
    /// Those of a file's mode, without what else is in it.
    #[must_use]
    pub fn of(mode: u32) -> Self {
        Self(mode & 0o777)
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl std::fmt::Display for Permissions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

impl From<Permissions> for String {
    fn from(permissions: Permissions) -> Self {
        permissions.to_string()
    }
}

impl TryFrom<String> for Permissions {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = match text.strip_prefix('0') {
            Some(digits) if digits.len() == 3 => digits,
            Some(_) | None => &text,
        };
        let octal = digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let bits = octal.then(|| u32::from_str_radix(digits, 8).ok());
        bits.flatten()
            .map(Self)
            .ok_or_else(|| "permissions are three octal digits, such as \"644\"".to_owned())
    }
}

impl JsonSchema for Permissions {
    fn schema_name() -> Cow<'static, str> {
        "Permissions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^0?[0-7]{3}$",
            "description": "Who may read, write and execute, in octal: `644`, `755`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_three_octal_digits_and_nothing_else() {
        let read = |text: &str| Permissions::try_from(text.to_owned()).ok();
        assert_eq!(read("644"), Some(Permissions(0o644)));
        assert_eq!(read("0755"), Some(Permissions(0o755)));
        assert_eq!(read("007"), Some(Permissions(0o007)));
        for wrong in [
            "", "64", "4755", "04755", "888", "+64", "rw-", "0o644", "６44",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(Permissions::of(0o104_644).to_string(), "644");
        assert_eq!(Permissions(0o7).to_string(), "007");
    }
}
