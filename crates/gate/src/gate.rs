//! The gate itself: what it holds, and how it is opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use protocol::approval::{Approval, GrantInfo};
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio::sync::{RwLock, broadcast};

use crate::actor::Actor;
use crate::clients::{Attachment, Attention, Clients};
use crate::clock::now;
use crate::files::Files;
use crate::grants::Grants;
use crate::inbox::{Addressed, Inbox};
use crate::jobs::Jobs;
use crate::leave::watch_expiry;
use crate::ledger::{Ledger, LedgerError};
use crate::live::{Actions, Live};
use crate::pending::Pending;
use crate::redact::Redactor;
use crate::runtime::{Elsewhere, Launch, LocalRuntime, Runtime, RuntimeChoice, RuntimeInfo};
use crate::undo::Keep;
use crate::wall::Keeper;
use crate::workspace::{self, Workspace};

/// A workspace, and what decides in it.
type Governed = (Arc<Workspace>, Arc<Files>);

/// Workspaces that one gate serves at once.
const MAX_WORKSPACES: usize = 64;

/// How to open a gate.
#[derive(Debug, Clone)]
pub struct GateOptions {
    /// Where a person's roles, rules and trust are.
    pub config: PathBuf,
    /// The data folder.
    pub data: PathBuf,
    /// The file that keeps the ledger's head outside the data folder.
    pub head: PathBuf,
    /// The workspace where none is named.
    pub workspace: PathBuf,
    /// The person's home folder, for patterns that begin with `~/`.
    pub home: Option<String>,
    /// Ward's own folders, by their real paths ([`real_folders`](crate::real_folders)): no agent's
    /// to read or to change.
    pub own: Arc<[String]>,
    /// How runtime servers are started.
    pub launch: Launch,
    /// How long a question is open.
    pub patience: std::time::Duration,
    /// What takes secrets out of all that is written down.
    pub redactor: Arc<Redactor>,
}

/// Says whether the agent of this id may still act: its token may have been revoked since.
pub type Roll = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The one way from a client to a runtime. Clones are the same gate.
pub struct Gate<S: Store>(pub(crate) Arc<Inner<S>>);

impl<S: Store> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> std::fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

pub(crate) struct Inner<S: Store> {
    pub(crate) options: GateOptions,
    pub(crate) store: Arc<S>,
    pub(crate) ledger: Ledger<S>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) actions: Actions,
    pub(crate) inbox: Inbox,
    /// Held for reading between writing that something is asked and asking it.
    pub(crate) opening: RwLock<()>,
    pub(crate) grants: Grants,
    pub(crate) clients: Clients,
    pub(crate) pending: Pending,
    pub(crate) undo: Keep,
    /// What runs now, for the questions that come out of it.
    pub(crate) jobs: Jobs,
    workspaces: Mutex<HashMap<PathBuf, Arc<Workspace>>>,
    /// Runtimes beside the local ones, where there can be any.
    pub(crate) elsewhere: OnceLock<Arc<dyn Elsewhere>>,
    /// Knows which agents there still are.
    pub(crate) roll: OnceLock<Roll>,
    pub(crate) me: Weak<Self>,
}

/// Why a gate cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The store.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The folder of pending actions.
    #[error("The folder of pending actions below {folder} cannot be used: {why}.", folder = folder.display())]
    Pending {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The workspace.
    #[error("{0}")]
    Workspace(Failure),
}

impl<S: Store> Gate<S> {
    /// Opens the gate: what waited for an answer when Ward ended waits again, and what was under
    /// way is written down as lost.
    pub async fn open(store: Arc<S>, options: GateOptions) -> Result<Self, OpenError> {
        let unusable = |why| OpenError::Pending {
            folder: options.data.clone(),
            why,
        };
        let pending = Pending::open(&options.data).map_err(unusable)?;
        let waiting = pending.all().map_err(unusable)?;
        let redactor = Arc::clone(&options.redactor);
        let head = options.head.clone();
        let (ledger, opened) =
            Ledger::open(Arc::clone(&store), head, Arc::clone(&redactor)).await?;
        let grants = Grants::open(&*store).await?;
        let inner = Arc::new_cyclic(|me| Inner {
            redactor,
            actions: Actions::default(),
            inbox: Inbox::default(),
            opening: RwLock::default(),
            clients: Clients::default(),
            jobs: Jobs::default(),
            workspaces: Mutex::default(),
            elsewhere: OnceLock::new(),
            roll: OnceLock::new(),
            undo: Keep::new(&options.data),
            me: Weak::clone(me),
            options,
            store,
            ledger,
            grants,
            pending,
        });
        let changes = inner.grants.changes();
        tokio::spawn(watch_expiry(Arc::downgrade(&inner), changes));
        let gate = Self(inner);
        gate.0.resume(waiting, opened.unfinished).await?;
        Ok(gate)
    }

