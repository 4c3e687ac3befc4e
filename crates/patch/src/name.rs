//! The names of files in a patch.

/// The two names of one file; nothing stands for /dev/null.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
    /// Whether they were written with `a/` and `b/`.
    pub(crate) prefixed: bool,
}

impl Names {
    /// Takes `a/` and `b/` away, if the patch is written with them: known, or seen from the names.
    pub(crate) fn without_prefixes(
        old: Option<String>,
        new: Option<String>,
        prefixed: Option<bool>,
    ) -> Self {
        let starts = |name: &Option<String>, prefix: &str| {
            name.as_ref().is_none_or(|name| name.starts_with(prefix))
        };
        let prefixed = prefixed.unwrap_or(true) && starts(&old, "a/") && starts(&new, "b/");
        if !prefixed {
            return Self { old, new, prefixed };
        }
        let strip = |name: Option<String>| name.map(|name| name[2..].to_owned());
        Self {
            old: strip(old),
            new: strip(new),
            prefixed,
        }
    }
}

/// The names on a line `diff --git a/x b/x`: they are the same but for their prefixes. Nothing
/// where they cannot be told apart, as in a rename, whose own lines name them.
pub(crate) fn on_git_line(text: &str) -> Option<Names> {
    let (old, new) = if text.starts_with('"') {
        let end = end_of_quoted(text)?;
        let new = text[end..].strip_prefix(' ')?;
        (read(&text[..end])?, read(new)?)
    } else {
        // Of equal length, so that the blank between them is in the middle.
        let middle = text.len().checked_sub(1)? / 2;
        let (old, new) = (text.get(..middle)?, text.get(middle..)?.strip_prefix(' ')?);
        (old.to_owned(), read(new)?)
    };
    let names = Names::without_prefixes(Some(old), Some(new), None);
    (names.old == names.new).then_some(names)
}

/// A name, without the quotes and escapes that git writes around unusual ones.
pub(crate) fn read(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let end = end_of_quoted(text)?;
    if end != text.len() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = text[1..end - 1].bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            quoted @ (b'"' | b'\\') => quoted,
            first @ b'0'..=b'3' => {
                let digit = |byte: u8| matches!(byte, b'0'..=b'7').then(|| byte - b'0');
                let (second, third) = (digit(rest.next()?)?, digit(rest.next()?)?);
                (first - b'0') * 64 + second * 8 + third
            }
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Where the name that starts with a quote ends, after its closing quote.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(old: &str, new: &str, prefixed: bool) -> Option<Names> {
        Some(Names {
            old: Some(old.to_owned()),
            new: Some(new.to_owned()),
            prefixed,
        })
    }

    #[test]
    fn the_two_names_of_a_git_line_are_told_apart() {
        assert_eq!(on_git_line("a/x b/x"), names("x", "x", true));
        assert_eq!(
            on_git_line("a/with blank b/with blank"),
            names("with blank", "with blank", true)
        );
        assert_eq!(on_git_line("src/x src/x"), names("src/x", "src/x", false));
        assert_eq!(
            on_git_line(r#""a/\303\244\t" "b/\303\244\t""#),
            names("ä\t", "ä\t", true)
        );
        assert_eq!(on_git_line("a/old b/newer"), None);
        assert_eq!(on_git_line(""), None);
        assert_eq!(on_git_line("äää"), None);
    }

    #[test]
    fn a_quoted_name_that_is_broken_is_none() {
        for broken in [
            r#"""#,
            r#""x"#,
            r#""\"#,
            r#""\9""#,
            r#""\1""#,
            r#""x"y"#,
            r#""\377""#,
        ] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
