//! Browsers that are signed in, by their cookies.

use std::time::Duration;

use protocol::Digest;

use super::file::{Session, TokensError};
use super::secret::{self, Purpose};
use super::tokens::{Pass, Passed, TokenKind, Tokens, identity, now, shown};

/// How long a browser stays signed in.
pub(crate) const SESSION: Duration = Duration::from_secs(30 * 24 * 3600);
const MAX_SESSIONS: usize = 200;

impl Tokens {
    /// Whether one of these cookies is of one user of this machine, so that it has to be known who asks.
    pub(crate) fn is_a_users<'a>(&self, cookies: impl Iterator<Item = &'a str>) -> bool {
        let mut hashes = cookies.filter_map(secret::hash).peekable();
        // Most requests come with a token, and need no look at the file here.
        if hashes.peek().is_none() {
            return false;
        }
        let Some(known) = self.known_or_none() else {
            return false;
        };
        let mut sessions = hashes.filter_map(|hash| known.sessions.get(&hash));
        sessions.any(|session| session.user.is_some())
    }

    /// Whose browser this cookie is of. One that a user of this machine signed in with is nobody
    /// else's.
    #[must_use]
    pub fn recognize(&self, cookie: &str, user: impl Fn() -> Option<u32>) -> Option<Passed> {
        let hash = secret::hash(cookie)?;
        let signed_in = self.known_or_none()?.sessions.get(&hash)?.user;
        if signed_in.is_some() && signed_in != user() {
            return None;
        }
        let known = self.known_or_none()?;
        let info = known.signed_in(&hash)?;
        Some(Passed {
            identity: identity(info),
            token: Some(info.id.clone()),
            note: false,
            pass: Pass::Session(hash),
        })
    }

    /// Signs a browser in as the person of this token, and answers its cookie. It is this user's, on
    /// this machine, where that is known.
    pub(crate) fn sign_in(&self, token: &str, user: Option<u32>) -> Result<String, TokensError> {
        let now = now();
        let cookie = secret::new(Purpose::Session)?;
        let lasts = u64::try_from(SESSION.as_millis()).unwrap_or(u64::MAX);
        self.change(|written| {
            let mut infos = written.tokens.iter().map(|token| &token.info);
            if !infos.any(|info| info.id == token && info.kind == TokenKind::Person) {
                return Err(TokensError::UnknownToken(shown(token)));
            }
            let sessions = &mut written.sessions;
            sessions.retain(|session| session.expires_at > now);
            while sessions.len() >= MAX_SESSIONS {
                sessions.remove(0);
            }
            sessions.push(Session {
                hash: Digest::of(cookie.as_bytes()),
                token: token.to_owned(),
                user,
                created_at: now,
                expires_at: now.saturating_add(lasts),
            });
            Ok(())
        })?;
        Ok(cookie)
    }

    /// Signs a browser out.
    pub(crate) fn sign_out(&self, session: &Digest) -> Result<(), TokensError> {
        self.change(|written| {
            written.sessions.retain(|known| known.hash != *session);
            Ok(())
        })
    }
}
