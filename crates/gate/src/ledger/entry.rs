//! An entry of the ledger: before it is written, and as it was.

use protocol::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Event, Millis, Seq};

use crate::redact::Clean;

/// What the first entry says about the text of all that come after it: it is what was hashed. Wards
/// before this one did not say it, and the first of them wrote another text.
pub(super) const TEXT: &str = "text";
/// See [`TEXT`].
pub(super) const HASHED: &str = "hashed";

/// What an entry tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// The ledger itself began.
    Begun,
    /// An action was asked for; it has begun.
    Request,
    /// It was decided whether it may.
    Decision,
    /// A person is asked.
    Approval,
    /// A person answered, or nobody did in time.
    Answer,
    /// An action ended, however it did.
    Outcome,
    /// An answer is remembered.
    Grant,
    /// A grant is no longer.
    Revoked,
    /// When the ledger was opened, it was not where its head outside said. What was expected and
    /// what was found.
    Gap,
}

impl EntryKind {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Request => "request",
            Self::Decision => "decision",
            Self::Approval => "approval",
            Self::Answer => "answer",
            Self::Outcome => "outcome",
            Self::Grant => "grant",
            Self::Revoked => "revoked",
            Self::Gap => "gap",
        }
    }
}

/// An entry that is to be written. What is in it is redacted and shortened before it is.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// What it tells of.
    pub kind: EntryKind,
    /// When.
    pub at: Millis,
    /// Who, as it was authenticated: `person:ada`, `agent:4f2a`.
    pub actor: String,
    /// In which role.
    pub role: Option<String>,
    /// In which session.
    pub session: Option<String>,
    /// In which workspace.
    pub workspace: Option<String>,
    /// Which action it is about. It is a name, and written as it is.
    pub action_id: Option<String>,
    /// What is to be known about it.
    pub data: Data,
}

/// What is to be known about an entry: any value, or what a redactor has been over already.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Redacted and shortened before it is written.
    Value(Value),
    /// Written as it is.
    Clean(Clean),
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<Clean> for Data {
    fn from(clean: Clean) -> Self {
        Self::Clean(clean)
    }
}

/// An entry as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its place, counted from 1 without gaps.
    #[schemars(with = "u64")]
    pub seq: Seq,
    /// When, in milliseconds since 1970.
    #[schemars(with = "u64")]
    pub at: Millis,
    /// What it tells of.
    pub kind: EntryKind,
    /// Who, as it was authenticated.
    pub actor: String,
    /// In which role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In which workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Which action it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// What is to be known about it.
    pub data: Value,
    /// The hash of the entry before it; of the first one, zeros.
    pub prev: Digest,
    /// SHA-256 over all of the above as canonical JSON (RFC 8785).
    pub hash: Digest,
}

impl Entry {
    /// The entry of an event; refuses what is not one.
    pub(super) fn of(event: Event) -> Result<Self, serde_json::Error> {
        serde_json::from_value(event.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_spelled_alike_in_the_column_and_in_the_entry() {
        for kind in [
            EntryKind::Begun,
            EntryKind::Request,
            EntryKind::Decision,
            EntryKind::Approval,
            EntryKind::Answer,
            EntryKind::Outcome,
            EntryKind::Grant,
            EntryKind::Revoked,
            EntryKind::Gap,
        ] {
            assert_eq!(serde_json::json!(kind), kind.as_str());
        }
    }
}
