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
