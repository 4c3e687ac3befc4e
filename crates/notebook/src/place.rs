//! Where a cell is among the others: a fractional index, so that one is put between two others
//! without moving any.
//!
//! Of our own, because the crate at hand counts below zero once a hundred cells were put before the
//! first.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The digits, in the order of their bytes.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LAST: usize = DIGITS.len() - 1;
/// The longest place.
const MAX: usize = 1024;

/// A place: digits behind a point, without a zero at the end. Places are in the order of their text.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Place(String);

/// Why something cannot be a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be a place. A place has 1 to {MAX} letters and digits, and does not end in `0`."
)]
pub struct BadPlace(String);

impl Place {
    /// The place, if it can be one.
    pub fn new(text: impl Into<String>) -> Result<Self, BadPlace> {
        let text = text.into();
        let good = (1..=MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !text.ends_with('0');
        match good {
            true => Ok(Self(text)),
            false => Err(BadPlace(text.escape_debug().take(80).collect())),
        }
    }

    /// A place after one and before another; [`None`] leaves that side open. Where `after` is not
    /// before `before`, or there is no room left between them, it is right after `after`.
    #[must_use]
    pub fn between(after: Option<&Self>, before: Option<&Self>) -> Self {
        let digits = match (after, before) {
            (None, None) => vec![DIGITS.len() / 2],
            (Some(after), None) => next(&after.digits()),
            (None, Some(before)) => previous(&before.digits()),
            (Some(after), Some(before)) if after < before => {
                middle(&after.digits(), &before.digits())
            }
            (Some(after), Some(_)) => next(&after.digits()),
        };
        Self::of(&digits)
    }

    /// So many places in order, for the cells of a whole notebook: none is long.
    #[must_use]
    pub fn spread(count: usize) -> Vec<Self> {
        let mut width = 1;
        while DIGITS.len().pow(width) <= count + 1 {
            width += 1;
        }
        let step = DIGITS.len().pow(width) / (count + 1);
        let place = |number: usize| {
            let mut rest = number * step;
            let mut digits = Vec::new();
            for _ in 0..width {
                digits.push(rest % DIGITS.len());
                rest /= DIGITS.len();
            }
            digits.reverse();
            Self::of(&digits)
        };
        (1..=count).map(place).collect()
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn digits(&self) -> Vec<usize> {
        let value = |byte| DIGITS.binary_search(&byte).unwrap_or(0);
        self.0.bytes().map(value).collect()
    }

    fn of(digits: &[usize]) -> Self {
        let text = digits.iter().map(|&digit| char::from(DIGITS[digit]));
        let text: String = text.collect();
        Self(text.trim_end_matches('0').to_owned())
    }
}

/// The shortest way on from a place.
fn next(digits: &[usize]) -> Vec<usize> {
    let mut digits = digits.to_vec();
    match digits.iter().position(|&digit| digit < LAST) {
        Some(at) => {
            digits.truncate(at + 1);
            digits[at] += 1;
        }
        None => digits.push(1),
    }
    digits
}

/// The shortest way back from a place, which is never all zeros.
fn previous(digits: &[usize]) -> Vec<usize> {
    let mut digits = digits.to_vec();
    let Some(at) = digits.iter().position(|&digit| digit > 0) else {
        return digits;
    };
    digits.truncate(at + 1);
    digits[at] -= 1;
    if digits[at] == 0 {
        digits.push(LAST);
    }
    digits
}

/// Between two that are in order.
fn middle(low: &[usize], high: &[usize]) -> Vec<usize> {
    let mut digits = Vec::new();
    let mut high = Some(high);
    for at in 0.. {
        let below = low.get(at).copied().unwrap_or(0);
        let above = match high {
            Some(high) => high.get(at).copied().unwrap_or(0),
            None => DIGITS.len(),
        };
        match above.saturating_sub(below) {
            0 => digits.push(below),
            1 => {
                digits.push(below);
                // Whatever follows, it stays below the upper one from here on.
                high = None;
            }
            gap => {
                digits.push(below + gap / 2);
                break;
            }
        }
    }
    digits
}

impl TryFrom<String> for Place {
    type Error = BadPlace;

    fn try_from(text: String) -> Result<Self, BadPlace> {
        Self::new(text)
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> impl Strategy<Value = Place> {
        "[0-9A-Za-z]{0,4}[1-9A-Za-z]".prop_map(|text| Place::new(text).unwrap())
    }

    proptest! {
        #[test]
        fn between_two_places_there_is_always_another(a in place(), b in place()) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let next = Place::between(Some(&low), None);
            prop_assert!(low < next && Place::new(next.as_str()).is_ok());
            let previous = Place::between(None, Some(&low));
            prop_assert!(previous < low && Place::new(previous.as_str()).is_ok());
            prop_assume!(low < high);
            let middle = Place::between(Some(&low), Some(&high));
            prop_assert!(low < middle && middle < high, "{low} {middle} {high}");
            prop_assert!(Place::new(middle.as_str()).is_ok());
        }
    }

    #[test]
    fn a_thousand_cells_on_either_side_keep_their_places_short() {
        let first = Place::between(None, None);
        let (mut low, mut high) = (first.clone(), first);
        for _ in 0..1000 {
            let before = Place::between(None, Some(&low));
            assert!(before < low);
            low = before;
            let after = Place::between(Some(&high), None);
            assert!(after > high);
            high = after;
        }
        assert!(low.as_str().len() < 20, "{low}");
        assert!(high.as_str().len() < 20, "{high}");
    }

    #[test]
    fn the_places_of_a_whole_notebook_are_in_order_and_short() {
        for count in [0, 1, 60, 61, 62, 5000] {
            let places = Place::spread(count);
            assert_eq!(places.len(), count);
            assert!(places.is_sorted_by(|a, b| a < b));
            assert!(places.iter().all(|place| place.as_str().len() <= 3));
        }
    }

    #[test]
    fn what_is_no_place_is_refused_when_it_is_read() {
        for text in ["", "0", "a0", "a b", "é", &"1".repeat(1025)] {
            assert!(Place::new(text).is_err(), "{text:?}");
        }
    }
}
