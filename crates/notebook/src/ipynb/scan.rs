//! Finds in the text of a file what [`numbers`](super::numbers) is about, before anybody reads it as
//! JSON. It holds nothing against text that is none: whoever reads it then will say so.

/// The mark of [`numbers`](super::numbers), character by character, as it is and as JSON may have it.
const MARKS: [[&str; 2]; 2] = [["\u{2063}", "\\u2063"], ["\u{2062}", "\\u2062"]];
/// How deep JSON is still read. All that a file may hold is far from it, in whatever it lies.
const DEEPEST: usize = 127;

/// What is found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A number, or what else is of letters and digits, where a value can be.
    Word {
        /// Where it begins.
        at: usize,
        /// As it is written.
        written: &'a str,
    },
    /// A string, where a value can be, that begins with the mark, in whichever way that is written.
    Marked {
        /// Where its text begins, behind the quote.
        at: usize,
    },
    /// JSON that is nested too deep to be read.
    Deep {
        /// In which line, counted from 1.
        line: usize,
    },
}

/// All of it in a text, in its order.
pub(super) fn found(text: &str) -> impl Iterator<Item = Found<'_>> {
    let mut scan = Scan {
        text,
        at: 0,
        depth: 0,
    };
    std::iter::from_fn(move || scan.next())
}

/// Whether this is a number as JSON has them.
pub(super) fn is_number(written: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = written.strip_prefix('-').unwrap_or(written);
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (number, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<Found<'a>> {
        loop {
            let at = self.at;
            match self.byte(at)? {
                b'"' => {
                    self.at = self.string_end(at + 1)?;
                    if self.begins_with_mark(at + 1) && !self.is_name() {
                        return Some(Found::Marked { at: at + 1 });
                    }
                }
                b'[' | b'{' => {
                    self.at += 1;
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Some(Found::Deep {
                            line: 1 + self.before(at).matches('\n').count(),
                        });
                    }
                }
                b']' | b'}' => {
                    self.at += 1;
                    self.depth = self.depth.saturating_sub(1);
                }
                byte if is_of_a_word(byte) => {
                    while self.byte(self.at).is_some_and(is_of_a_word) {
                        self.at += 1;
                    }
                    // As a name it would be none, and must not become one.
                    if !self.is_name() {
                        let written = self.text.get(at..self.at).unwrap_or_default();
                        return Some(Found::Word { at, written });
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn before(&self, at: usize) -> &'a str {
        self.text.get(..at).unwrap_or_default()
    }

    /// Where a string is over whose text begins here, behind its quote.
    fn string_end(&self, mut at: usize) -> Option<usize> {
        loop {
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn begins_with_mark(&self, at: usize) -> bool {
        let mut rest = self.text.get(at..).unwrap_or_default();
        MARKS.iter().all(|ways| {
            let after = ways.iter().find_map(|way| rest.strip_prefix(way));
            rest = after.unwrap_or_default();
            after.is_some()
        })
    }

    /// Whether what was just passed is the name of a field: in JSON that alone stands before a colon.
    fn is_name(&self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let mut rest = rest.iter().filter(|byte| !b" \t\r\n".contains(*byte));
        rest.next() == Some(&b':')
    }
}

fn is_of_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}
