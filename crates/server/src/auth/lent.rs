//! Tokens that Ward lends to programs of its own: they are in memory alone, and end with whoever
//! holds them.

use std::sync::{Arc, PoisonError};

use protocol::Digest;

use super::file::TokensError;
use super::secret::{self, Purpose};
use super::tokens::Tokens;

/// A token that holds for as long as this is there.
pub struct Lent {
    tokens: Arc<Tokens>,
    hash: Digest,
    secret: String,
}

impl Lent {
    /// Lends one to act as this person. It ends before, where the person has no token any more.
    pub fn to(tokens: &Arc<Tokens>, person: &str) -> Result<Self, TokensError> {
        let secret = secret::new(Purpose::Person)?;
        let hash = Digest::of(secret.as_bytes());
        let mut lent = tokens.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.insert(hash.clone(), person.to_owned());
        drop(lent);
        Ok(Self {
            tokens: Arc::clone(tokens),
            hash,
            secret,
        })
    }

    /// The token.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let lent = self.tokens.lent.lock();
        lent.unwrap_or_else(PoisonError::into_inner)
            .remove(&self.hash);
    }
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use gate::Actor;

    use super::super::tokens::Identity;
    use super::*;

    #[test]
    fn a_lent_token_holds_while_it_is_held_and_while_the_person_is_known() {
        let config = tempfile::tempdir().unwrap();
        let tokens = Arc::new(Tokens::open(config.path()).unwrap());
        let (id, _) = tokens.add_person("ada").unwrap();
        let lent = Lent::to(&tokens, "ada").unwrap();
        let passed = tokens.authenticate(lent.secret()).unwrap();
        assert_eq!(
            passed.identity,
            Identity::Actor(Actor::Person("ada".to_owned()))
        );
        assert!(tokens.holds(&passed.pass));
        assert_eq!(tokens.list().unwrap().len(), 1, "it is in no file");
        let other = Lent::to(&tokens, "eve").unwrap();
        assert_eq!(
            tokens.authenticate(other.secret()),
            None,
            "nobody knows eve"
        );
        let secret = lent.secret().to_owned();
        drop(lent);
        assert_eq!(tokens.authenticate(&secret), None);
        assert!(!tokens.holds(&passed.pass));
        let again = Lent::to(&tokens, "ada").unwrap();
        tokens.revoke(&id).unwrap();
        assert_eq!(tokens.authenticate(again.secret()), None);
    }
}
