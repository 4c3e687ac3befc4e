//! Notebooks' runtimes beside those of another kind, as the gate finds them.

use std::sync::Arc;

use gate::runtime::{Elsewhere, Runtime, RuntimeChoice};
use protocol::runtime::RuntimeInfo;
use protocol::{ActionName, ErrorKind, Failure};
use store::Store;
use tokio::sync::watch;

use crate::notebooks::Notebooks;
use crate::place::{PREFIX, Place};

/// Notebooks' runtimes, and all others.
pub struct Beside<S: Store> {
    pub(crate) notebooks: Notebooks<S>,
    pub(crate) others: Arc<dyn Elsewhere>,
}

impl<S: Store> std::fmt::Debug for Beside<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside").finish_non_exhaustive()
    }
}

impl<S: Store> Beside<S> {
    /// The notebook's place, where one is chosen; it is this person's, or nobody's. What is decided
    /// on is decided by the rules and roles of the notebook's own workspace.
    fn place(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
    ) -> Option<Result<Place<S>, Failure>> {
        let RuntimeChoice::Id(id) = choice else {
            return None;
        };
        let id = id.strip_prefix(PREFIX)?;
        let found = self.notebooks.at_hand(person, id);
        Some(match found {
            Some(book) if book.info().workspace == workspace => Ok(Place(book)),
            Some(_) => Err(Failure::new(
                ErrorKind::NoRuntime,
                "The notebook belongs to another workspace. Name its own as `workspace`.",
            )),
            None => Err(Failure::new(
                ErrorKind::NoRuntime,
                "There is no such notebook that is yours, or nobody has opened it since Ward started.",
            )),
        })
    }
}

impl<S: Store> Elsewhere for Beside<S> {
    fn find(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
        action: ActionName,
    ) -> Result<Arc<dyn Runtime>, Failure> {
        match self.place(person, choice, workspace) {
            Some(place) => place.map(|place| Arc::new(place) as Arc<dyn Runtime>),
            None => self.others.find(person, choice, workspace, action),
        }
    }

    fn choose(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
    ) -> Result<RuntimeInfo, Failure> {
        match self.place(person, choice, workspace) {
            Some(place) => place.map(|place| place.status()),
            None => self.others.choose(person, choice, workspace),
        }
    }

    fn is_known(&self, person: &str, id: &str) -> bool {
        // A notebook that nobody has opened since Ward started can be opened.
        id.starts_with(PREFIX) || self.others.is_known(person, id)
    }

    fn can_come(&self) -> bool {
        self.others.can_come()
    }

    fn workspace_of(&self, person: &str, id: &str) -> Option<String> {
        match id.strip_prefix(PREFIX) {
            Some(notebook) => Some(self.notebooks.at_hand(person, notebook)?.info().workspace),
            None => self.others.workspace_of(person, id),
        }
    }

    fn list(&self, person: &str) -> Vec<RuntimeInfo> {
        let mut all = self.others.list(person);
        all.extend(self.notebooks.runtimes(person));
        all
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.others.changes()
    }
}
