//! All notebooks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use gate::runtime::Elsewhere;
use gate::{Actor, Gate};
use notebook::{ArtifactRef, NotebookEvent, NotebookMade, Removed, SessionId, Termination, ipynb};
use protocol::runtime::RuntimeInfo;
use protocol::{ErrorKind, Failure};
use store::{Append, Seq, Store};
use tokio::sync::OnceCell;

use crate::agents::Agents;
use crate::artifacts::Artifacts;
use crate::beside::Beside;
use crate::book::{Book, WARD, lock};
use crate::index::{self, Known, Line};
use crate::log::{Log, written};
use crate::wire::{
    Announced, Appended, Compacted, FetchInput, Input, NotebookFile, NotebookInfo, PostComms,
    PostEvents, PostInput, PostNotebook, PostNotebookRuntime, TakenComms,
};
use crate::{drive, place};

/// Notebooks of one person.
const MAX_NOTEBOOKS: usize = 10_000;
/// How large the text of a file can be.
pub const MAX_FILE: usize = 8 * 1024 * 1024;

/// How notebooks are kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data folder, for what is kept beside the events.
    pub data: PathBuf,
    /// For how long a runtime is taken to be there after its last word.
    pub lease: Duration,
    /// The workspace where none is named.
    pub workspace: PathBuf,
}

/// All notebooks. Clones are the same.
pub struct Notebooks<S: Store>(Arc<Inner<S>>);

impl<S: Store> Clone for Notebooks<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> std::fmt::Debug for Notebooks<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notebooks").finish_non_exhaustive()
    }
}

struct Inner<S: Store> {
    gate: Gate<S>,
    options: Options,
    artifacts: Artifacts,
    known: Mutex<BTreeMap<String, Known>>,
    open: Mutex<HashMap<String, Opened<S>>>,
    agents: OnceLock<Arc<dyn Agents>>,
}

/// A notebook that is open, or about to be.
type Opened<S> = Arc<OnceCell<Arc<Book<S>>>>;

impl<S: Store> Notebooks<S> {
    /// Those that are in the store; none is opened before somebody wants it.
    pub async fn open(gate: Gate<S>, options: Options) -> Result<Self, Failure> {
        let known = index::read(gate.store()).await?;
        let artifacts = Artifacts::new(options.data.join("notebooks"));
        let notebooks = Self(Arc::new(Inner {
            gate,
            options,
            artifacts,
            known: Mutex::new(known),
            open: Mutex::default(),
            agents: OnceLock::new(),
        }));
        notebooks.wake().await;
        Ok(notebooks)
    }

    /// Opens those with a cell that a person is asked about: the answer may come before anybody
    /// looks at the notebook.
    async fn wake(&self) {
        let owners: BTreeSet<String> = {
            let known = lock(&self.0.known);
            known.values().map(|one| one.info.owner.clone()).collect()
        };
        for owner in owners {
            let person = Actor::Person(owner);
            let asked = self.0.gate.approvals(&person).unwrap_or_default();
            let cells = asked.into_iter().filter_map(|asked| asked.facts.cell);
            for cell in cells {
                if let Err(failure) = self.book(&person, &cell.notebook_id).await {
                    tracing::warn!(%failure, "a notebook with an open question cannot be opened");
                }
            }
        }
    }

    /// Notebooks' runtimes beside those of another kind, for [`Gate::connect`].
    #[must_use]
    pub fn beside(&self, others: Arc<dyn Elsewhere>) -> Beside<S> {
        Beside {
            notebooks: self.clone(),
            others,
        }
    }

    pub(crate) fn starter(&self) -> &OnceLock<Arc<dyn Agents>> {
        &self.0.agents
    }

    /// What is kept beside the events.
    #[must_use]
    pub fn artifacts(&self) -> &Artifacts {
        &self.0.artifacts
    }

    /// Those that this actor may use, the latest first.
    #[must_use]
    pub fn list(&self, actor: &Actor) -> Vec<NotebookInfo> {
        let known = lock(&self.0.known);
        let theirs = known.values().filter(|known| uses(actor, &known.info));
        let mut all: Vec<NotebookInfo> = theirs.map(|known| known.info.clone()).collect();
        drop(known);
        for info in &mut all {
            if let Some(book) = self.opened(&info.id) {
                *info = book.info();
            }
        }
        all.sort_by(|a, b| (b.made_at, &b.id).cmp(&(a.made_at, &a.id)));
        all
    }

