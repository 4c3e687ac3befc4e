//! JSON as it was written.

use serde::de::{self, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// So deep is nothing that Ward writes: what comes in has at most 128 levels, and is put inside of a
/// few others. Deeper than that somebody else wrote it, and reading it could take the whole stack.
const DEEPEST: usize = 256;

/// Reads what was written, also where it is nested deeper than whoever took it in let it be: it was
/// put inside of something else since, and an event that cannot be read again closes its whole stream.
pub(crate) fn read(text: &str) -> serde_json::Result<Value> {
    if depth(text) > DEEPEST {
        return Err(serde_json::Error::custom(format!(
            "it is nested deeper than {DEEPEST} levels"
        )));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Plain.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// A value with every field that is there: the library's own reading takes one name to mean that its
/// text stands for the whole object, and whoever chose the name would close the stream.
struct Plain;

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            object.insert(name, fields.next_value_seed(Self)?);
        }
        Ok(object.into())
    }
}

/// How deep lists and objects stand inside each other; brackets in strings are none.
fn depth(text: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_here_wrote_is_refused_before_it_takes_the_stack() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(DEEPEST)).is_ok());
        for levels in [DEEPEST + 1, 1_000_000] {
            let refused = read(&nested(levels)).unwrap_err().to_string();
            assert_eq!(refused, "it is nested deeper than 256 levels");
        }
    }

    #[test]
    fn a_name_that_means_something_to_the_library_is_a_name() {
        let text = r#"{"$serde_json::private::RawValue":"zzz","a":[1,-2,2.5,true,null,"b"]}"#;
        let read = read(text).unwrap();
        assert_eq!(read["$serde_json::private::RawValue"], "zzz");
        assert_eq!(read.to_string(), text);
    }

    #[test]
    fn brackets_in_strings_nest_nothing() {
        let text = format!(r#"{{"a\"[": ["{}", "\\", []]}}"#, "[{".repeat(1000));
        assert_eq!(depth(&text), 3);
        assert!(read(&text).is_ok());
    }
}
