//! Tokens that Ward lends to the runtimes that it starts: each is for one notebook, and for what its
//! runtime has to do there. They are in memory alone, and end with whoever holds them.

use std::sync::{Arc, PoisonError};

use protocol::Digest;

use super::file::TokensError;
use super::secret::{self, Purpose};
use super::tokens::Tokens;

/// What a token is lent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loan {
    /// Whose runtime it is.
    pub(super) person: String,
    /// The one notebook that it is for.
    pub(super) notebook: String,
}

/// A token that holds for as long as this is there.
pub struct Lent {
    tokens: Arc<Tokens>,
    hash: Digest,
    secret: String,
}

impl Lent {
    /// Lends one to a runtime of this person's, for one notebook. It ends before, where the person has
    /// no token any more.
    pub fn to(tokens: &Arc<Tokens>, person: &str, notebook: &str) -> Result<Self, TokensError> {
        let secret = secret::new(Purpose::Runtime)?;
        let hash = Digest::of(secret.as_bytes());
        let mut lent = tokens.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let loan = Loan {
            person: person.to_owned(),
            notebook: notebook.to_owned(),
        };
        lent.insert(hash.clone(), loan);
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
    use super::super::tokens::Identity;
    use super::*;

    #[test]
    fn a_lent_token_holds_while_it_is_held_and_while_the_person_is_known() {
        let config = tempfile::tempdir().unwrap();
        let tokens = Arc::new(Tokens::open(config.path()).unwrap());
        let (id, _) = tokens.add_person("ada").unwrap();
        let lent = Lent::to(&tokens, "ada", "4f2a").unwrap();
        let passed = tokens.authenticate(lent.secret()).unwrap();
        assert_eq!(
            passed.identity,
            Identity::Lent {
                person: "ada".to_owned(),
                notebook: "4f2a".to_owned(),
            }
        );
        assert!(tokens.holds(&passed.pass));
        assert_eq!(tokens.list().unwrap().len(), 1, "it is in no file");
        let other = Lent::to(&tokens, "eve", "4f2a").unwrap();
        assert_eq!(
            tokens.authenticate(other.secret()),
            None,
            "nobody knows eve"
        );
        let secret = lent.secret().to_owned();
        drop(lent);
        assert_eq!(tokens.authenticate(&secret), None);
        assert!(!tokens.holds(&passed.pass));
        let again = Lent::to(&tokens, "ada", "4f2a").unwrap();
        tokens.revoke(&id).unwrap();
        assert_eq!(tokens.authenticate(again.secret()), None);
    }
}
