//! Who is talking, as it was authenticated; never as a payload says.

use std::path::PathBuf;

use protocol::{ErrorKind, Failure, Mode};
use serde::{Deserialize, Serialize};

/// Who is talking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person: answers approvals, chooses role and mode, trusts workspaces.
    Person(String),
    /// An agent: bound to a role, a ceiling and a workspace. It cannot answer, grant or read the
    /// ledger.
    Agent(Agent),
}

/// What an agent's token binds it to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The token's id.
    pub id: String,
    /// The person it works for: who is asked.
    pub person: String,
    /// Who it is.
    pub role: String,
    /// The freest mode it may run in.
    pub mode: Mode,
    /// Where it works, by its real path.
    pub workspace: PathBuf,
}

impl Actor {
    /// As the record names it: `person:ada`, `agent:4f2a`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Person(name) => format!("person:{name}"),
            Self::Agent(agent) => format!("agent:{}", agent.id),
        }
    }

    /// The person, or the one it works for.
    #[must_use]
    pub fn person(&self) -> &str {
        match self {
            Self::Person(name) => name,
            Self::Agent(agent) => &agent.person,
        }
    }

    /// The person's name, where it is one; agents are refused. `what` completes "An agent cannot".
    pub fn must_be_person(&self, what: &str) -> Result<&str, Failure> {
        match self {
            Self::Person(name) => Ok(name),
            Self::Agent(_) => Err(Failure::new(
                ErrorKind::Forbidden,
                format!("An agent cannot {what}; a person has to. Use a person's token."),
            )),
        }
    }
}
