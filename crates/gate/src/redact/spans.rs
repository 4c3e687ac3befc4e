//! Where the secrets of a text are. What overlaps is taken out as one.

use std::borrow::Cow;
use std::ops::Range;

/// Parts of a text that are to be replaced, each with what comes in its place.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<(Range<usize>, &'static str)>);

impl Spans {
    pub(super) fn add(&mut self, range: Range<usize>, instead: &'static str) {
        if !range.is_empty() {
            self.0.push((range, instead));
        }
    }

    /// The text with all of them replaced.
    pub(super) fn replace(mut self, text: &str) -> Cow<'_, str> {
        // What was replaced before is no secret any more.
        self.0
            .retain(|(range, _)| !text.get(range.clone()).is_some_and(is_mark));
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        // Of two that begin alike, the longer one says what it is.
        self.0
            .sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for (range, instead) in self.0 {
            if range.start >= done {
                clean.push_str(text.get(done..range.start).unwrap_or_default());
                clean.push_str(instead);
            }
            done = done.max(range.end);
        }
        clean.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(clean)
    }
}

/// Whether it is what comes in the place of a secret.
fn is_mark(text: &str) -> bool {
    let inner = text
        .strip_prefix("[redacted")
        .and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| {
        inner.is_empty()
            || inner.strip_prefix(':').is_some_and(|shape| {
                shape.len() <= 16
                    && shape
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
    })
}
