//! What is submitted, and what becomes of it before anything is decided.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use protocol::gate::ActionRequest;
pub use protocol::gate::Ask;
use protocol::runtime::RuntimeChoice;
use protocol::{ErrorKind, Failure, Mode};
use serde_json::Value;

use crate::actor::Actor;
use crate::clock::now;

/// The longest id of an action, and of a session.
const MAX_ID: usize = 100;

/// An action that somebody asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's id of it: sent again, it is done once. One is made where none is given.
    pub id: Option<String>,
    /// Which action.
    pub action: String,
    /// Its parameters.
    pub params: Value,
    /// In which role; the default one where none is named.
    pub role: Option<String>,
    /// On whose behalf, for a sub-agent: it may do what all of them may.
    pub parents: Vec<String>,
    /// How it should run, at the freest; `sandbox` where nothing is said.
    pub mode: Option<Mode>,
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// Which session it belongs to.
    pub session: Option<String>,
    /// Where it runs; the local runtime where nothing is said.
    pub runtime: Option<RuntimeChoice>,
    /// What happens where a person has to be asked.
    pub ask: Ask,
}

impl From<ActionRequest> for Request {
    fn from(asked: ActionRequest) -> Self {
        Self {
            id: asked.id,
            action: asked.action,
            params: asked.params,
            role: asked.role,
            parents: Vec::new(),
            mode: asked.mode,
            workspace: asked.workspace.map(PathBuf::from),
            session: asked.session,
            runtime: asked.runtime,
            ask: asked.ask,
        }
    }
}

impl Request {
    /// An action with nothing said beside it.
    #[must_use]
    pub fn new(action: impl Into<String>, params: Value) -> Self {
        Self {
            id: None,
            action: action.into(),
            params,
            role: None,
            parents: Vec::new(),
            mode: None,
            workspace: None,
            session: None,
            runtime: None,
            ask: Ask::Wait,
        }
    }

    /// Holds it to what the actor may choose: an agent has its role, its workspace and its ceiling
    /// and names no other.
    pub(crate) fn bound_to(mut self, actor: &Actor) -> Result<Self, Failure> {
        for (name, id) in [("id", &self.id), ("session", &self.session)] {
            if let Some(id) = id {
                check_id(name, id)?;
            }
        }
        let Actor::Agent(agent) = actor else {
            return Ok(self);
        };
        // Whoever runs it may let it call another, on its behalf.
        let on_behalf = self.parents.first() == Some(&agent.role);
        if self.role.as_ref().is_some_and(|role| *role != agent.role) && !on_behalf {
            return Err(cannot(format!(
                "choose its role; this one is `{}`",
                agent.role
            )));
        }
        let elsewhere =
            |path: &PathBuf| path.canonicalize().ok().as_ref() != Some(&agent.workspace);
        if self.workspace.as_ref().is_some_and(elsewhere) {
            return Err(cannot(format!(
                "choose its workspace; this one works in {}",
                agent.workspace.display()
            )));
        }
        if self.mode.is_some_and(|mode| mode > agent.mode) {
            return Err(cannot(format!(
                "choose its mode; this one has `{}` at the freest",
                agent.mode
            )));
        }
        self.mode = Some(self.mode.unwrap_or(agent.mode).min(agent.mode));
        if !on_behalf {
            self.role = Some(agent.role.clone());
        }
        self.workspace = Some(agent.workspace.clone());
        Ok(self)
    }
}

fn cannot(what: String) -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        format!("An agent cannot {what}. A person can make a token for another."),
    )
}

/// Ids are parts of stream and file names.
fn check_id(name: &str, id: &str) -> Result<(), Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(good) && !id.starts_with('.') {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidParams,
        format!(
            "`{name}` has 1 to {MAX_ID} letters, digits, `_`, `-` or `.`, and no `.` in front."
        ),
    )
    .with("field", name))
}

/// A new id that nobody can guess. It begins with the time: what is made one after the other is one
/// beside the other in the store.
pub fn new_id() -> Result<String, Failure> {
    let chance = chance().map_err(|error| {
        Failure::new(
            ErrorKind::Internal,
            format!("The system gives no random numbers: {error}."),
        )
    })?;
    Ok(format!("{:012x}{chance:016x}", now().0))
}

/// A random number of the system's, of which it is asked for many at once.
fn chance() -> Result<u64, getrandom::Error> {
    static DRAWN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    // Nothing panics while it is held.
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(chance) = drawn.pop() {
        return Ok(chance);
    }
    let mut bytes = [0_u8; 512];
    getrandom::fill(&mut bytes)?;
    let (first, rest) = (&bytes[..8], bytes[8..].chunks_exact(8));
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    drawn.extend(rest.map(number));
    Ok(number(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Agent;

    #[test]
    fn an_id_that_is_made_later_comes_later() {
        let first = new_id().unwrap();
        let began = now();
        while now() == began {
            std::hint::spin_loop();
        }
        let second = new_id().unwrap();
        assert!(first < second, "{first} {second}");
        assert_eq!((first.len(), second.len()), (28, 28));
    }

    fn agent() -> Actor {
        Actor::Agent(Agent {
            id: "a".into(),
            person: "ada".into(),
            role: "backend".into(),
            mode: Mode::Sandbox,
            workspace: "/".into(),
        })
    }

    #[test]
    fn an_agent_has_its_own_role_mode_and_workspace_and_names_no_other() {
        let request = Request::new("fs.read", Value::Null);
        let bound = request.clone().bound_to(&agent()).unwrap();
        assert_eq!(
            bound,
            Request {
                role: Some("backend".into()),
                mode: Some(Mode::Sandbox),
                workspace: Some("/".into()),
                ..request.clone()
            }
        );
        for chosen in [
            Request {
                role: Some("system_agent".into()),
                ..request.clone()
            },
            Request {
                mode: Some(Mode::Full),
                ..request.clone()
            },
            Request {
                workspace: Some("/usr".into()),
                ..request.clone()
            },
            Request {
                workspace: Some("/nowhere".into()),
                ..request
            },
        ] {
            let failure = chosen.bound_to(&agent()).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::Forbidden);
        }
    }

    #[test]
    fn an_id_is_made_of_what_can_name_a_stream_and_a_file() {
        for (id, good) in [
            ("a-1.b_C", true),
            ("", false),
            ("../x", false),
            (".x", false),
            ("a/b", false),
            ("ä", false),
        ] {
            let request = Request {
                id: Some(id.into()),
                ..Request::new("fs.read", Value::Null)
            };
            let person = Actor::Person("ada".into());
            assert_eq!(request.bound_to(&person).is_ok(), good, "{id}");
        }
    }
}
