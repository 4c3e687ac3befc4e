//! What a client may look at: actions under way and past, their streams, a person's inbox, roles.

use std::path::Path;
use std::sync::Arc;

use protocol::http::{RoleInfo, RoleOrigin};
use protocol::{ErrorKind, Failure};
use store::{Store, StreamName};

use crate::actor::Actor;
use crate::files::{Files, Trust};
use crate::gate::{Gate, no_action, sees};
use crate::live::{Ended, Live, State};
use crate::path::unwritten;
use crate::record::{inbox_of, stream_of};
use crate::workspace;

/// An action that an actor may look at.
#[derive(Debug, Clone)]
pub enum Seen {
    /// It is under way, or ended not long ago.
    Live(Arc<Live>),
    /// It ended; the store has it.
    Past(Ended),
}

impl<S: Store> Gate<S> {
    /// An action of this actor's, or of the person's agents, however long ago it was.
    pub async fn seen(&self, actor: &Actor, id: &str) -> Result<Seen, Failure> {
        match self.0.actions.get(id) {
            Some(live) if sees(actor, &live) => return Ok(Seen::Live(live)),
            Some(_) => return Err(no_action(id)),
            None => {}
        }
        // What cannot name a stream never was an action.
        let stream = stream_of(id).map_err(|_| no_action(id))?;
        let Some(past) = self.0.look_up(&stream).await? else {
            return Err(no_action(id));
        };
        let theirs = match actor {
            Actor::Person(person) => past.person.as_ref() == Some(person),
            Actor::Agent(_) => past.actor == Some(actor.name()),
        };
        if !theirs {
            return Err(no_action(id));
        }
        Ok(Seen::Past(past.ended()))
    }

    /// The stream of an action, for who may look at it.
    pub async fn stream_of(&self, actor: &Actor, id: &str) -> Result<StreamName, Failure> {
        self.seen(actor, id).await?;
        stream_of(id).map_err(|error| unwritten(&error))
    }

    /// The stream of what a person is asked.
    pub fn inbox(&self, actor: &Actor) -> Result<StreamName, Failure> {
        let person = actor.must_be_person("see what a person is asked")?;
        inbox_of(person).map_err(|error| unwritten(&error))
    }

    /// Whether nothing more is written to an action's stream: it has ended, and so has the terminal
    /// that it opened.
    #[must_use]
    pub fn is_over(&self, id: &str) -> bool {
        let live = self.0.actions.get(id);
        let ended = live.is_none_or(|live| matches!(live.state(), State::Ended(_)));
        ended && self.0.jobs.get(id).is_none()
    }

    /// Ready when it is.
    pub async fn over(&self, id: &str) {
        if let Some(live) = self.0.actions.get(id) {
            live.ended().await;
        }
        self.0.jobs.ended(id).await;
    }

    /// The roles that there are in a workspace, by name; also those that may not be used.
    pub fn roles(&self, actor: &Actor, workspace: Option<&Path>) -> Result<Vec<RoleInfo>, Failure> {
        actor.must_be_person("list the roles")?;
        // Read for itself, and not through the workspace's runtime: to look starts nothing.
        let options = &self.0.options;
        let (real, _) = workspace::find(workspace.unwrap_or(&options.workspace))?;
        let bad =
            |error: &dyn std::fmt::Display| Failure::new(ErrorKind::BadPolicy, error.to_string());
        let trust = Trust::read(&options.config).map_err(|error| bad(&error))?;
        let book = Files::read(&options.config, &real, &trust).map_err(|error| bad(&error))?;
        let info = |role: &policy::Role| RoleInfo {
            name: role.name.to_string(),
            description: role.description.clone(),
            mode: role.mode,
            skills: role
                .skills
                .iter()
                .map(|skill| skill.pattern.to_string())
                .collect(),
            model: role.model.clone(),
            provider: role.provider.clone(),
            origin: RoleOrigin {
                source: role.origin.source.as_str().to_owned(),
                file: role.origin.file.clone(),
                line: role.origin.line,
            },
            usable: book.roles.get(role.name.as_str()).is_ok(),
        };
        Ok(book.roles.iter().map(info).collect())
    }
}
