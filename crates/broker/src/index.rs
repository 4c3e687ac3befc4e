//! What is registered, so that it is known after a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use protocol::runtime::{PostRuntime, RuntimeInfo};
use protocol::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Append, Expected, NewEvent, Seq, Store, StoreError, StreamName};

use crate::former::{Former, Gone};

/// How many events are read at a time.
const PAGE: usize = 256;

/// What a runtime said about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) kind: String,
    /// The folder, by its real path where it is on this machine.
    pub(crate) workspace: String,
    pub(crate) workspace_name: String,
    pub(crate) version: String,
    pub(crate) extension_version: String,
    pub(crate) capabilities: Vec<String>,
}

impl From<&PostRuntime> for About {
    fn from(asked: &PostRuntime) -> Self {
        Self {
            kind: asked.kind.clone(),
            workspace: real(&asked.workspace_path),
            workspace_name: asked.workspace_name.clone(),
            version: asked.version.clone(),
            extension_version: asked.extension_version.clone(),
            capabilities: asked.capabilities.clone(),
        }
    }
}

impl From<&RuntimeInfo> for About {
    fn from(info: &RuntimeInfo) -> Self {
        Self {
            kind: info.kind.clone(),
            workspace: info.workspace.clone(),
            workspace_name: info.workspace_name.clone(),
            version: info.version.clone(),
            extension_version: info.extension_version.clone(),
            capabilities: info.capabilities.clone(),
        }
    }
}

/// A folder by its real path where it is on this machine, and without what means nothing in a path
/// where it is not. Runtimes are known by it, and looked for by it.
#[must_use]
pub fn real(path: &str) -> String {
    let path = Path::new(path);
    let real = path.canonicalize().ok();
    let real = real.filter(|real| real.to_str().is_some());
    let real = real.unwrap_or_else(|| path.components().collect());
    real.to_string_lossy().into_owned()
}

/// What stands in the stream.
pub(crate) struct Read {
    /// Id, person, what it is.
    pub(crate) registered: Vec<(String, String, About)>,
    pub(crate) former: Former,
}

/// The stream of registrations.
pub(crate) struct Index<S: Store> {
    store: Arc<S>,
    stream: StreamName,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry {
    Registered {
        id: String,
        person: String,
        about: About,
    },
    Gone {
        id: String,
    },
}

impl<S: Store> Index<S> {
    pub(crate) fn new(store: Arc<S>) -> Result<Self, Failure> {
        let stream = StreamName::new("runtimes")
            .map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))?;
        Ok(Self { store, stream })
    }

    /// All that are registered, and what is gone.
    pub(crate) async fn read(&self) -> Result<Read, Failure> {
        let mut all = BTreeMap::new();
        let mut former = Former::default();
        let mut after = Seq::START;
        loop {
            let events = self.store.read(&self.stream, after, PAGE).await;
            let events = events.map_err(failed)?;
            let Some(last) = events.last() else {
                break;
            };
            after = last.seq;
            for event in events {
                match serde_json::from_value(event.data) {
                    Ok(Entry::Registered { id, person, about }) => {
                        former.remove(&id);
                        all.insert(id, (person, about));
                    }
                    Ok(Entry::Gone { id }) => {
                        if let Some((person, about)) = all.remove(&id) {
                            former.add(Gone::new(&id, &person, &about));
                        }
                    }
                    Err(error) => tracing::warn!(%error, "a registration cannot be read"),
                }
            }
        }
        let all = all.into_iter();
        let registered = all.map(|(id, (person, about))| (id, person, about));
        Ok(Read {
            registered: registered.collect(),
            former,
        })
    }

    pub(crate) async fn registered(
        &self,
        id: &str,
        person: &str,
        about: &About,
    ) -> Result<(), Failure> {
        self.write(&Entry::Registered {
            id: id.to_owned(),
            person: person.to_owned(),
            about: about.clone(),
        })
        .await
    }

    pub(crate) async fn gone(&self, id: &str) -> Result<(), Failure> {
        self.write(&Entry::Gone { id: id.to_owned() }).await
    }

    async fn write(&self, entry: &Entry) -> Result<(), Failure> {
        let append = Append {
            stream: self.stream.clone(),
            expected: Expected::Any,
            events: vec![NewEvent {
                kind: "runtime".into(),
                at: gate::now(),
                data: json!(entry).into(),
            }],
        };
        self.store
            .append(vec![append])
            .await
            .map(drop)
            .map_err(failed)
    }
}

fn failed(error: StoreError) -> Failure {
    Failure::new(ErrorKind::Internal, error.to_string())
}
