//! Digests of values: SHA-256 over canonical JSON (RFC 8785), so that two who hold the same value
//! get the same digest.

use protocol::{Digest, Failure};
use serde::Serialize;

/// The digest of a value.
pub fn digest<T: Serialize>(value: &T) -> Result<Digest, Failure> {
    serde_json_canonicalizer::to_vec(value)
        .map(|bytes| Digest::of(&bytes))
        .map_err(|error| {
            Failure::new(
                protocol::ErrorKind::InvalidParams,
                format!("This cannot be written as canonical JSON: {error}."),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_and_the_way_numbers_are_written_make_no_difference() {
        let one: serde_json::Value =
            serde_json::from_str(r#"{"b": 1.0, "a": [1e2, "\u00e9"]}"#).unwrap();
        let other: serde_json::Value = serde_json::from_str(r#"{"a":[100,"é"],"b":1}"#).unwrap();
        assert_eq!(digest(&one).unwrap(), digest(&other).unwrap());
        assert_eq!(
            digest(&one).unwrap(),
            Digest::of(r#"{"a":[100,"é"],"b":1}"#.as_bytes())
        );
    }
}
