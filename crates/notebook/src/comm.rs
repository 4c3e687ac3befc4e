//! What a kernel and whoever shows its widgets say to each other: passed on, and never kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::free::{Unkept, check_fields};

/// The largest message, as it is written.
pub const MAX_COMM: usize = 1 << 20;
/// The longest name in one.
const MAX_NAME: usize = 200;

/// What a message does to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommKind {
    /// Opens it.
    Open,
    /// Goes over it.
    Message,
    /// Closes it.
    Close,
}

/// A message over a line between a kernel and whoever shows what it made; Jupyter calls such a line a
/// comm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comm {
    /// What it does.
    #[serde(rename = "type")]
    pub kind: CommKind,
    /// Which line.
    #[schemars(length(min = 1, max = 200))]
    pub comm_id: String,
    /// Who at the other end has it, where it is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub target_name: Option<String>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Bytes that go with it, each in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<String>,
}

/// Why a message cannot be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadComm {
    /// It does not say which line.
    #[error("`comm_id` has 1 to {MAX_NAME} bytes.")]
    Id,
    /// It does not say who has it.
    #[error(
        "`target_name` has 1 to {MAX_NAME} bytes where a comm is opened, and is left out elsewhere."
    )]
    Target,
    /// Its bytes are none.
    #[error("`buffers` are base64.")]
    Buffers,
    /// It is too large.
    #[error("A comm's message has at most {MAX_COMM} bytes, and this one has {0}.")]
    TooLarge(usize),
    /// What it says could not be read again.
    #[error("A comm's message holds {0}, which cannot be passed on.")]
    Unkept(Unkept),
}

impl Comm {
    /// How many bytes it has, as it is written.
    #[must_use]
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |written| written.len())
    }

    /// Refuses what no kernel would take, and what is too large. Answers how many bytes it has.
    pub fn check(&self) -> Result<usize, BadComm> {
        let name = 1..=MAX_NAME;
        if !name.contains(&self.comm_id.len()) {
            return Err(BadComm::Id);
        }
        let target = self.target_name.as_ref().map(String::len);
        let fits = match self.kind {
            CommKind::Open => target.is_some_and(|length| name.contains(&length)),
            CommKind::Message | CommKind::Close => target.is_none(),
        };
        if !fits {
            return Err(BadComm::Target);
        }
        let mut said = [&self.data, &self.metadata].into_iter();
        said.try_for_each(check_fields).map_err(BadComm::Unkept)?;
        match self.size() {
            size if size > MAX_COMM => Err(BadComm::TooLarge(size)),
            size => self.bytes().map(|_| size),
        }
    }

    /// The bytes that go with it.
    pub fn bytes(&self) -> Result<Vec<Vec<u8>>, BadComm> {
        let decoded = self.buffers.iter().map(|text| STANDARD.decode(text));
        decoded
            .collect::<Result<_, _>>()
            .map_err(|_| BadComm::Buffers)
    }

    /// The same message with these bytes.
    #[must_use]
    pub fn with_bytes<'a>(mut self, bytes: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let encoded = bytes.into_iter().map(|bytes| STANDARD.encode(bytes));
        self.buffers = encoded.collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::free::MAX_DEPTH;

    fn read(value: Value) -> Result<(), BadComm> {
        serde_json::from_value::<Comm>(value)
            .unwrap()
            .check()
            .map(drop)
    }

    #[test]
    fn a_message_says_which_line_it_is_for_and_an_opening_who_has_it() {
        let open = |name: &str| json!({"type": "open", "comm_id": "a", "target_name": name});
        assert_eq!(read(open("slider")), Ok(()));
        assert_eq!(read(open("")), Err(BadComm::Target));
        assert_eq!(
            read(json!({"type": "open", "comm_id": "a"})),
            Err(BadComm::Target)
        );
        assert_eq!(
            read(json!({"type": "message", "comm_id": "a", "target_name": "slider"})),
            Err(BadComm::Target)
        );
        assert_eq!(
            read(json!({"type": "close", "comm_id": ""})),
            Err(BadComm::Id)
        );
    }

    #[test]
    fn bytes_are_base64_and_all_of_it_has_a_limit() {
        let with = |buffer: &str| json!({"type": "message", "comm_id": "a", "buffers": [buffer]});
        assert_eq!(read(with("not base64")), Err(BadComm::Buffers));
        let large = "A".repeat(MAX_COMM);
        assert!(matches!(read(with(&large)), Err(BadComm::TooLarge(_))));
        let deep = (0..=MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let deep = json!({"type": "message", "comm_id": "a", "data": {"x": deep}});
        assert_eq!(read(deep), Err(BadComm::Unkept(Unkept::Deep)));
        let comm: Comm = serde_json::from_value(with("")).unwrap();
        let comm = comm.with_bytes([b"\0\xff".as_slice()]);
        assert_eq!(comm.bytes(), Ok(vec![vec![0, 255]]));
    }
}
