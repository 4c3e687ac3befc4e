//! Who is connected, and what is registered.

use std::collections::HashMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gate::{Actor, new_id};
use http::Extensions;
use protocol::runtime::{EVENT_OUTPUT, LOCAL, PostRuntime, Registered, RuntimeInfo};
use protocol::sandbox::Tier;
use protocol::{ActionName, ErrorKind, Failure};
use serde::Deserialize;
use socketioxide::SocketIo;
use socketioxide::extract::{SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;
pub use socketioxide::layer::SocketIoLayer as Layer;
use store::Store;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::editor::{Editor, Link};
use crate::exec::Here;
use crate::former::Former;
use crate::hello::Unknown;
use crate::index::{self, Index};
use crate::output::{OutputEvent, Outputs};

/// For how long a runtime is taken to be there after its last word, where nothing else is set.
pub const LEASE: Duration = Duration::from_secs(60);
/// For how long one that was lost is still on the list.
const GRACE: Duration = Duration::from_secs(120);
/// How long a connection has to say who it is.
pub(crate) const HELLO: Duration = Duration::from_secs(5);
/// The largest message: what an editor reads or prints at once.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Runtimes of one person.
const MAX_RUNTIMES: usize = 64;
/// Ids that can be asked for again at once.
const MAX_FORMER: usize = 16;
/// Connections of one person that registered nothing yet, and those that did.
const MAX_SOCKETS: usize = 2 * MAX_RUNTIMES;

/// Says whose the token of a handshake is, or why that is not told. What the handshake came with
/// says from where it is.
pub type Authenticate = Arc<dyn Fn(&str, &Extensions) -> Result<Known, String> + Send + Sync>;

/// What a broker may know beside its store.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long a runtime is taken to be there after its last word.
    pub lease: Duration,
    /// How commands are confined on this machine; nothing where they cannot be.
    pub here: Option<Here>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: LEASE,
            here: None,
        }
    }
}

/// Whom a token was found to belong to.
pub struct Known {
    /// Who that is.
    pub actor: Actor,
    /// Ready when the token is no longer good.
    pub gone: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known")
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

/// Editors that are connected, and those that were. Clones are the same broker.
pub struct Broker<S: Store>(pub(crate) Arc<Inner<S>>);

impl<S: Store> Clone for Broker<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> std::fmt::Debug for Broker<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

pub(crate) struct Inner<S: Store> {
    sockets: Mutex<HashMap<String, Connected>>,
    pub(crate) editors: Mutex<HashMap<String, Arc<Editor>>>,
    former: Mutex<Former>,
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) index: Index<S>,
    pub(crate) options: Options,
    pub(crate) unknown: Unknown,
    /// Whether this Ward listens where editors find it.
    pub(crate) listens: AtomicBool,
}

/// A connection, and whose it is.
struct Connected {
    person: String,
    socket: SocketRef,
    outputs: Outputs,
    /// Tells when it is gone.
    #[allow(dead_code, reason = "it does so by being dropped")]
    lost: DropGuard,
}

/// What had an id that is asked for again.
enum Before {
    /// It was away, and is connected again.
    Back(Arc<Editor>),
    /// It is gone; this is its id.
    Gone(String),
}

/// What a connection says who it is with.
#[derive(Debug, Deserialize)]
struct Auth {
    token: String,
}

impl<S: Store> Broker<S> {
    /// A broker that knows what was registered before, as away.
    pub async fn open(store: Arc<S>, options: Options) -> Result<Self, Failure> {
        let index = Index::new(store)?;
        let mut editors = HashMap::new();
        let read = index.read().await?;
        for (id, person, about) in read.registered {
            editors.insert(id.clone(), Arc::new(Editor::away(id, person, about)));
        }
        Ok(Self(Arc::new(Inner {
            sockets: Mutex::default(),
            editors: Mutex::new(editors),
            former: Mutex::new(read.former),
            changes: watch::Sender::new(0),
            index,
            options,
            unknown: Unknown::default(),
            listens: AtomicBool::new(false),
        })))
    }

    /// Editors can come from now on: this Ward listens where they find it.
    pub fn listens(&self) {
        self.0.listens.store(true, Ordering::Relaxed);
    }

