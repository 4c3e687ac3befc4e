//! Canonical JSON (RFC 8785) of a value, without the detours that a general serializer takes: every
//! action is written down and digested this way.

use serde_json::{Map, Number, Value};

/// Beyond this, a double cannot tell neighbours apart, and canonical JSON knows only doubles.
pub(crate) const EXACT: u64 = 1 << 53;

/// Adds the value's text.
pub(crate) fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => push_number(text, number),
        Value::String(string) => push_string(text, string),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => push_object(text, fields),
    }
}

/// Adds a string's text.
pub(crate) fn push_string(text: &mut String, string: &str) {
    if is_plain(string) {
        push_word(text, string);
    } else if let Ok(quoted) = serde_json::to_string(string) {
        // Its escapes are the canonical ones.
        text.push_str(&quoted);
    }
}

/// Adds the text of a word in which there is nothing to escape: one of Ward's own, or a digest.
pub(crate) fn push_word(text: &mut String, word: &str) {
    debug_assert!(is_plain(word), "{word:?}");
    text.push('"');
    text.push_str(word);
    text.push('"');
}

/// Whether there is nothing to escape. Most strings are a few bytes long, and so are looked at eight
/// at a time.
fn is_plain(string: &str) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is less; of those that have it themselves, never.
    let less = |eight: u64, than: u64| eight.wrapping_sub(ONES * than) & !eight & HIGH;
    let special = |eight: u64| {
        let quote = eight ^ (ONES * u64::from(b'"'));
        let slash = eight ^ (ONES * u64::from(b'\\'));
        less(eight, 0x20) | less(quote, 1) | less(slash, 1)
    };
    let (eights, rest) = string.as_bytes().as_chunks();
    let mut last = *b"........";
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    let all = eights.iter().chain([&last]);
    all.fold(0, |any, eight| any | special(u64::from_ne_bytes(*eight))) == 0
}

/// Adds a whole number's text, which is exact below [`EXACT`].
pub(crate) fn push_whole(text: &mut String, number: u64) {
    use std::fmt::Write as _;
    let _ = write!(text, "{number}");
}

fn push_number(text: &mut String, number: &Number) {
    match number.as_u64() {
        Some(whole) if whole <= EXACT => push_whole(text, whole),
        _ => {
            if let Ok(canonical) = serde_json_canonicalizer::to_string(number) {
                text.push_str(&canonical);
            }
        }
    }
}

fn push_object(text: &mut String, fields: &Map<String, Value>) {
    if fields.keys().all(|key| key.is_ascii()) {
        return push_fields(text, fields.iter());
    }
    // The canonical order is that of UTF-16, which is not that of UTF-8.
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    push_fields(text, fields.into_iter());
}

fn push_fields<'a>(text: &mut String, fields: impl Iterator<Item = (&'a String, &'a Value)>) {
    text.push('{');
    for (at, (key, value)) in fields.enumerate() {
        if at > 0 {
            text.push(',');
        }
        push_string(text, key);
        text.push(':');
        push(text, value);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\u{0}-\u{7f}]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,3}|[\u{e000}-\u{10ffff}]", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn what_is_to_be_escaped_is_seen_wherever_it_stands_and_nothing_else_is() {
        for length in 0..20 {
            for byte in 0..=u8::MAX {
                for at in 0..length {
                    let mut string = vec!['a'; length];
                    string[at] = char::from(byte);
                    let string: String = string.into_iter().collect();
                    let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(is_plain(&string), !is_special, "{string:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_text_is_the_one_of_the_general_serializer(value in values()) {
            let mut text = String::new();
            push(&mut text, &value);
            prop_assert_eq!(text, serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }
}
