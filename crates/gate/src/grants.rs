//! Remembered answers: kept in a stream, held in memory, revoked at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::{Grant, Pattern, RoleName, Scope, Time};
use protocol::approval::GrantInfo;
use protocol::{ErrorKind, Failure};
use serde_json::json;
use store::{Append, Event, Expected, Millis, NewEvent, Seq, Store, StoreError, StreamName};
use tokio::sync::watch;

/// A grant was made.
const MADE: &str = "grant.made";
/// A grant was revoked.
const REVOKED: &str = "grant.revoked";

/// How many events are read at a time.
const PAGE: usize = 500;

/// All grants that hold.
#[derive(Debug)]
pub(crate) struct Grants {
    stream: StreamName,
    held: Mutex<Held>,
    /// Told of every change.
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Held {
    infos: Vec<(String, GrantInfo)>,
    /// The same by person, as the policy reads them; made anew with every change.
    grants: HashMap<String, Arc<Vec<Grant>>>,
}

impl Grants {
    /// Reads them from the store.
    pub(crate) async fn open<S: Store>(store: &S) -> Result<Self, StoreError> {
        let stream =
            StreamName::new("grants").map_err(|error| StoreError::Failed(error.to_string()))?;
        let mut held = Held::default();
        let mut after = Seq::START;
        loop {
            let events = store.read(&stream, after, PAGE).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            events.iter().for_each(|event| held.replay(event));
        }
        held.refresh();
        Ok(Self {
            stream,
            held: Mutex::new(held),
            changes: watch::Sender::new(()),
        })
    }

    /// Told whenever one is made or revoked.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// When the next one expires, after this time.
    pub(crate) fn next_expiry(&self, after: Millis) -> Option<Millis> {
        let held = self.held();
        let ends = held.infos.iter().filter_map(|(_, info)| info.expires_at);
        ends.filter(|end| *end > after.0).min().map(Millis)
    }

    /// The workspaces of those that expired after one time and up to another.
    pub(crate) fn expired(&self, after: Millis, until: Millis) -> BTreeSet<String> {
        let held = self.held();
        let ended = |info: &&GrantInfo| {
            let end = info.expires_at;
            end.is_some_and(|end| after.0 < end && end <= until.0)
        };
        let infos = held.infos.iter().map(|(_, info)| info);
        infos
            .filter(ended)
            .map(|info| info.workspace.clone())
            .collect()
    }

    /// What the policy is given for this person's agents.
    pub(crate) fn current(&self, person: &str) -> Arc<Vec<Grant>> {
        self.held().grants.get(person).cloned().unwrap_or_default()
    }

    /// Whether this grant answered a question about a command's wall.
    pub(crate) fn is_about_walls(&self, id: &str) -> bool {
        let held = self.held();
        let mut infos = held.infos.iter();
        infos.any(|(_, info)| info.id == id && info.wall)
    }

    /// Those of a person that hold now.
    pub(crate) fn list(&self, person: &str, now: Millis) -> Vec<GrantInfo> {
        let holds = |info: &GrantInfo| info.expires_at.is_none_or(|end| now.0 < end);
        self.held()
            .infos
            .iter()
            .filter(|(owner, info)| owner == person && holds(info))
            .map(|(_, info)| info.clone())
            .collect()
    }

    /// One of a person's.
    pub(crate) fn get(&self, person: &str, id: &str) -> Option<GrantInfo> {
        let held = self.held();
        let mut infos = held.infos.iter();
        let found = infos.find(|(owner, info)| owner == person && info.id == id);
        found.map(|(_, info)| info.clone())
    }

    /// What has to be written for new grants.
    pub(crate) fn making(&self, person: &str, infos: &[GrantInfo], at: Millis) -> Append {
        let events = infos.iter().map(|info| NewEvent {
            kind: MADE.into(),
            at,
            data: json!({ "person": person, "grant": info }).into(),
        });
        self.append(events.collect())
    }

    /// They are written: from now on they hold.
    pub(crate) fn made(&self, person: &str, infos: Vec<GrantInfo>) {
        let mut held = self.held();
        let new = infos.into_iter().map(|info| (person.to_owned(), info));
        held.infos.extend(new);
        held.refresh();
        drop(held);
        self.changes.send_replace(());
    }

    /// What has to be written for one that is revoked.
    pub(crate) fn revoking(&self, id: &str, at: Millis) -> Append {
        self.append(vec![NewEvent {
            kind: REVOKED.into(),
            at,
            data: json!({ "id": id }).into(),
        }])
    }

    /// It no longer holds. Said before it is written, so that nothing slips through meanwhile.
    pub(crate) fn revoked(&self, id: &str) {
        let mut held = self.held();
        held.infos.retain(|(_, info)| info.id != id);
        held.refresh();
        drop(held);
        self.changes.send_replace(());
    }

    fn append(&self, events: Vec<NewEvent>) -> Append {
        Append {
            stream: self.stream.clone(),
            expected: Expected::Any,
            events,
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while it is held.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn replay(&mut self, event: &Event) {
        let text = |name: &str| event.data.get(name).and_then(serde_json::Value::as_str);
        match event.kind.as_str() {
            MADE => {
                let grant = event.data.get("grant").cloned().unwrap_or_default();
                if let (Some(person), Ok(info)) = (text("person"), serde_json::from_value(grant)) {
                    self.infos.push((person.to_owned(), info));
                }
            }
            REVOKED => {
                let id = text("id");
                self.infos.retain(|(_, info)| Some(info.id.as_str()) != id);
            }
            kind => tracing::warn!(kind, "passed over an event among the grants"),
        }
    }

    fn refresh(&mut self) {
        let mut grants: HashMap<String, Vec<Grant>> = HashMap::new();
        for (person, info) in &self.infos {
            if let Ok(grant) = read(info) {
                grants.entry(person.clone()).or_default().push(grant);
            }
        }
        let grants = grants.into_iter();
        self.grants = grants
            .map(|(person, held)| (person, Arc::new(held)))
            .collect();
    }
}

/// A grant as the policy reads it.
pub(crate) fn read(info: &GrantInfo) -> Result<Grant, Failure> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::new(
            ErrorKind::BadPattern,
            format!("The grant `{}` cannot be read: {error}", info.pattern),
        )
    };
    Ok(Grant {
        id: info.id.clone(),
        pattern: Pattern::parse(&info.pattern).map_err(|error| {
            Failure::new(ErrorKind::BadPattern, format!("{error} {}", error.hint()))
        })?,
        role: RoleName::parse(&info.role).map_err(|error| bad(&error))?,
        scope: match &info.session_id {
            Some(session) => Scope::Session(session_key(&info.workspace, &info.actor, session)),
            None => Scope::Workspace(info.workspace.clone()),
        },
        expires: info.expires_at.map(Time),
    })
}

/// A session as the policy knows it: two workspaces share none, nor do two actors.
pub(crate) fn session_key(workspace: &str, actor: &str, session: &str) -> String {
    format!("{session} of {actor} in {workspace}")
}
