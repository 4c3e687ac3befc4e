//! Keeps what is written down short, and such that it can be read back exactly.

use protocol::Digest;
use serde_json::{Value, json};

use super::Redactor;

/// A longer string is written as its digest, its length and its start.
pub(super) const LONGEST: usize = 4 << 10;
/// How many characters of it are shown.
const START: usize = 200;
/// How much of it is looked through for secrets before it is cut there, so that none is cut in two.
const LOOKED: usize = 16 << 10;
/// How large a value may be in all, and how large a part may stay where it is larger.
const LARGEST: usize = 64 << 10;
const PART: usize = 4 << 10;
/// What is nested deeper is written as text: there is a limit to what can be read back.
pub(super) const DEEPEST: usize = 48;
/// Beyond this, canonical JSON cannot tell neighbours apart: they are written as text.
pub(super) const EXACT: u64 = 1 << 53;

impl Redactor {
    /// Cuts what is long in a value. A long string becomes `{sha256, bytes, start}`: the digest and
    /// length of all of it, and its first characters without secrets.
    pub fn shorten(&self, value: &mut Value) {
        let size = self.shorten_at(value, 0);
        if size <= LARGEST {
            return;
        }
        match value {
            Value::Object(fields) => {
                let parts = fields.values_mut();
                let left: usize = parts.map(|part| self.shorten_part(part)).sum();
                if left > LARGEST {
                    self.digest_of(value);
                }
            }
            _ => self.digest_of(value),
        }
    }

    /// A part of a value that is too large; how large it is then.
    fn shorten_part(&self, part: &mut Value) -> usize {
        let size = part.to_string().len();
        if size <= PART {
            return size;
        }
        self.digest_of(part);
        START
    }

    /// Roughly how large it is then.
    fn shorten_at(&self, value: &mut Value, depth: usize) -> usize {
        match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(number) => {
                let whole = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
                if whole.is_some_and(|whole| whole > EXACT) {
                    *value = number.to_string().into();
                }
                20
            }
            Value::String(text) => {
                if text.len() <= LONGEST {
                    return text.len() + 2;
                }
                *value = self.start_of(text, text);
                START
            }
            Value::Array(_) | Value::Object(_) if depth == DEEPEST => {
                self.digest_of(value);
                START
            }
            Value::Array(items) => {
                let sizes = items
                    .iter_mut()
                    .map(|item| self.shorten_at(item, depth + 1));
                sizes.sum()
            }
            Value::Object(fields) => {
                let sizes = fields
                    .iter_mut()
                    .map(|(name, field)| name.len() + self.shorten_at(field, depth + 1));
                sizes.sum()
            }
        }
    }

    /// Replaces a value by the digest of its text.
    fn digest_of(&self, value: &mut Value) {
        let text = value.to_string();
        // As text, it would no longer show which names its secrets stand beside.
        self.redact(value);
        *value = self.start_of(&text, &value.to_string());
    }

    fn start_of(&self, text: &str, shown: &str) -> Value {
        let looked = shown.floor_char_boundary(LOOKED + self.longest);
        let start = self.redact_str(shown.get(..looked).unwrap_or_default());
        let start: String = start.chars().take(START).collect();
        json!({
            "sha256": Digest::of(text.as_bytes()),
            "bytes": text.len(),
            "start": start,
        })
    }
}