    /// Makes one.
    pub async fn make(&self, actor: &Actor, asked: PostNotebook) -> Result<NotebookInfo, Failure> {
        let owner = actor.must_be_person("make a notebook")?.to_owned();
        let mine = |known: &&Known| known.info.owner == owner;
        if lock(&self.0.known).values().filter(mine).count() >= MAX_NOTEBOOKS {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MAX_NOTEBOOKS} notebooks are yours already. Delete some."),
            ));
        }
        let workspace = self.workspace(asked.workspace.as_deref())?;
        let bad = |field: &str, why: &str| {
            Failure::new(ErrorKind::InvalidParams, why).with("field", field)
        };
        if asked.people.len() > 100 || asked.people.iter().any(|name| name.len() > 100) {
            return Err(bad("people", "At most 100 people, of 100 bytes each."));
        }
        let mut events = match &asked.ipynb {
            Some(file) => read_file(file)?,
            None => vec![NotebookEvent::NotebookMade(NotebookMade {
                nbformat_minor: 5,
                ..NotebookMade::default()
            })],
        };
        if let (Some(title), Some(NotebookEvent::NotebookMade(made))) =
            (&asked.title, events.first_mut())
        {
            made.title.clone_from(title);
        }
        let title = match events.first() {
            Some(NotebookEvent::NotebookMade(made)) => made.title.clone(),
            _ => String::new(),
        };
        if title.chars().count() > 200 {
            return Err(bad("title", "A title has at most 200 characters."));
        }
        let info = NotebookInfo {
            id: gate::new_id()?,
            title,
            owner,
            people: asked.people,
            workspace,
            made_at: gate::now().0,
            compacted: None,
        };
        self.write_new(&info, events).await?;
        let line = Line::Made { info: info.clone() };
        index::fold(&mut lock(&self.0.known), line);
        Ok(info)
    }

    /// The notebook and the word of it are there together or not at all.
    async fn write_new(
        &self,
        info: &NotebookInfo,
        events: Vec<NotebookEvent>,
    ) -> Result<(), Failure> {
        let store = self.0.gate.store();
        let log = Log::new(Arc::clone(store), info.id.clone(), vec![0]);
        let at = gate::now();
        let events = (1..).zip(events).map(|(number, event)| {
            written(&notebook::Recorded {
                id: store::replica::EventId {
                    writer: WARD.to_owned(),
                    number,
                },
                event,
                actor: WARD.to_owned(),
                at,
            })
        });
        let events = events.collect::<Result<_, _>>()?;
        let batch: Vec<Append> = vec![
            log.append(Seq::START, events)?,
            Line::Made { info: info.clone() }.append()?,
        ];
        log.write(batch).await
    }

    fn workspace(&self, named: Option<&str>) -> Result<String, Failure> {
        let path = match named {
            Some(named) => PathBuf::from(named),
            None => self.0.options.workspace.clone(),
        };
        let real = path.is_absolute().then(|| path.canonicalize().ok());
        let real = real.flatten().filter(|real| real.is_dir());
        let real = real.and_then(|real| real.to_str().map(ToOwned::to_owned));
        real.ok_or_else(|| {
            Failure::new(
                ErrorKind::NotFound,
                "`workspace` is the absolute path of a folder on Ward's machine.",
            )
            .with("field", "workspace")
        })
    }

    /// What is known of one that this actor may use, without a look into it.
    fn known(&self, actor: &Actor, id: &str) -> Result<Known, Failure> {
        let known = lock(&self.0.known);
        let theirs = known.get(id).filter(|known| uses(actor, &known.info));
        theirs.cloned().ok_or_else(|| {
            let shown: String = id.chars().take(100).collect();
            Failure::new(
                ErrorKind::Unknown,
                format!("There is no notebook `{shown}` that is yours."),
            )
        })
    }

    /// One that this actor may use.
    pub async fn book(&self, actor: &Actor, id: &str) -> Result<Arc<Book<S>>, Failure> {
        self.known(actor, id)?;
        let opened = {
            let mut open = lock(&self.0.open);
            Arc::clone(open.entry(id.to_owned()).or_default())
        };
        let book = opened
            .get_or_try_init(|| async {
                let known = self.known(actor, id)?;
                let store = Arc::clone(self.0.gate.store());
                let book = Book::open(store, known.info, known.bases).await?;
                let book = Arc::new(book);
                drive::resume(&self.0.gate, &book).await?;
                Ok::<_, Failure>(book)
            })
            .await?;
        Ok(Arc::clone(book))
    }

    /// Appends what an actor says; with a runtime's token also what that runtime says.
    pub async fn post(
        &self,
        actor: &Actor,
        id: &str,
        token: Option<&str>,
        asked: PostEvents,
    ) -> Result<Appended, Failure> {
        let book = self.book(actor, id).await?;
        let session = match token {
            Some(token) => Some(book.session_of(actor, token, self.0.options.lease)?),
            None => None,
        };
        let taken = book.post(actor, session.as_ref(), asked).await?;
        for event in &taken.new {
            match event {
                NotebookEvent::ExecutionRequested(wanted) => {
                    drive::start(&self.0.gate, &book, actor, wanted);
                }
                NotebookEvent::ExecutionCancel(stop) => {
                    drive::cancel(&self.0.gate, &book, &stop.execution_id);
                }
                NotebookEvent::RuntimeTerminated(_) => book.tidy(),
                _ => {}
            }
        }
        Ok(taken.appended)
    }

    /// Keeps bytes beside a notebook, and says so in it.
    pub async fn keep_artifact(
        &self,
        actor: &Actor,
        book: &Book<S>,
        bytes: Vec<u8>,
        media_type: String,
        name: Option<String>,
    ) -> Result<ArtifactRef, Failure> {
        let kept = book.look(|notebook| notebook.artifacts.values().map(|one| one.size).sum());
        let artifacts = &self.0.artifacts;
        let artifact = artifacts
            .keep(&book.id, kept, bytes, media_type, name)
            .await?;
        let added = artifact.clone();
        book.say_for(&actor.name(), |notebook| {
            match notebook.artifacts.get(&added.digest) {
                Some(known) if *known == added => Vec::new(),
                Some(_) | None => vec![NotebookEvent::ArtifactAdded(added)],
            }
        })
        .await?;
        Ok(artifact)
    }

    /// Keeps it no longer.
    pub async fn drop_artifact(
        &self,
        actor: &Actor,
        book: &Book<S>,
        digest: &str,
    ) -> Result<ArtifactRef, Failure> {
        let mut known = None;
        book.say_for(&actor.name(), |notebook| {
            known = notebook.artifacts.get(digest).cloned();
            match &known {
                Some(known) => vec![NotebookEvent::ArtifactRemoved(Removed {
                    digest: known.digest.clone(),
                })],
                None => Vec::new(),
            }
        })
        .await?;
        let known = known.ok_or_else(|| {
            Failure::new(
                ErrorKind::Unknown,
                "There is no such artifact in this notebook.",
            )
        })?;
        self.0.artifacts.remove(&book.id, &known.digest).await?;
        Ok(known)
    }

    /// Deletes one, with all that is kept beside it, also one that cannot be opened.
    pub async fn delete(&self, actor: &Actor, id: &str) -> Result<NotebookInfo, Failure> {
        let known = self.owned(actor, id)?;
        let info = match self.book(actor, id).await {
            Ok(book) => {
                self.stop_all(&book);
                book.delete().await?;
                book.info()
            }
            Err(failure) if failure.kind == ErrorKind::Unknown => return Err(failure),
            Err(failure) => {
                tracing::warn!(%failure, "a notebook that cannot be opened is deleted");
                let store = Arc::clone(self.0.gate.store());
                let log = Log::new(store, id.to_owned(), known.bases);
                log.say_deleted().await?;
                log.remove().await?;
                known.info
            }
        };
        lock(&self.0.known).remove(id);
        lock(&self.0.open).remove(id);
        self.0.artifacts.remove_all(id).await;
        Ok(info)
    }

    /// Nothing that waits or runs in it goes on.
    fn stop_all(&self, book: &Book<S>) {
        let waiting = book.look(|notebook| {
            let waiting = notebook.queue().map(|run| run.execution_id.clone());
            waiting.collect::<Vec<_>>()
        });
        let person = Actor::Person(book.info().owner);
        for run in waiting {
            let action = place::action_id(&book.id, &run);
            if let Ok(live) = self.0.gate.action(&person, &action) {
                live.cancel();
            }
        }
    }

    /// Keeps what a notebook's events amount to, and drops them.
    pub async fn compact(&self, actor: &Actor, id: &str) -> Result<Compacted, Failure> {
        self.owned(actor, id)?;
        self.book(actor, id).await?.compact().await
    }

    /// What is known of one that this actor made.
    fn owned(&self, actor: &Actor, id: &str) -> Result<Known, Failure> {
        let known = self.known(actor, id)?;
        let person = actor.must_be_person("do this to a notebook")?;
        match known.info.owner == person {
            true => Ok(known),
            false => Err(Failure::new(
                ErrorKind::Forbidden,
                "Only who made a notebook may do this to it.",
            )),
        }
    }

    /// A runtime announces itself.
    pub async fn announce(
        &self,
        actor: &Actor,
        id: &str,
        token: Option<&str>,
        asked: PostNotebookRuntime,
    ) -> Result<Announced, Failure> {
        let book = self.book(actor, id).await?;
        let lease = self.0.options.lease;
        book.announce(actor, token, asked, lease).await
    }

    /// A runtime is still there.
    pub async fn renew(
        &self,
        actor: &Actor,
        id: &str,
        session: &str,
        token: Option<&str>,
    ) -> Result<Announced, Failure> {
        let book = self.book(actor, id).await?;
        let session = session_id(session)?;
        book.renew(&session, actor, token, self.0.options.lease)
    }

    /// Ends a runtime session: its own, or any that has a notebook of this person's.
    pub async fn end(&self, actor: &Actor, id: &str, session: &str) -> Result<bool, Failure> {
        let book = self.book(actor, id).await?;
        actor.must_be_person("end a notebook's runtime")?;
        let session = session_id(session)?;
        let why = "The runtime was ended while it worked on this.";
        book.end(&session, Termination::Shutdown, why).await
    }

    /// Ends a session in so many seconds, unless it is heard of again before. Whether there is one.
    pub async fn leave(
        &self,
        actor: &Actor,
        id: &str,
        session: &str,
        after: u64,
    ) -> Result<bool, Failure> {
        let book = self.book(actor, id).await?;
        actor.must_be_person("end a notebook's runtime")?;
        Ok(book.leave(&session_id(session)?, Duration::from_secs(after)))
    }

    /// A person answers what a run asks.
    pub async fn answer(&self, actor: &Actor, id: &str, asked: PostInput) -> Result<(), Failure> {
        let book = self.book(actor, id).await?;
        book.answer(actor, asked).await
    }

    /// A runtime fetches what was answered.
    pub async fn answered(
        &self,
        actor: &Actor,
        id: &str,
        session: &str,
        token: Option<&str>,
        asked: FetchInput,
    ) -> Result<Input, Failure> {
        let book = self.book(actor, id).await?;
        let session = session_id(session)?;
        book.renew(&session, actor, token, self.0.options.lease)?;
        book.answered(&session, &asked.execution_id)
    }

    /// A runtime says something over its comms.
    pub async fn tell_comms(
        &self,
        actor: &Actor,
        id: &str,
        session: &str,
        token: Option<&str>,
        said: PostComms,
    ) -> Result<(), Failure> {
        let book = self.book(actor, id).await?;
        let session = session_id(session)?;
        book.renew(&session, actor, token, self.0.options.lease)?;
        book.tell_comms(&session, said)
    }

    /// A runtime fetches what is said to its comms, and says what it has.
    pub async fn take_comms(
        &self,
        actor: &Actor,
        id: &str,
        session: &str,
        token: Option<&str>,
        after: u64,
    ) -> Result<TakenComms, Failure> {
        let book = self.book(actor, id).await?;
        let session = session_id(session)?;
        book.renew(&session, actor, token, self.0.options.lease)?;
        Ok(book.take_comms(&session, after).await)
    }

    /// One that is open, for the gate.
    pub(crate) fn at_hand(&self, person: &str, id: &str) -> Option<Arc<Book<S>>> {
        let book = self.opened(id)?;
        let info = book.info();
        uses(&Actor::Person(person.to_owned()), &info).then_some(book)
    }

    fn opened(&self, id: &str) -> Option<Arc<Book<S>>> {
        let open = lock(&self.0.open);
        open.get(id)?.get().cloned()
    }

    /// The runtimes that have notebooks of this person's.
    pub(crate) fn runtimes(&self, person: &str) -> Vec<RuntimeInfo> {
        let person = Actor::Person(person.to_owned());
        let open: Vec<Arc<Book<S>>> = {
            let open = lock(&self.0.open);
            open.values().filter_map(|one| one.get().cloned()).collect()
        };
        let mut all = Vec::new();
        for book in open {
            let info = book.info();
            if !uses(&person, &info) {
                continue;
            }
            book.look(|notebook| {
                for session in notebook.sessions().iter().filter(|one| one.is_active()) {
                    all.push(place::about(
                        &info.id,
                        &info.workspace,
                        &info.title,
                        session,
                    ));
                }
            });
        }
        all
    }
}

/// Whether an actor may use a notebook: who made it, those whom they named, and agents of theirs in
/// the same workspace.
fn uses(actor: &Actor, info: &NotebookInfo) -> bool {
    let person = actor.person();
    let is_theirs = info.owner == person || info.people.iter().any(|name| name == person);
    is_theirs
        && match actor {
            Actor::Person(_) => true,
            Actor::Agent(agent) => agent.workspace.to_str() == Some(&info.workspace),
        }
}

fn session_id(text: &str) -> Result<SessionId, Failure> {
    SessionId::new(text).map_err(|error| Failure::new(ErrorKind::InvalidParams, error.to_string()))
}

/// What a file amounts to.
fn read_file(file: &NotebookFile) -> Result<Vec<NotebookEvent>, Failure> {
    let text = file.text();
    if text.len() > MAX_FILE {
        let most = format!("A notebook's file has at most {} MiB.", MAX_FILE >> 20);
        return Err(Failure::new(ErrorKind::TooLarge, most).with("field", "ipynb"));
    }
    let events = ipynb::parse(&text).and_then(|file| ipynb::read(&file));
    events.map_err(|error| {
        Failure::new(ErrorKind::InvalidParams, error.to_string()).with("field", "ipynb")
    })
}
