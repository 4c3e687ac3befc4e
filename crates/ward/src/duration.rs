//! Spans of time as people write them: `60s`, `5m`, `500ms`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// In milliseconds.
const DAY: u64 = 24 * 3_600_000;

/// A span of time that is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

/// Why a span of time could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpanError {
    #[error("`{0}` is not a time; write a number with ms, s, m, h or d, such as 500ms, 60s or 5m")]
    Unreadable(String),
    #[error("`{0}` has no unit; write {0}s for seconds or {0}m for minutes")]
    NoUnit(String),
    #[error("`{0}` is longer than can be counted; write a shorter time, such as 24h")]
    TooLong(String),
    #[error("a time of 0 would let nothing run; write a time such as 60s")]
    Zero,
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(SpanError::Unreadable(text.to_owned()));
        }
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => DAY,
            "" => return Err(SpanError::NoUnit(text.to_owned())),
            _ => return Err(SpanError::Unreadable(text.to_owned())),
        };
        let too_long = || SpanError::TooLong(text.to_owned());
        let number: u64 = number.parse().map_err(|_| too_long())?;
        match number.checked_mul(milliseconds) {
            None => Err(too_long()),
            Some(0) => Err(SpanError::Zero),
            // A century: beyond it, adding to a clock could overflow.
            Some(span) if span > 100 * 365 * DAY => Err(too_long()),
            Some(span) => Ok(Self(Duration::from_millis(span))),
        }
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Self, SpanError> {
        text.parse()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.0.as_millis();
        for (milliseconds, unit) in [
            (u128::from(DAY), "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1000, "s"),
        ] {
            if span >= milliseconds && span.is_multiple_of(milliseconds) {
                return write!(f, "{}{unit}", span / milliseconds);
            }
        }
        write!(f, "{span}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit_and_shown_in_the_largest_that_fits() {
        for (text, milliseconds, shown) in [
            ("500ms", 500, "500ms"),
            ("60s", 60_000, "1m"),
            ("90s", 90_000, "90s"),
            ("5m", 300_000, "5m"),
            ("5min", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
            ("36h", 129_600_000, "36h"),
            ("7d", 604_800_000, "7d"),
        ] {
            let span = text.parse::<Span>().unwrap();
            assert_eq!(span.0, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(span.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_an_example() {
        for (text, error) in [
            ("", SpanError::Unreadable(String::new())),
            ("s", SpanError::Unreadable("s".into())),
            ("1w", SpanError::Unreadable("1w".into())),
            ("1.5s", SpanError::Unreadable("1.5s".into())),
            ("60", SpanError::NoUnit("60".into())),
            ("0s", SpanError::Zero),
            (
                "99999999999999999999s",
                SpanError::TooLong("99999999999999999999s".into()),
            ),
            ("9999999h", SpanError::TooLong("9999999h".into())),
        ] {
            assert_eq!(text.parse::<Span>(), Err(error), "{text}");
        }
    }
}
