//! What a gate permitted: one action, with the facts that were decided on, behind this wall.

use std::path::Path;

use protocol::facts::{Access, CommandFact, PathFact};
use protocol::mode::Mode;
use protocol::wall::WallParams;
use protocol::{ErrorKind, Facts, Failure};

use crate::workspace::refusal;

/// A permit that a gate sent for one action. Only a connection from a gate makes one.
#[derive(Debug)]
pub struct Permitted {
    mode: Mode,
    wall: WallParams,
    facts: Facts,
}

impl Permitted {
    pub(crate) fn new(mode: Mode, wall: WallParams, facts: Facts) -> Self {
        Self { mode, wall, facts }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn wall(&self) -> &WallParams {
        &self.wall
    }

    /// Refuses where an action would touch something else than was decided on.
    pub(crate) fn refuse_other_facts(&self, found: &Facts) -> Result<(), Failure> {
        if *found == self.facts {
            return Ok(());
        }
        Err(other_facts(&self.facts, found))
    }

    /// Refuses a path that was not decided on, or not for this: a name on the way may lead
    /// elsewhere by now. Reading is part of every other access.
    pub(crate) fn refuse_other_path(&self, real: &Path, access: Access) -> Result<(), Failure> {
        let text = real.to_string_lossy();
        let covers = |fact: &PathFact| {
            fact.path == text && (access == Access::Read || fact.access == access)
        };
        if self.facts.paths.iter().any(covers) {
            return Ok(());
        }
        Err(
            changed(&format!("It would touch {} now", refusal::quoted(&text)))
                .with("path", text.as_ref()),
        )
    }

    /// Refuses a command that is not the one that was decided on.
    pub(crate) fn refuse_other_command(&self, command: &CommandFact) -> Result<(), Failure> {
        if self.facts.command.as_ref() == Some(command) {
            return Ok(());
        }
        Err(changed("It would run another command now"))
    }
}

/// What an action would touch is not what was decided on.
pub(crate) fn other_facts(expected: &Facts, found: &Facts) -> Failure {
    let json = |facts: &Facts| serde_json::to_value(facts).unwrap_or_default();
    Failure::new(
        ErrorKind::Changed,
        "What the action would touch is not what was decided on. Resolve it again, and decide again.",
    )
    .with("expected", json(expected))
    .with("found", json(found))
}

fn changed(how: &str) -> Failure {
    Failure::new(
        ErrorKind::Changed,
        format!(
            "What the action would touch is not what was decided on. {how}. Resolve it again, and decide again."
        ),
    )
}