    /// The layer that answers `/socket.io/` for those whom `authenticate` knows.
    #[must_use]
    pub fn layer(&self, authenticate: Authenticate) -> Layer {
        let (layer, io) = SocketIo::builder()
            .max_payload(MAX_MESSAGE as u64)
            .ws_max_message_size(MAX_MESSAGE)
            .ws_max_frame_size(MAX_MESSAGE)
            .max_buffer_size(256)
            .connect_timeout(HELLO)
            .build_layer();
        let broker = self.clone();
        let admit = {
            let broker = self.clone();
            move |socket: SocketRef, TryData(auth): TryData<Auth>| {
                let admitted = broker.admit(&socket, auth.ok(), &authenticate);
                std::future::ready(admitted)
            }
        };
        let connected = move |socket: SocketRef| {
            broker.connected(&socket);
            std::future::ready(())
        };
        io.ns("/", connected.with(admit));
        layer
    }

    /// Whether a connection is let in.
    fn admit(
        &self,
        socket: &SocketRef,
        auth: Option<Auth>,
        authenticate: &Authenticate,
    ) -> Result<(), String> {
        let Some(auth) = auth else {
            return Err("The token is missing. Give it as `auth: {token}`.".to_owned());
        };
        let known = authenticate(&auth.token, &socket.req_parts().extensions)?;
        let Actor::Person(person) = known.actor else {
            return Err("An agent is no runtime. Use a person's token.".to_owned());
        };
        self.0.unknown.known(socket.id.as_str(), socket.req_parts());
        let mut sockets = self.sockets();
        let theirs = sockets.values().filter(|one| one.person == person).count();
        if theirs >= MAX_SOCKETS {
            return Err(format!(
                "{MAX_SOCKETS} connections of yours are open already."
            ));
        }
        let lost = CancellationToken::new();
        let connected = Connected {
            person,
            socket: socket.clone(),
            outputs: Outputs::default(),
            lost: lost.clone().drop_guard(),
        };
        sockets.insert(socket.id.to_string(), connected);
        drop(sockets);
        // What was revoked is refused from then on, also where it is in use.
        let (socket, gone) = (socket.clone(), known.gone);
        tokio::spawn(async move {
            tokio::select! {
                () = gone => drop(socket.disconnect()),
                () = lost.cancelled() => {}
            }
        });
        Ok(())
    }

    fn connected(&self, socket: &SocketRef) {
        let outputs = match self.sockets().get(socket.id.as_str()) {
            Some(connected) => connected.outputs.clone(),
            None => return,
        };
        // What is done before a future is returned is done in the order of the messages.
        socket.on(
            EVENT_OUTPUT,
            move |TryData(output): TryData<OutputEvent>| {
                match output {
                    Ok(output) => outputs.take(output),
                    Err(error) => tracing::debug!(%error, "an editor's output cannot be read"),
                }
                std::future::ready(())
            },
        );
        let broker = self.clone();
        socket.on_disconnect(move |socket: SocketRef| {
            broker.lost(socket.id.as_str());
            std::future::ready(())
        });
    }

    /// Whether this connection has said who it is.
    pub(crate) fn has_said(&self, socket_id: &str) -> bool {
        self.sockets().contains_key(socket_id)
    }

    /// A connection is gone: what it was is away from now on, and gone after a while.
    fn lost(&self, socket_id: &str) {
        self.sockets().remove(socket_id);
        let lost: Vec<Arc<Editor>> = {
            let editors = self.editors();
            let theirs = editors.values().filter(|editor| editor.is_on(socket_id));
            theirs.cloned().collect()
        };
        for editor in lost {
            self.away(editor);
        }
    }

