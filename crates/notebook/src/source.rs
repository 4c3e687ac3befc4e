//! The source of a cell as it is edited: a piece of text is replaced by another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A piece of text that is replaced. Offsets are counted in UTF-16 units, as editors do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Splice {
    /// Where.
    pub at: u32,
    /// How much is taken away.
    #[serde(default)]
    pub delete: u32,
    /// What is put there.
    #[serde(default)]
    pub insert: String,
}

impl Splice {
    /// The text with it. What is beyond the end is the end; half of a character is none of it.
    pub fn apply(&self, text: &mut String) {
        let start = byte_of(text, self.at);
        let end = byte_of(text, self.at.saturating_add(self.delete)).max(start);
        text.replace_range(start..end, &self.insert);
    }

    /// The splice as it is meant where `other` came first. At one place, the other's text is before
    /// this one's.
    #[must_use]
    pub fn after(&self, other: &Self) -> Self {
        self.moved(other, Side::Behind)
    }

    /// The splice as it is meant where `other` came first, with this one's text before the other's
    /// at one place: the other half of [`Splice::after`].
    #[must_use]
    pub fn before(&self, other: &Self) -> Self {
        self.moved(other, Side::InFront)
    }

    fn moved(&self, other: &Self, side: Side) -> Self {
        let grown = units(&other.insert);
        let (from, to) = (other.at, other.at.saturating_add(other.delete));
        let end = self.at.saturating_add(self.delete);
        // Where an offset is, once the other's piece is gone and its text is there.
        let shift = |offset: u32, behind: bool| {
            if offset < from || (offset == from && !behind) {
                offset
            } else if offset < to {
                from + if behind { grown } else { 0 }
            } else {
                (offset - other.delete).saturating_add(grown)
            }
        };
        let behind = match side {
            Side::Behind => true,
            Side::InFront => false,
        };
        let at = shift(self.at, behind || self.at > from);
        let end = match self.delete {
            0 => at,
            // What the other put in at its edge is not taken away by one who did not see it.
            _ => shift(end, end > to).max(at),
        };
        Self {
            at,
            delete: end - at,
            insert: self.insert.clone(),
        }
    }
}

/// Whose text comes first at one place.
enum Side {
    Behind,
    InFront,
}

pub(crate) fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

/// The byte at an offset in UTF-16 units.
fn byte_of(text: &str, offset: u32) -> usize {
    let mut seen: u32 = 0;
    for (at, char) in text.char_indices() {
        if seen >= offset {
            return at;
        }
        seen += if char.len_utf16() == 2 { 2 } else { 1 };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn splice(at: u32, delete: u32, insert: &str) -> Splice {
        Splice {
            at,
            delete,
            insert: insert.to_owned(),
        }
    }

    fn applied(text: &str, splices: &[&Splice]) -> String {
        let mut text = text.to_owned();
        for splice in splices {
            splice.apply(&mut text);
        }
        text
    }

    #[test]
    fn offsets_are_counted_as_editors_count_them() {
        assert_eq!(applied("a😀b", &[&splice(3, 1, "c")]), "a😀c");
        assert_eq!(applied("a😀b", &[&splice(99, 99, "c")]), "a😀bc");
        assert_eq!(applied("", &[&splice(0, 5, "x")]), "x");
    }

    #[test]
    fn what_another_put_in_at_the_edge_is_not_taken_away_unseen() {
        let mine = splice(0, 5, "");
        let theirs = splice(5, 0, "!");
        assert_eq!(applied("hello", &[&theirs, &mine.after(&theirs)]), "!");
    }

    proptest! {
        #[test]
        fn two_insertions_lead_to_one_text_in_either_order(
            text in "[a-z]{0,8}", a in 0_u32..9, b in 0_u32..9, x in "[A-Z]{1,3}", y in "[0-9]{1,3}",
        ) {
            let a = splice(a.min(units(&text)), 0, &x);
            let b = splice(b.min(units(&text)), 0, &y);
            let one = applied(&text, &[&a, &b.after(&a)]);
            let other = applied(&text, &[&b, &a.before(&b)]);
            prop_assert_eq!(one, other);
        }

        #[test]
        fn no_splice_panics_and_all_text_that_was_put_in_is_there(
            text in "\\PC{0,8}", a in 0_u32..12, d in 0_u32..12, b in 0_u32..12, e in 0_u32..12,
        ) {
            let first = splice(a, d, "FIRST");
            let second = splice(b, e, "SECOND").after(&first);
            let result = applied(&text, &[&first, &second]);
            prop_assert!(result.contains("SECOND"));
        }
    }
}
