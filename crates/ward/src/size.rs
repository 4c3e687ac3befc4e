//! Sizes as people write them: `512M`, `2G`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct ByteSize(pub(crate) u64);

/// Why a size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeError {
    #[error("`{0}` is not a size; write a number with K, M, G or T, such as 512M or 2G")]
    Unreadable(String),
    #[error("`{0}` is more than can be counted; write a smaller size, such as 2G")]
    TooLarge(String),
    #[error("a size of 0 would let nothing run; write a size such as 512M")]
    Zero,
}

/// How a size stands in a settings file: as text with a unit, or as a plain number of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(u64),
}

impl TryFrom<Written> for ByteSize {
    type Error = SizeError;

    fn try_from(written: Written) -> Result<Self, SizeError> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Bytes(0) => Err(SizeError::Zero),
            Written::Bytes(bytes) => Ok(Self(bytes)),
        }
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let unreadable = || SizeError::Unreadable(text.to_owned());
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(unreadable());
        }
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(unreadable()),
        };
        let too_large = || SizeError::TooLarge(text.to_owned());
        let number: u64 = number.parse().map_err(|_| too_large())?;
        match number.checked_mul(1 << shift) {
            None => Err(too_large()),
            Some(0) => Err(SizeError::Zero),
            Some(bytes) => Ok(Self(bytes)),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if self.0 >= 1 << shift && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_binary_units_whatever_their_case() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("1k", 1024),
            ("512M", 512 << 20),
            ("512MiB", 512 << 20),
            ("2G", 2 << 30),
            ("2gb", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for text in ["", "M", "12X", "1.5G", "-1", " 1G", "0x10", "1 G", "½G"] {
            assert_eq!(
                text.parse::<ByteSize>(),
                Err(SizeError::Unreadable(text.to_owned()))
            );
        }
        assert_eq!("0M".parse::<ByteSize>(), Err(SizeError::Zero));
        for text in ["99999999999999999999", "99999999T"] {
            assert_eq!(
                text.parse::<ByteSize>(),
                Err(SizeError::TooLarge(text.to_owned()))
            );
        }
    }

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_fits_exactly() {
        assert_eq!(ByteSize(512 << 20).to_string(), "512M");
        assert_eq!(ByteSize(1536 << 20).to_string(), "1536M");
        assert_eq!(ByteSize(1000).to_string(), "1000");
    }
}
