//! Links that sign a browser in: each holds a code that works once, for a few minutes. They are
//! known to this process alone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::Digest;

use super::file::TokensError;
use super::secret::{self, Purpose};

/// How long a code works.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);
/// How many codes are open at once; beyond, the oldest no longer works.
const MAX_OPEN: usize = 32;

/// The codes that are open.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<Vec<Code>>);

#[derive(Debug)]
struct Code {
    hash: Digest,
    /// The token of the person whom it signs in.
    token: String,
    made: Instant,
}

impl Logins {
    /// A new code for the person of this token.
    pub(crate) fn open(&self, token: &str, now: Instant) -> Result<String, TokensError> {
        let code = secret::new(Purpose::Login)?;
        let mut codes = self.codes();
        codes.retain(|code| now.duration_since(code.made) < LIFETIME);
        if codes.len() >= MAX_OPEN {
            codes.remove(0);
        }
        codes.push(Code {
            hash: Digest::of(code.as_bytes()),
            token: token.to_owned(),
            made: now,
        });
        Ok(code)
    }

    /// Uses a code up, and answers whose token it stands for.
    pub(crate) fn take(&self, code: &str, now: Instant) -> Option<String> {
        let hash = secret::hash(code)?;
        let mut codes = self.codes();
        let at = codes.iter().position(|code| code.hash == hash)?;
        let code = codes.remove(at);
        (now.duration_since(code.made) < LIFETIME).then_some(code.token)
    }

    fn codes(&self) -> MutexGuard<'_, Vec<Code>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_for_ten_minutes() {
        let logins = Logins::default();
        let start = Instant::now();
        let code = logins.open("t", start).unwrap();
        assert_eq!(logins.take("else", start), None);
        let late = start + Duration::from_secs(599);
        assert_eq!(logins.take(&code, late), Some("t".into()));
        assert_eq!(logins.take(&code, late), None);

        let code = logins.open("t", start).unwrap();
        assert_eq!(logins.take(&code, start + LIFETIME), None);
    }

    #[test]
    fn only_so_many_are_open() {
        let logins = Logins::default();
        let now = Instant::now();
        let first = logins.open("t", now).unwrap();
        for _ in 0..MAX_OPEN {
            logins.open("t", now).unwrap();
        }
        assert_eq!(logins.codes().len(), MAX_OPEN);
        assert_eq!(logins.take(&first, now), None);
    }
}