    /// A runtime is away from now on, and gone after a while.
    fn away(&self, editor: Arc<Editor>) {
        let since = editor.leave();
        self.changed();
        let broker = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            if editor.is_away_since(since) {
                broker.forget(&editor).await;
            }
        });
    }

    /// Whoever does not renew its lease is away, also where its connection is still there.
    fn watch(&self, editor: &Arc<Editor>, lost: CancellationToken) {
        let (broker, editor) = (self.clone(), Arc::clone(editor));
        tokio::spawn(async move {
            while let Some(until) = editor.until() {
                tokio::select! {
                    () = lost.cancelled() => return,
                    () = tokio::time::sleep_until(until.into()) => {}
                }
                if editor.until() == Some(until) && !lost.is_cancelled() {
                    tracing::info!(id = editor.id, "a runtime did not renew its lease");
                    broker.away(editor);
                    return;
                }
            }
        });
    }

    /// Registers a connection of this person's as a runtime.
    pub async fn register(&self, actor: &Actor, asked: PostRuntime) -> Result<Registered, Failure> {
        let person = actor.must_be_person("register a runtime")?.to_owned();
        check(&asked)?;
        let about = index::About::from(&asked);
        let link = {
            let sockets = self.sockets();
            let connected = sockets.get(&asked.socket_id);
            let Some(connected) = connected.filter(|connected| connected.person == person) else {
                return Err(Failure::new(
                    ErrorKind::Forbidden,
                    "This connection is not yours, or is not open. Connect first, then register that connection.",
                )
                .with("field", "socket_id"));
            };
            Link::new(
                connected.socket.clone(),
                connected.outputs.clone(),
                self.lease(),
                asked.instance.clone(),
                Path::new(&about.workspace).is_dir(),
            )
        };
        let lost = link.lost.clone();
        let mut had = asked.runtime_id.iter().chain(&asked.former_ids);
        let before = had.find_map(|id| self.before(&person, id, &link, &about));
        let before = before.or_else(|| self.registered_before(&asked.socket_id, &link, &about));
        let editor = match before {
            Some(Before::Back(editor)) => editor,
            Some(Before::Gone(id)) => {
                self.make_room(&person).await?;
                self.arrive(&person, Some(&id), &link, &about)?
            }
            None => {
                self.make_room(&person).await?;
                self.arrive(&person, None, &link, &about)?
            }
        };
        self.watch(&editor, lost);
        if let Err(failure) = self.0.index.registered(&editor.id, &person, &about).await {
            self.away(editor);
            return Err(failure);
        }
        // It may have gone while it was written down.
        if !self.has_said(&asked.socket_id) {
            self.away(Arc::clone(&editor));
        }
        self.changed();
        Ok(self.registered(&editor))
    }

    /// What had this id, where it can be had again: it is back already, or is still to be put on the
    /// list.
    fn before(&self, person: &str, id: &str, link: &Link, about: &index::About) -> Option<Before> {
        if let Some(editor) = self.get(person, id) {
            let back = editor.comes_back(link, about);
            return back.then_some(Before::Back(editor));
        }
        let former = self.former();
        let gone = former.get(person, id)?;
        gone.is(about).then(|| Before::Gone(gone.id.clone()))
    }

    /// What this very connection has registered already for this folder.
    fn registered_before(
        &self,
        socket_id: &str,
        link: &Link,
        about: &index::About,
    ) -> Option<Before> {
        let on_it = |editor: &&Arc<Editor>| editor.is_on(socket_id);
        let on_it: Vec<_> = self.editors().values().filter(on_it).cloned().collect();
        let mut on_it = on_it.into_iter();
        let back = on_it.find(|editor| editor.comes_back(link, about));
        back.map(Before::Back)
    }

    /// One that is not on the list is put there, under the id that it had where that is still free.
    fn arrive(
        &self,
        person: &str,
        before: Option<&str>,
        link: &Link,
        about: &index::About,
    ) -> Result<Arc<Editor>, Failure> {
        let mut former = self.former();
        let free = before.filter(|id| former.get(person, id).is_some());
        let id = match free {
            Some(id) => {
                former.remove(id);
                id.to_owned()
            }
            None => new_id()?,
        };
        let editor = Arc::new(Editor::away(id, person.to_owned(), about.clone()));
        editor.comes_back(link, about);
        self.editors()
            .insert(editor.id.clone(), Arc::clone(&editor));
        Ok(editor)
    }

    /// One more runtime of this person's: where there are too many, the one that is away for longest
    /// is forgotten.
    async fn make_room(&self, person: &str) -> Result<(), Failure> {
        let longest = {
            let editors = self.editors();
            let theirs = || editors.values().filter(|one| one.person == person);
            if theirs().count() < MAX_RUNTIMES {
                return Ok(());
            }
            let away = theirs().filter_map(|one| Some((one.away_since()?, Arc::clone(one))));
            away.min_by_key(|(since, _)| *since)
        };
        match longest {
            Some((_, editor)) => {
                self.forget(&editor).await;
                Ok(())
            }
            None => Err(Failure::new(
                ErrorKind::Busy,
                format!("{MAX_RUNTIMES} runtimes of yours are registered already."),
            )),
        }
    }

    /// A runtime has shown that it is on this machine: what it runs is confined from now on, by this
    /// tier, until its connection is lost.
    pub fn here(&self, actor: &Actor, id: &str, tier: Tier) -> Result<RuntimeInfo, Failure> {
        let person = actor.must_be_person("show where a runtime is")?;
        let editor = self.get(person, id).ok_or_else(|| no_runtime(id))?;
        let Some(here) = &self.0.options.here else {
            return Err(Failure::new(
                ErrorKind::NotCapable,
                "This Ward cannot confine what an editor runs.",
            ));
        };
        if !editor.is_here(here, tier) {
            return Err(no_connection());
        }
        self.changed();
        Ok(editor.info())
    }

    /// A runtime says that it is still there.
    pub fn heartbeat(&self, actor: &Actor, id: &str) -> Result<Registered, Failure> {
        let person = actor.must_be_person("keep a runtime")?;
        let editor = self.get(person, id).ok_or_else(|| no_runtime(id))?;
        if !editor.renew(self.lease()) {
            return Err(no_connection());
        }
        Ok(self.registered(&editor))
    }

    fn registered(&self, editor: &Editor) -> Registered {
        let options = &self.0.options;
        let socket = options.here.as_ref().and_then(|here| here.socket.to_str());
        Registered {
            runtime_id: editor.id.clone(),
            lease_s: options.lease.as_secs().max(1),
            socket: socket.map(ToOwned::to_owned),
            has_folder: editor.is_near(),
        }
    }

    /// When a lease ends that begins now.
    fn lease(&self) -> Instant {
        Instant::now() + self.0.options.lease
    }

    /// Takes a runtime off the list.
    pub async fn unregister(&self, actor: &Actor, id: &str) -> Result<RuntimeInfo, Failure> {
        let person = actor.must_be_person("unregister a runtime")?;
        let editor = self.get(person, id).ok_or_else(|| no_runtime(id))?;
        editor.leave();
        self.forget(&editor).await;
        Ok(editor.info())
    }

    async fn forget(&self, editor: &Arc<Editor>) {
        {
            let mut editors = self.editors();
            // What came back under this id since is another, and stays.
            let listed = editors.get(&editor.id);
            if !listed.is_some_and(|listed| Arc::ptr_eq(listed, editor)) {
                return;
            }
            editors.remove(&editor.id);
            self.former().add(editor.gone());
        }
        if let Err(failure) = self.0.index.gone(&editor.id).await {
            tracing::warn!(%failure, "a runtime that is gone could not be written off");
        }
        self.changed();
    }

    /// A runtime of this person's.
    pub(crate) fn get(&self, person: &str, id: &str) -> Option<Arc<Editor>> {
        let editors = self.editors();
        editors
            .get(id)
            .filter(|editor| editor.person == person)
            .cloned()
    }

    pub(crate) fn changed(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    fn sockets(&self) -> MutexGuard<'_, HashMap<String, Connected>> {
        // Nothing panics while it is held.
        self.0
            .sockets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn former(&self) -> MutexGuard<'_, Former> {
        // Nothing panics while it is held.
        self.0.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn editors(&self) -> MutexGuard<'_, HashMap<String, Arc<Editor>>> {
        // Nothing panics while it is held.
        self.0
            .editors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses what cannot be a runtime.
fn check(asked: &PostRuntime) -> Result<(), Failure> {
    let refuse = |field: &str, why: String| {
        Err(Failure::new(ErrorKind::InvalidParams, why).with("field", field))
    };
    let kind = asked.kind.as_bytes();
    let good =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(byte);
    if kind.is_empty() || kind.len() > 40 || !kind.iter().all(good) || asked.kind == LOCAL {
        return refuse(
            "kind",
            "`kind` has 1 to 40 small letters, digits, `_` or `-`, and is not `local`.".to_owned(),
        );
    }
    let path = &asked.workspace_path;
    if !path.starts_with('/') || path.len() > 4096 || path.contains('\0') {
        return refuse(
            "workspace_path",
            "`workspace_path` is the folder's absolute path.".to_owned(),
        );
    }
    if asked.former_ids.len() > MAX_FORMER {
        return refuse(
            "former_ids",
            format!("`former_ids` has at most {MAX_FORMER}."),
        );
    }
    let instance = asked.instance.clone().unwrap_or_default();
    let names = [
        &asked.workspace_name,
        &asked.version,
        &asked.extension_version,
        &instance,
    ];
    if names.iter().any(|name| name.len() > 200) {
        return refuse(
            "workspace_name",
            "Names and versions have at most 200 bytes.".to_owned(),
        );
    }
    let unknown = |name: &&String| ActionName::parse(name).is_none();
    if let Some(name) = asked.capabilities.iter().find(unknown) {
        let shown: String = name.chars().take(100).collect();
        return refuse(
            "capabilities",
            format!("There is no action `{shown}`; a capability is the name of an action."),
        );
    }
    if asked.capabilities.len() > ActionName::ALL.len() {
        return refuse("capabilities", "A capability is named once.".to_owned());
    }
    Ok(())
}

fn no_runtime(id: &str) -> Failure {
    let shown: String = id.chars().take(100).collect();
    Failure::new(
        ErrorKind::Unknown,
        format!("There is no runtime `{shown}` that is yours."),
    )
}

fn no_connection() -> Failure {
    Failure::new(
        ErrorKind::RuntimeAway,
        "This runtime's connection is lost. Connect and register again, with its `runtime_id`.",
    )
}
