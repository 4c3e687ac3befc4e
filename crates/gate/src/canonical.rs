//! Digests of values: SHA-256 over canonical JSON (RFC 8785), so that two who hold the same value
//! get the same digest.

pub(crate) mod text;

use protocol::{Digest, Failure};
use serde::Serialize;
use serde_json::Value;

/// The digest of a value.
pub fn digest<T: Serialize>(value: &T) -> Result<Digest, Failure> {
    serde_json_canonicalizer::to_vec(value)
        .map(|bytes| Digest::of(&bytes))
        .map_err(|error| {
            Failure::new(
                protocol::ErrorKind::InvalidParams,
                format!("This cannot be written as canonical JSON: {error}."),
            )
        })
}

/// An object whose fields are added in the order of their names: its digest without the detour
/// over a general serializer, for what every action is digested by.
pub(crate) struct Object {
    text: String,
    last: &'static str,
}

impl Object {
    pub(crate) fn new() -> Self {
        Self {
            text: String::with_capacity(1024),
            last: "",
        }
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(self.last < name, "`{name}` is out of order");
        self.last = name;
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        text::push_word(&mut self.text, name);
        self.text.push(':');
    }

    pub(crate) fn value(mut self, name: &'static str, value: &Value) -> Self {
        self.name(name);
        text::push(&mut self.text, value);
        self
    }

    pub(crate) fn string(mut self, name: &'static str, value: &str) -> Self {
        self.name(name);
        text::push_string(&mut self.text, value);
        self
    }

    /// `null` where there is none.
    pub(crate) fn maybe(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.string(name, value),
            None => self.value(name, &Value::Null),
        }
    }

    pub(crate) fn strings(mut self, name: &'static str, values: &[String]) -> Self {
        self.name(name);
        self.text.push('[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            text::push_string(&mut self.text, value);
        }
        self.text.push(']');
        self
    }

    /// The digest of the object with all that was added.
    pub(crate) fn digest(mut self) -> Digest {
        self.text.push('}');
        Digest::of(self.text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_single_fields_has_the_digest_of_the_whole_value() {
        let strings = ["one".to_owned(), "t\"w\no".to_owned()];
        let value = serde_json::json!({"z": 1.0, "y": ["é", null, {"b": 1, "a": 2}]});
        let whole = serde_json::json!({
            "a": "\u{7f}\n", "b": value, "c": strings, "d": null, "e": [], "f": "x",
        });
        let object = Object::new()
            .string("a", "\u{7f}\n")
            .value("b", &value)
            .strings("c", &strings)
            .maybe("d", None)
            .strings("e", &[])
            .maybe("f", Some("x"));
        assert_eq!(object.digest(), digest(&whole).unwrap());
    }

    #[test]
    fn the_order_of_keys_and_the_way_numbers_are_written_make_no_difference() {
        let one: Value = serde_json::from_str(r#"{"b": 1.0, "a": [1e2, "\u00e9"]}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":[100,"é"],"b":1}"#).unwrap();
        assert_eq!(digest(&one).unwrap(), digest(&other).unwrap());
        assert_eq!(
            digest(&one).unwrap(),
            Digest::of(r#"{"a":[100,"é"],"b":1}"#.as_bytes())
        );
    }
}
