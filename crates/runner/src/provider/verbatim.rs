//! JSON as a provider wrote it: what goes back has its fields in the order in which they came, and
//! every digit of a number.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A value, kept as it was written.
///
/// In a history it is text: what reads a history puts values into an order of its own.
#[derive(Clone)]
pub struct Verbatim(Box<RawValue>);

impl Verbatim {
    /// As it goes back.
    pub(super) fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

impl From<Box<RawValue>> for Verbatim {
    fn from(value: Box<RawValue>) -> Self {
        Self(value)
    }
}

impl From<&Value> for Verbatim {
    fn from(value: &Value) -> Self {
        Self(raw(value))
    }
}

impl fmt::Debug for Verbatim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

impl PartialEq for Verbatim {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.get())
    }
}

impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => RawValue::from_string(text)
                .map(Self)
                .map_err(de::Error::custom),
            // Of a history that has values.
            value => Ok(Self::from(&value)),
        }
    }
}

/// The turn of a message: a list, or the one thing that a history of before has in its place.
pub(super) fn turn<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Verbatim>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Array(items) => items
            .into_iter()
            .map(|item| Verbatim::deserialize(item).map_err(de::Error::custom))
            .collect(),
        one => Ok(vec![Verbatim::from(&one)]),
    }
}

/// A piece of a request: made here, or a provider's own.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(super) enum Piece<'a> {
    Made(Value),
    Own(&'a RawValue),
}

/// The fields of an object, in the order in which they came.
#[derive(Default)]
pub(super) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Those of this text; none where it is no object.
    pub(super) fn of(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// What is in a field, taken out.
    pub(super) fn take(&mut self, key: &str) -> Option<Box<RawValue>> {
        let place = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(place).1)
    }

    /// Puts something into a field: in its place, or at the end.
    pub(super) fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.set(&key, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// What is at the end of this path of fields, as it was written.
pub(super) fn within(text: &str, path: &[&str]) -> Option<Box<RawValue>> {
    let (key, rest) = path.split_first()?;
    let found = Fields::of(text).take(key)?;
    match rest.is_empty() {
        true => Some(found),
        false => within(found.get(), rest),
    }
}

/// The items of a list, as they were written; none where it is no list.
pub(super) fn items(text: &str) -> Vec<Box<RawValue>> {
    serde_json::from_str(text).unwrap_or_default()
}

/// A value, written here.
pub(super) fn raw(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    // Nothing that is written fails: every key is text.
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
