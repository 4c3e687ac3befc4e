//! The token that a client on a port has to know.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A token. It is never printed by accident: `Debug` hides it.
#[derive(Clone)]
pub struct Token {
    text: String,
    digest: [u8; 32],
}

/// Why something cannot be a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Too easy to guess.
    #[error(
        "The token is shorter than {MIN_LENGTH} characters. Give a longer one, or none: then one is made."
    )]
    TooShort,
    /// The system has no randomness to give.
    #[error(
        "No token could be made: the system gave no random bytes ({0}). Give one with --token."
    )]
    NoRandomness(String),
}

/// Whoever can reach the port can try; this is beyond trying.
const MIN_LENGTH: usize = 16;

impl Token {
    /// The token that a person chose.
    pub fn new(text: String) -> Result<Self, TokenError> {
        if text.chars().count() < MIN_LENGTH {
            return Err(TokenError::TooShort);
        }
        Ok(Self::of(text))
    }

    /// A new one, with 256 random bits.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandomness(error.to_string()))?;
        Ok(Self::of(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token itself, to be shown to the person who started Ward.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether this is it. Takes as long for a near miss as for a far one.
    #[must_use]
    pub fn is(&self, given: &str) -> bool {
        // Digests are equally long, so that not even the length is told by the time it takes.
        let given: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        self.digest.ct_eq(&given).into()
    }

    fn of(text: String) -> Self {
        Self {
            digest: Sha256::digest(text.as_bytes()).into(),
            text,
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_taken() {
        let token = Token::new("0123456789abcdef".into()).unwrap();
        assert!(token.is("0123456789abcdef"));
        for wrong in [
            "",
            "0123456789abcdeF",
            "0123456789abcdef ",
            "0123456789abcde",
        ] {
            assert!(!token.is(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_short_token_is_refused() {
        assert!(matches!(
            Token::new("123456789012345".into()),
            Err(TokenError::TooShort)
        ));
    }

    #[test]
    fn random_tokens_differ_and_are_not_printed() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(!one.is(other.reveal()));
        assert_eq!(one.reveal().len(), 43);
        assert_eq!(format!("{one:?}"), "Token(hidden)");
    }
}