    /// Starts the runtime server of the workspace where none is named, so that it is there when the
    /// first action comes.
    pub fn wake(&self) -> Result<(), Failure> {
        self.0.workspace(None)?.runtime.wake();
        Ok(())
    }

    /// An action of this actor's, or of the person's agents.
    pub fn action(&self, actor: &Actor, id: &str) -> Result<Arc<Live>, Failure> {
        match self.0.actions.get(id) {
            Some(live) if sees(actor, &live) => Ok(live),
            Some(_) | None => Err(no_action(id)),
        }
    }

    /// Everything that waits for this person's answer, the oldest first.
    pub fn approvals(&self, actor: &Actor) -> Result<Vec<Approval>, Failure> {
        let person = actor.must_be_person("see what a person is asked")?;
        let at = now().0;
        let is_to_come = |approval: &Approval| approval.expires_at > at;
        let mut approvals = self.0.inbox.select(person, is_to_come);
        for approval in &mut approvals {
            self.0.address(approval, person);
        }
        Ok(approvals)
    }

    /// One of them, also where it was written only just now.
    pub async fn approval(&self, actor: &Actor, id: &str) -> Result<Approval, Failure> {
        let person = actor.must_be_person("see what a person is asked")?;
        self.0.opened(id).await;
        self.0.expire(person, now()).await;
        let mut approval = self.0.inbox.get(person, id)?;
        self.0.address(&mut approval, person);
        Ok(approval)
    }

    /// How many questions are open, of all persons.
    #[must_use]
    pub fn open_questions(&self) -> usize {
        self.0.inbox.count()
    }

    /// The grants that hold for this person's agents.
    pub fn grants(&self, actor: &Actor) -> Result<Vec<GrantInfo>, Failure> {
        let person = actor.must_be_person("see what was granted")?;
        Ok(self.0.grants.list(person, now()))
    }

    /// Attaches a client: questions reach it from now on, and first if it is in front.
    pub fn attach(&self, actor: &Actor, attention: Attention) -> Result<Attachment, Failure> {
        let person = actor.must_be_person("be asked")?;
        Ok(self.0.clients.attach(person, attention))
    }

    /// Told whenever another client is asked first.
    #[must_use]
    pub fn attention(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.clients.changes()
    }

    pub(crate) fn notices(&self) -> broadcast::Receiver<Addressed> {
        self.0.inbox.notices()
    }

    /// The record.
    #[must_use]
    pub fn ledger(&self) -> &Ledger<S> {
        &self.0.ledger
    }

    /// What takes secrets out of all that is written down.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The store below it.
    #[must_use]
    pub fn store(&self) -> &Arc<S> {
        &self.0.store
    }

    /// Lets actions run elsewhere than here. Once; what comes later is passed over.
    pub fn connect(&self, elsewhere: Arc<dyn Elsewhere>) {
        let _ = self.0.elsewhere.set(elsewhere);
    }

    /// Lets this say which agents may still act. Once; what comes later is passed over.
    pub fn call(&self, roll: Roll) {
        let _ = self.0.roll.set(roll);
    }

    /// The folder that a choice of a runtime is about, where it is one of this machine: what is asked
    /// for there without naming a workspace is meant for that.
    #[must_use]
    pub fn workspace_of(&self, actor: &Actor, choice: &RuntimeChoice) -> Option<PathBuf> {
        self.0.workspace_of(actor, choice)
    }

    /// Who knows the runtimes beside the local ones.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.0.elsewhere.get()
    }

    /// The local runtimes that were needed so far, and the others of this actor's person. An agent
    /// sees those of its own workspace alone.
    #[must_use]
    pub fn runtimes(&self, actor: &Actor) -> Vec<RuntimeInfo> {
        let mut runtimes: Vec<_> = {
            let workspaces = self.0.workspaces();
            let all = workspaces.values();
            all.map(|workspace| workspace.runtime.status()).collect()
        };
        if let Some(elsewhere) = self.elsewhere() {
            runtimes.extend(elsewhere.list(actor.person()));
        }
        if let Actor::Agent(agent) = actor {
            runtimes.retain(|info| Path::new(&info.workspace) == agent.workspace);
        }
        runtimes.sort_by(|a, b| {
            let key = |info: &RuntimeInfo| (info.workspace.clone(), info.runtime_id.clone());
            key(a).cmp(&key(b))
        });
        runtimes
    }

    /// Ends all that runs, and the runtimes. Questions stay open for the next start.
    pub async fn close(&self) {
        let runtimes: Vec<Arc<dyn Runtime>> = {
            let workspaces = self.0.workspaces();
            let all = workspaces.values();
            all.map(|workspace| Arc::clone(&workspace.runtime))
                .collect()
        };
        for runtime in runtimes {
            runtime.stop().await;
        }
        self.0.settle().await;
    }
}

