//! Values that mean the same wherever they are read.

use serde_json::Value;

/// A field of this name, where it comes first, is no field to the library that reads our JSON: what
/// is in it is read in the place of the whole object, or the reading fails. Names are put in order
/// when they are written, so it comes first sooner or later.
const HIDDEN: &str = "$serde_json::private::RawValue";

/// Whether a value can be written and is the same when it is read again. What comes from outside and
/// is kept has to be.
#[must_use]
pub fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => {
            fields.keys().all(|name| is_plain_name(name)) && fields.values().all(is_plain)
        }
    }
}

/// The same of a field's name alone.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    name != HIDDEN
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_be_read_as_something_else_is_not_plain_however_deep() {
        assert!(is_plain(
            &json!({"a": [1, "$serde_json::private::RawValue", {"b": null}]})
        ));
        for value in [
            json!({HIDDEN: "1"}),
            json!({"a": [1, {"b": {"a": 1, HIDDEN: 2}}]}),
        ] {
            assert!(!is_plain(&value), "{value}");
            let read = serde_json::from_str::<Value>(&value.to_string()).ok();
            assert_ne!(read, Some(value));
        }
    }
}
