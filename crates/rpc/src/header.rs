//! The header lines before a frame's body, one line at a time.

/// Bytes of header lines before one body. Real ones are below a hundred.
pub(crate) const MAX_HEADER: usize = 8 * 1024;

/// The longest text that is looked at when the stream is out of step: `Content-Length:`, blanks,
/// digits, line end. Bounding it bounds what has to be kept while searching.
pub(crate) const MAX_PLAUSIBLE: usize = 64;

const NAME: &[u8] = b"content-length";

/// Why header lines could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Not `Name: value`.
    #[error("a header line is not `Name: value`")]
    NotAHeader,
    /// The header lines ended and none was `Content-Length`.
    #[error("there is no `Content-Length` header")]
    NoLength,
    /// `Content-Length` is not a number of bytes.
    #[error("`Content-Length` is not a number of bytes")]
    BadLength,
    /// Two `Content-Length` headers that do not agree.
    #[error("two `Content-Length` headers do not agree")]
    TwoLengths,
    /// More header bytes than anyone needs.
    #[error("the headers are longer than {MAX_HEADER} bytes")]
    TooLong,
}

/// One header line, without its line end: the length it gives, or nothing where it is a header
/// that we may pass over (`Content-Type` with any charset).
pub(crate) fn line(line: &[u8]) -> Result<Option<u64>, BadHeader> {
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or(BadHeader::NotAHeader)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // A body that lost its header has colons too; no header's name has quotes or braces.
    if name.is_empty() || !name.iter().all(|byte| is_name(*byte)) {
        return Err(BadHeader::NotAHeader);
    }
    if !name.eq_ignore_ascii_case(NAME) {
        return Ok(None);
    }
    let digits = value.trim_ascii();
    // 18 digits always fit.
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadHeader::BadLength);
    }
    let length = digits
        .iter()
        .fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    Ok(Some(length))
}

/// Where the next line that could be a `Content-Length` header starts. A body ends without a line
/// end, so it may start in the middle of a line; a raw line end cannot occur inside a JSON string,
/// so text that only talks about the header does not look like one.
pub(crate) fn plausible(bytes: &[u8]) -> Option<usize> {
    let candidates = bytes.windows(NAME.len() + 1).enumerate();
    for (at, window) in candidates {
        if window[NAME.len()] != b':' || !window[..NAME.len()].eq_ignore_ascii_case(NAME) {
            continue;
        }
        let rest = &bytes[at..bytes.len().min(at + MAX_PLAUSIBLE)];
        if let Some(end) = rest.iter().position(|byte| *byte == b'\n')
            && let Ok(Some(_)) = line(&rest[..end])
        {
            return Some(at);
        }
    }
    None
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_are_read_as_vscode_jsonrpc_reads_them() {
        let read = |text: &str| line(text.as_bytes());
        assert_eq!(read("Content-Length: 12"), Ok(Some(12)));
        assert_eq!(read("content-length:12 \r"), Ok(Some(12)));
        assert_eq!(
            read("Content-Type: application/vscode-jsonrpc; charset=utf-8"),
            Ok(None)
        );
        assert_eq!(read("Content-Length: -1"), Err(BadHeader::BadLength));
        assert_eq!(read("Content-Length: 1e3"), Err(BadHeader::BadLength));
        assert_eq!(read("Content-Length:"), Err(BadHeader::BadLength));
        assert_eq!(
            read("Content-Length: 9999999999999999999"),
            Err(BadHeader::BadLength)
        );
        assert_eq!(read("hello"), Err(BadHeader::NotAHeader));
        assert_eq!(read(r#"{"jsonrpc":"2.0"}"#), Err(BadHeader::NotAHeader));
    }

    #[test]
    fn only_a_whole_content_length_line_is_plausible() {
        assert_eq!(plausible(b"{}Content-Length: 5\r\n\r\n"), Some(2));
        assert_eq!(plausible(b"{}content-length:5\n"), Some(2));
        assert_eq!(plausible(b"Content-Length: 5"), None);
        assert_eq!(plausible(b"Content-Length: x\r\n"), None);
        assert_eq!(plausible(br#""Content-Length: 5\r\n\r\n""#), None);
    }
}