impl<S: Store> Inner<S> {
    pub(crate) fn workspace_of(&self, actor: &Actor, choice: &RuntimeChoice) -> Option<PathBuf> {
        self.folder_of(actor, choice)
            .filter(|folder| folder.is_dir())
    }

    /// The same, where it may be one of another machine.
    fn folder_of(&self, actor: &Actor, choice: &RuntimeChoice) -> Option<PathBuf> {
        let folder = match choice {
            RuntimeChoice::Need(need) => need.workspace.clone()?,
            RuntimeChoice::Id(id) => self.elsewhere.get()?.workspace_of(actor.person(), id)?,
        };
        Some(PathBuf::from(folder))
    }

    /// The workspace at this path, or the usual one, and what decides in it. Where that is as it was,
    /// it takes one look for both.
    pub(crate) fn workspace_and_policy(&self, path: Option<&Path>) -> Result<Governed, Failure> {
        let path = path.unwrap_or(&self.options.workspace);
        if let Some(unchanged) = self.unchanged(path) {
            return unchanged;
        }
        let workspace = self.workspace(Some(path))?;
        let policy = workspace.policy(&self.options.config)?;
        Ok((workspace, policy))
    }

    /// The same of the workspace that a choice of a runtime is about.
    pub(crate) fn workspace_and_policy_of(
        &self,
        actor: &Actor,
        choice: &RuntimeChoice,
    ) -> Result<Governed, Failure> {
        let folder = self.folder_of(actor, choice);
        if let Some(unchanged) = folder.as_deref().and_then(|path| self.unchanged(path)) {
            return unchanged;
        }
        let folder = folder.filter(|folder| folder.is_dir());
        self.workspace_and_policy(folder.as_deref())
    }

    /// A workspace that is known and there, where nothing has changed of what decides in it.
    fn unchanged(&self, path: &Path) -> Option<Result<Governed, Failure>> {
        let workspace = self.workspaces().get(path).cloned()?;
        let policy = workspace.unchanged()?;
        Some(policy.map(|policy| (workspace, policy)))
    }

    /// The workspace at this path, or the usual one.
    pub(crate) fn workspace(&self, path: Option<&Path>) -> Result<Arc<Workspace>, Failure> {
        let path = path.unwrap_or(&self.options.workspace);
        let known = self.workspaces().get(path).cloned();
        if let Some(workspace) = known
            && workspace.is_there()
        {
            return Ok(workspace);
        }
        let (real, name) = workspace::find(path)?;
        let mut workspaces = self.workspaces();
        if let Some(workspace) = workspaces.get(&real) {
            return Ok(Arc::clone(workspace));
        }
        if workspaces.len() >= MAX_WORKSPACES {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "{MAX_WORKSPACES} workspaces are in use already. Start another Ward with a data folder of its own."
                ),
            ));
        }
        let keeper = Arc::new(Keeper(Weak::clone(&self.me)));
        let runtime = LocalRuntime::new(self.options.launch.clone(), &real, keeper);
        let workspace = Arc::new(Workspace::new(real.clone(), name, Arc::new(runtime)));
        workspaces.insert(real, Arc::clone(&workspace));
        Ok(workspace)
    }

    /// Has the runtime of a workspace close what there is no leave for any more, and ends commands
    /// that have none.
    pub(crate) async fn review(&self, workspace: &str) {
        self.end_all_without_leave().await;
        let known = self.workspaces().get(Path::new(workspace)).cloned();
        if let Some(workspace) = known {
            workspace.runtime.review().await;
        }
    }

    /// Waits, where this question is not known, until what is written as asked is asked.
    pub(crate) async fn opened(&self, id: &str) {
        if !self.inbox.is_open(id) {
            drop(self.opening.write().await);
        }
    }

    /// Says which client is asked first.
    pub(crate) fn address(&self, approval: &mut Approval, person: &str) {
        approval.to = self.clients.active(person, approval.session_id.as_deref());
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Workspace>>> {
        self.workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an actor may look at an action: its own, and a person those of their agents.
pub(crate) fn sees(actor: &Actor, live: &Live) -> bool {
    match actor {
        Actor::Person(person) => live.person == *person,
        Actor::Agent(_) => live.actor == actor.name(),
    }
}

pub(crate) fn no_action(id: &str) -> Failure {
    let shown: String = id.chars().take(100).collect();
    Failure::new(
        ErrorKind::Unknown,
        format!("There is no action `{shown}` that is yours."),
    )
}
