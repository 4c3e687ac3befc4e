//! Who an agent is, and what it announces.

use notebook::{Capabilities, SessionId};
use serde::{Deserialize, Serialize};
use store::Seq;

/// The longest name of a runtime or of its type.
const LONGEST: usize = 40;

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOptions {
    /// Which runtime, in its own words, such as `browser-echo`.
    pub runtime_id: String,
    /// What it runs, such as `python`.
    pub runtime_type: String,
    /// The person whose it is: the id of who authenticated, never made up.
    pub client_id: String,
    /// The session that it goes on with, such as after a page was loaded again; else it gets a new
    /// one.
    pub session_id: Option<SessionId>,
}

/// Why an agent cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOptions {
    /// It is not whose it says it is.
    #[error(
        "The client id is `{said}`, but you are signed in as `{user}`. Give your own id: --client-id {user}"
    )]
    NotYou {
        /// The id that was given.
        said: String,
        /// Who authenticated.
        user: String,
    },
    /// A name cannot be one.
    #[error(
        "`{name}` cannot be a runtime's {what}. It has 1 to {LONGEST} letters, digits, `_` or `-`; a type has small letters only."
    )]
    Name {
        /// Id or type.
        what: &'static str,
        /// What was given.
        name: String,
    },
    /// Nothing would run its cells.
    #[error("The agent has no handler. Give it one with `on_execution` before it starts.")]
    NoHandler,
}

impl BadOptions {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotYou { .. } => "forbidden",
            Self::Name { .. } | Self::NoHandler => "invalid_params",
        }
    }
}

impl AgentOptions {
    /// Refuses what cannot be: `user` is who authenticated, by the server's word.
    pub fn check(&self, user: &str) -> Result<(), BadOptions> {
        if self.client_id != user {
            return Err(BadOptions::NotYou {
                said: self.client_id.escape_debug().take(80).collect(),
                user: user.to_owned(),
            });
        }
        named("id", &self.runtime_id)?;
        named("type", &self.runtime_type)?;
        match self
            .runtime_type
            .bytes()
            .any(|byte| byte.is_ascii_uppercase() || byte == b'.')
        {
            true => Err(bad("type", &self.runtime_type)),
            false => Ok(()),
        }
    }
}

fn named(what: &'static str, name: &str) -> Result<(), BadOptions> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(good) {
        return Ok(());
    }
    Err(bad(what, name))
}

fn bad(what: &'static str, name: &str) -> BadOptions {
    BadOptions::Name {
        what,
        name: name.escape_debug().take(80).collect(),
    }
}

/// What the server is asked for: a session for this runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Which runtime, in its own words.
    pub runtime_id: String,
    /// What it runs.
    pub runtime_type: String,
    /// The person whose it is.
    pub client_id: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The session that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// What the server answers to an [`Announcement`], and to whoever renews what it got then.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Given {
    /// The session.
    pub session_id: SessionId,
    /// What it says its events with; once, when it begins.
    #[serde(default)]
    pub token: Option<String>,
    /// For how many seconds it is its.
    pub lease_s: u64,
    /// Where the notebook is by then.
    pub head: Seq,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(client_id: &str, runtime_id: &str) -> AgentOptions {
        AgentOptions {
            runtime_id: runtime_id.into(),
            runtime_type: "echo".into(),
            client_id: client_id.into(),
            session_id: None,
        }
    }

    #[test]
    fn a_client_id_that_is_not_who_authenticated_is_refused() {
        assert_eq!(options("ada", "a").check("ada"), Ok(()));
        let refused = options("eve", "a").check("ada").unwrap_err();
        assert_eq!(refused.kind(), "forbidden");
        assert!(refused.to_string().contains("--client-id ada"), "{refused}");
        assert!(options("", "a").check("ada").is_err());
    }

    #[test]
    fn a_runtime_is_called_by_a_plain_name() {
        assert!(options("ada", "browser-echo.1").check("ada").is_ok());
        for name in ["", "a b", "ä", "a/b", &"x".repeat(41)] {
            assert!(options("ada", name).check("ada").is_err(), "{name:?}");
        }
    }
}
