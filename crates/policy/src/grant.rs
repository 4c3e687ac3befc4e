//! Remembered answers.

use serde::Serialize;

use crate::pattern::Pattern;
use crate::role::RoleName;

/// A moment, in milliseconds since 1970. It comes in as a value: this crate knows no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Time(pub u64);

/// A person's answer that holds for more than once. It lifts a question, never a deny.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its name, under which it is listed and revoked.
    pub id: String,
    /// What it allows.
    pub pattern: Pattern,
    /// Whom.
    pub role: RoleName,
    /// Where.
    pub scope: Scope,
    /// Until when; for as long as the scope lasts where left out.
    pub expires: Option<Time>,
}

/// Where a grant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In one session.
    Session(String),
    /// In one workspace, by its real path.
    Workspace(String),
}

impl Grant {
    /// Whether it holds for this role, here and now.
    #[must_use]
    pub fn holds(
        &self,
        role: &RoleName,
        session: Option<&str>,
        workspace: &str,
        now: Time,
    ) -> bool {
        let here = match &self.scope {
            Scope::Session(id) => session == Some(id.as_str()),
            Scope::Workspace(path) => path == workspace,
        };
        here && self.role == *role && self.expires.is_none_or(|expires| now < expires)
    }
}
