//! JSON as it was written.

use serde::Deserialize as _;
use serde::de::Error as _;
use serde_json::Value;

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
    let value = Value::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
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
    fn brackets_in_strings_nest_nothing() {
        let text = format!(r#"{{"a\"[": ["{}", "\\", []]}}"#, "[{".repeat(1000));
        assert_eq!(depth(&text), 3);
        assert!(read(&text).is_ok());
    }
}
