//! How the gate finds a runtime that is not here: exactly one, or why not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gate::runtime::{Elsewhere, Runtime, RuntimeChoice};
use protocol::runtime::{RuntimeHealth, RuntimeInfo};
use protocol::{ActionName, ErrorKind, Failure};
use store::Store;
use tokio::sync::watch;

use crate::broker::Broker;
use crate::editor::{Editor, Place, is_away};
use crate::former::Gone;
use crate::index::{About, real};

impl<S: Store> Elsewhere for Broker<S> {
    fn find(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
        action: ActionName,
    ) -> Result<Arc<dyn Runtime>, Failure> {
        let editor = self.one(person, choice, workspace)?;
        if !editor.can(action.as_str()) {
            let info = editor.info();
            return Err(Failure::new(
                ErrorKind::NotCapable,
                format!(
                    "{} on {} cannot do {action}; it can do {}.",
                    info.kind,
                    info.workspace,
                    info.capabilities.join(", ")
                ),
            ));
        }
        Ok(Arc::new(Place(editor)))
    }

    fn choose(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
    ) -> Result<RuntimeInfo, Failure> {
        self.one(person, choice, workspace)
            .map(|editor| editor.info())
    }

    fn is_known(&self, person: &str, id: &str) -> bool {
        self.get(person, id).is_some() || self.former().get(person, id).is_some()
    }

    fn can_come(&self) -> bool {
        self.0.listens.load(Ordering::Relaxed)
    }

    fn workspace_of(&self, person: &str, id: &str) -> Option<String> {
        match self.get(person, id) {
            Some(editor) => Some(editor.info().workspace),
            None => Some(self.former().get(person, id)?.workspace.clone()),
        }
    }

    fn list(&self, person: &str) -> Vec<RuntimeInfo> {
        let editors = self.editors();
        let theirs = editors.values().filter(|editor| editor.person == person);
        theirs.map(|editor| editor.info()).collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

impl<S: Store> Broker<S> {
    /// Why there is none.
    fn none(&self, person: &str, choice: &RuntimeChoice) -> Failure {
        let former = self.former();
        let gone = match choice {
            RuntimeChoice::Id(id) => former.get(person, id),
            RuntimeChoice::Need(_) => None,
        };
        let words = match gone {
            Some(Gone {
                id,
                kind,
                workspace,
                ..
            }) => format!(
                "{kind} on {workspace} ({id}) is not connected. Connect it again (in VS Code: Ward: Connect This Window), or choose another runtime."
            ),
            None => format!(
                "There is no runtime {choice}. Connect one (in VS Code: Ward: Connect This Window), or choose `local`."
            ),
        };
        Failure::new(ErrorKind::NoRuntime, words)
    }

    /// The one editor that is chosen, and is there.
    fn one(
        &self,
        person: &str,
        choice: &RuntimeChoice,
        workspace: &str,
    ) -> Result<Arc<Editor>, Failure> {
        let fitting: Vec<Arc<Editor>> = match choice {
            RuntimeChoice::Id(id) => self.get(person, id).into_iter().collect(),
            RuntimeChoice::Need(need) => {
                let workspace = real(need.workspace.as_deref().unwrap_or(workspace));
                let editors = self.editors();
                let theirs = editors
                    .values()
                    .filter(|editor| editor.person == person && editor.fits(need, &workspace));
                theirs.cloned().collect()
            }
        };
        let is_ready = |editor: &&Arc<Editor>| editor.health() == RuntimeHealth::Ready;
        let ready: Vec<&Arc<Editor>> = fitting.iter().filter(is_ready).collect();
        match (ready.as_slice(), fitting.as_slice()) {
            ([one], _) if one.works_in(workspace) => Ok(Arc::clone(one)),
            ([one], _) => Err(is_of_another(one, workspace)),
            ([], []) => Err(self.none(person, choice)),
            ([], [away, ..]) => Err(is_away(&About::from(&away.info()))),
            (several, _) => {
                let named = several.iter().map(|editor| {
                    let info = editor.info();
                    format!("{} ({} on {})", info.runtime_id, info.kind, info.workspace)
                });
                let named: Vec<String> = named.collect();
                Err(Failure::new(
                    ErrorKind::SeveralRuntimes,
                    format!(
                        "There are {} runtimes {choice}: {}. Choose one by its id.",
                        several.len(),
                        named.join(", ")
                    ),
                ))
            }
        }
    }
}

/// What is refused to an editor of another folder: that folder's rules, roles and grants would not
/// count.
fn is_of_another(editor: &Editor, workspace: &str) -> Failure {
    let info = editor.info();
    Failure::new(
        ErrorKind::InvalidParams,
        format!(
            "{} ({}) works in {}, and this is for {workspace}. Name its own folder as the workspace.",
            info.kind, info.runtime_id, info.workspace
        ),
    )
    .with("field", "workspace")
}
