//! Whom a frame over the limit came from, as far as its first bytes tell.
//!
//! The body is never read as a whole, but without its id nobody would learn that it failed: the
//! side that asked would wait for ever.

use crate::id::Id;

/// What the start of a body gives away.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Glimpse {
    /// It asks under this id.
    Request(Id),
    /// It answers what was asked under this id.
    Response(Id),
    /// Neither could be seen.
    Nothing,
}

/// Reads members from the front until it is clear what the body is.
pub(crate) fn glimpse(start: &[u8]) -> Glimpse {
    let mut rest = start;
    let mut id = None;
    let mut opening = b'{';
    while let Some((key, value)) = member(rest, opening) {
        opening = b',';
        match (key, id.take()) {
            (b"\"method\"" | b"\"params\"", Some(seen)) => return Glimpse::Request(seen),
            (b"\"result\"" | b"\"error\"", Some(seen)) => return Glimpse::Response(seen),
            (_, seen) => id = seen,
        }
        let Some((scalar, after)) = scalar(value) else {
            break;
        };
        if key == b"\"id\"" {
            id = std::str::from_utf8(scalar).ok().and_then(Id::from_json);
        }
        rest = after;
    }
    Glimpse::Nothing
}

/// The next member's key, and what comes behind its colon.
fn member(bytes: &[u8], opening: u8) -> Option<(&[u8], &[u8])> {
    let bytes = bytes.trim_ascii_start().strip_prefix(&[opening])?;
    let (key, rest) = scalar(bytes.trim_ascii_start())?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    key.starts_with(b"\"")
        .then_some((key, rest.trim_ascii_start()))
}

/// A string or number that ends before the bytes do, and what comes behind it.
fn scalar(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = if bytes.first() == Some(&b'"') {
        let mut at = 1;
        loop {
            match bytes.get(at)? {
                b'\\' => at += 2,
                b'"' => break at + 1,
                _ => at += 1,
            }
        }
    } else {
        let end = bytes
            .iter()
            .position(|byte| b",}]: \t\r\n".contains(byte))?;
        if bytes[..end].iter().any(|byte| b"{[\"".contains(byte)) {
            return None;
        }
        end
    };
    Some(bytes.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_body_tells_whom_to_answer() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"y"#,
                Glimpse::Request(Id::from(7)),
            ),
            (
                r#"{"jsonrpc": "2.0", "id": "a\"b", "method"  : "a"#,
                Glimpse::Request(Id::String("a\"b".into())),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"x":"y"#,
                Glimpse::Response(Id::from(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"a","params":"#,
                Glimpse::Nothing,
            ),
            (
                r#"{"params":{"id":7,"method":"a"},"id":8"#,
                Glimpse::Nothing,
            ),
            (r#"{"id":7"#, Glimpse::Nothing),
            (r#"{"id":"7"#, Glimpse::Nothing),
            (r#"{"id":null,"method":"a""#, Glimpse::Nothing),
            (r#"[{"id":7,"method":"a""#, Glimpse::Nothing),
            ("", Glimpse::Nothing),
            ("\"\\", Glimpse::Nothing),
        ];
        for (start, expected) in cases {
            assert_eq!(glimpse(start.as_bytes()), expected, "{start}");
        }
    }

    #[test]
    fn a_method_before_the_id_is_seen_too() {
        assert_eq!(
            glimpse(br#"{"id":7,"jsonrpc":"2.0","method":"a","params":"#),
            Glimpse::Request(Id::from(7))
        );
        assert_eq!(
            glimpse(br#"{"jsonrpc":"2.0","method":"a","id":7,"params":["#),
            Glimpse::Request(Id::from(7))
        );
    }
}
