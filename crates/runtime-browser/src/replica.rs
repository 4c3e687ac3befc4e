//! The replica as the page has it, driven over the page's wire; and as the store of agents.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use notebook::{
    ArtifactRef, CellId, Execution, ExecutionId, Notebook, NotebookEvent, RuntimeSession, SessionId,
};
use runtime_core::{
    Announced, Announcement, ArtifactClient, Given, Lost, NotebookStore, Question, Unanswered,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Seq;
use store::replica::{Base, EventId};
use tokio::sync::watch;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::artifacts::Beside;
use crate::book::{Answer, Book, Outgoing};
use crate::failure::{failure, unreadable};
use crate::wire::{Asked, Came, Wire};

/// How long to wait before Ward is asked again, at first and at most.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(5);
/// How long the notebook has to say why a session is over that Ward takes nothing of any more.
const REASON: Duration = Duration::from_secs(5);
/// How long what others did may wait until it is kept: it can be had again.
const LATER: Duration = Duration::from_millis(500);

/// What the page shares with its agents.
pub(crate) struct Shared {
    pub(crate) wire: Wire,
    /// The path of the notebook.
    pub(crate) path: String,
    user: String,
    book: RefCell<Book>,
    /// More is confirmed, or a session was lost.
    changed: watch::Sender<u64>,
    /// Something is to be pushed or kept.
    due: watch::Sender<u64>,
    /// How many writes to the disk are under way.
    keeping: watch::Sender<u64>,
    closed: Cell<bool>,
}

/// A page's replica of a notebook: the one store that the page and its agents share.
#[wasm_bindgen]
pub struct Replica(Rc<Shared>);

/// The store of an agent on the page's replica.
#[derive(Clone)]
pub(crate) struct PageStore(pub(crate) Rc<Shared>);

#[derive(Deserialize)]
struct Opened {
    seq: Seq,
    state: Notebook,
}

/// What the page shows besides the cells.
#[derive(Serialize)]
struct View<'a> {
    title: &'a str,
    runtimes: notebook::Runtimes,
    seq: Seq,
    pending: usize,
    connected: bool,
    sessions: &'a [RuntimeSession],
    executions: Vec<&'a Execution>,
}

#[wasm_bindgen]
impl Replica {
    /// A replica of the notebook that `opened` is, as `GET /notebooks/{id}` answers it. `user` is who
    /// authenticated, by Ward's word; `writer` is no other replica's name.
    pub fn opened(
        wire: Wire,
        notebook: &str,
        user: &str,
        writer: &str,
        opened: &str,
    ) -> Result<Replica, JsValue> {
        let book = Book::opened(writer, base(opened)?);
        Self::on(wire, notebook, user, book)
    }

    /// A replica as it was kept.
    pub fn restored(
        wire: Wire,
        notebook: &str,
        user: &str,
        writer: &str,
        base: &str,
        live: &str,
    ) -> Result<Replica, JsValue> {
        let book = Book::restored(writer, base, live)
            .map_err(|error| failure("parse_error", &error.to_string()))?;
        Self::on(wire, notebook, user, book)
    }

    fn on(wire: Wire, notebook: &str, user: &str, book: Book) -> Result<Replica, JsValue> {
        // It becomes part of addresses.
        if CellId::new(notebook).is_err() {
            return Err(failure("invalid_params", "That cannot be a notebook's id."));
        }
        Ok(Self(Rc::new(Shared {
            wire,
            path: format!("/notebooks/{notebook}"),
            user: user.to_owned(),
            book: RefCell::new(book),
            changed: watch::Sender::new(0),
            due: watch::Sender::new(0),
            keeping: watch::Sender::new(0),
            closed: Cell::new(false),
        })))
    }

    /// Who authenticated.
    #[wasm_bindgen(getter)]
    pub fn user(&self) -> String {
        self.0.user.clone()
    }

    /// Up to which event Ward has confirmed.
    #[wasm_bindgen(getter)]
    #[allow(clippy::cast_precision_loss, reason = "a page has no larger numbers")]
    pub fn head(&self) -> f64 {
        self.0.book.borrow().confirmed().seq.get() as f64
    }

    /// Writes an event, given as JSON: at once here, and to Ward as soon as can be. Refuses a wish to
    /// run something where there is no connection.
    pub fn write(&self, event: &str) -> Result<(), JsValue> {
        let event = serde_json::from_str(event).map_err(|e| unreadable("The event", &e))?;
        let written = self.0.book.borrow_mut().write(event);
        written.map_err(|offline| failure("disconnected", &offline.to_string()))?;
        self.0.stir();
        Ok(())
    }

    /// A place for a cell right after another; before all where none is named.
    #[wasm_bindgen(js_name = placeAfter)]
    pub fn place_after(&self, cell: Option<String>) -> Result<String, JsValue> {
        let cell = cell.map(CellId::new).transpose();
        let cell = cell.map_err(|error| failure("invalid_params", &error.to_string()))?;
        let place = self.0.book.borrow().state().place_after(cell.as_ref());
        Ok(place.to_string())
    }

    /// The cells in order, each as JSON.
    pub fn cells(&self) -> Vec<String> {
        let book = self.0.book.borrow();
        let cells = book.state().cells().into_iter();
        cells
            .filter_map(|cell| serde_json::to_string(cell).ok())
            .collect()
    }

    /// What there is besides the cells, as JSON.
    pub fn view(&self) -> String {
        let book = self.0.book.borrow();
        let state = book.state();
        let view = View {
            title: &state.title,
            runtimes: state.runtimes,
            seq: book.confirmed().seq,
            pending: book.pending().count(),
            connected: book.is_connected(),
            sessions: state.sessions(),
            executions: state.executions().collect(),
        };
        serde_json::to_string(&view).unwrap_or_default()
    }

    /// What Ward refused for good since this was asked last, as JSON: `[{event, why}]`.
    #[wasm_bindgen(js_name = takeRefused)]
    pub fn take_refused(&self) -> String {
        let refused = self.0.book.borrow_mut().take_refused();
        let refused = refused
            .into_iter()
            .map(|one| serde_json::json!({ "event": one.event, "why": one.why }));
        Value::Array(refused.collect()).to_string()
    }

    /// There is a connection: what comes after [`Replica::head`] is told from now on.
    pub fn connected(&self) {
        self.0.book.borrow_mut().connect();
        self.0.stir();
    }

    /// There is none any more.
    pub fn disconnected(&self) {
        self.0.book.borrow_mut().disconnect();
        self.0.stir();
    }

    /// Events as they came, as JSON: `[[number, event], …]`. Where it answers no, the whole state has
    /// to be asked for and given to [`Replica::jump`].
    pub fn told(&self, events: &str) -> bool {
        let Ok(events) = serde_json::from_str(events) else {
            return false;
        };
        let taken = self.0.book.borrow_mut().told(events);
        self.0.stir();
        self.0.confirm();
        taken
    }

    /// Goes on from what `GET /notebooks/{id}` answered.
    pub fn jump(&self, opened: &str) -> Result<(), JsValue> {
        let base = base(opened)?;
        self.0.book.borrow_mut().jump(base);
        self.0.stir();
        self.0.confirm();
        Ok(())
    }

    /// A runtime session's token, such as one that this page had before it was loaded again.
    #[wasm_bindgen(js_name = setToken)]
    pub fn set_token(&self, session: String, token: String) -> Result<(), JsValue> {
        let session = SessionId::new(session)
            .map_err(|error| failure("invalid_params", &error.to_string()))?;
        self.0.book.borrow_mut().set_token(session, token);
        Ok(())
    }

    /// Keeps what is not kept yet. Whether it is.
    pub async fn flush(&self) -> bool {
        let shared = Rc::clone(&self.0);
        shared.keep().await
    }

    /// Keeps and pushes what is written, until [`Replica::close`].
    pub async fn drive(&self) {
        let shared = Rc::clone(&self.0);
        shared.drive().await;
    }

    /// Keeps what is written also where it cannot be pushed, and what others did, until
    /// [`Replica::close`].
    #[wasm_bindgen(js_name = keepUp)]
    pub async fn keep_up(&self) {
        let shared = Rc::clone(&self.0);
        shared.keep_up().await;
    }

    /// Ends both.
    pub fn close(&self) {
        self.0.closed.set(true);
        self.0.due.send_modify(|turn| *turn += 1);
    }
}

impl Replica {
    pub(crate) fn shared(&self) -> Rc<Shared> {
        Rc::clone(&self.0)
    }
}

fn base(opened: &str) -> Result<Base<Notebook>, JsValue> {
    let opened: Opened = serde_json::from_str(opened).map_err(|error| {
        failure(
            "parse_error",
            &format!("Ward's answer is not read: {error}."),
        )
    })?;
    Ok(Base {
        seq: opened.seq,
        state: opened.state,
    })
}

impl Shared {
    /// Something is different here.
    fn stir(&self) {
        self.due.send_modify(|turn| *turn += 1);
        self.wire.changed();
    }

    /// More is confirmed, or a session was lost.
    fn confirm(&self) {
        self.changed.send_modify(|turn| *turn += 1);
    }

    async fn drive(&self) {
        let mut due = self.due.subscribe();
        let mut pause = SOON;
        while !self.closed.get() {
            let wants = self.book.borrow_mut().next_push();
            let Some(outgoing) = wants else {
                if due.changed().await.is_err() {
                    return;
                }
                continue;
            };
            // A browser that keeps nothing must not keep anybody from working.
            self.keep().await;
            let asked = Asked {
                method: "POST",
                path: &format!("{}/events", self.path),
                runtime: outgoing.token.clone(),
                content_type: Some("application/json"),
                body: Some(outgoing.body.as_bytes()),
            };
            let done = match self.wire.ask(asked).await {
                Ok(came) => self.answered(&outgoing, &came.answer()).await,
                Err(_) => false,
            };
            if done {
                pause = SOON;
            } else {
                self.wire.wait(pause).await;
                pause = (pause * 2).min(LATE);
                self.book.borrow_mut().again();
            }
            self.confirm();
            self.wire.changed();
        }
    }

    async fn answered(&self, outgoing: &Outgoing, answer: &Answer) -> bool {
        if let (403, 1, Some(session)) = (answer.status, outgoing.count, &outgoing.session) {
            tokio::select! {
                () = self.over(session) => {}
                () = self.wire.wait(REASON) => {}
            }
        }
        self.book.borrow_mut().answered(outgoing, answer)
    }

    /// Ready when the notebook says that a session is over.
    async fn over(&self, session: &SessionId) {
        let mut changed = self.changed.subscribe();
        while !self.book.borrow().is_over(session) && changed.changed().await.is_ok() {}
    }

    async fn keep_up(&self) {
        let mut due = self.due.subscribe();
        while !self.closed.get() {
            self.keep().await;
            if due.changed().await.is_err() {
                return;
            }
            // What a person wrote is only here; what others did can be had again.
            let waits = self.book.borrow().pending().next().is_none();
            if waits {
                self.wire.wait(LATER).await;
            }
        }
    }

    /// Keeps what is not kept yet, and waits for what others are just keeping.
    async fn keep(&self) -> bool {
        let taken = self.book.borrow_mut().take_kept();
        let mut done = true;
        if let Some(taken) = taken {
            self.keeping.send_modify(|writes| *writes += 1);
            done = self.wire.kept(taken).await;
            if !done {
                self.book.borrow_mut().was_not_kept();
            }
            self.keeping.send_modify(|writes| *writes -= 1);
        }
        // It is an error only where nobody keeps anything any more.
        let _ = self
            .keeping
            .subscribe()
            .wait_for(|writes| *writes == 0)
            .await;
        done
    }

    pub(crate) async fn asked(&self, asked: Asked<'_>) -> Result<Came, Unanswered> {
        let came = self.wire.ask(asked).await.map_err(Unanswered::Away)?;
        came.good()
    }

    fn token(&self, session: &SessionId) -> Option<String> {
        self.book.borrow().token(session).map(str::to_owned)
    }
}

impl NotebookStore for PageStore {
    fn user(&self) -> String {
        self.0.user.clone()
    }

    fn look<T>(&self, look: impl FnOnce(&Base<Notebook>) -> T) -> T {
        look(self.0.book.borrow().confirmed())
    }

    fn write(&self, session: &SessionId, event: NotebookEvent) -> EventId {
        let id = self.0.book.borrow_mut().say(session, event);
        self.0.stir();
        id
    }

    fn changed(&self) -> impl Future<Output = ()> {
        // It hears of what comes from now on, also before it is waited for.
        let mut changed = self.0.changed.subscribe();
        async move {
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lost(&self, session: &SessionId) -> Option<Lost> {
        let book = self.0.book.borrow();
        book.lost(session).map(|why| Lost(why.to_owned()))
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Announced, Unanswered> {
        let known = announcement.session_id.as_ref();
        let body = serde_json::to_vec(announcement);
        let body = body.map_err(|error| Unanswered::Refused(error.to_string()))?;
        let asked = Asked {
            method: "POST",
            path: &format!("{}/runtimes", self.0.path),
            runtime: known.and_then(|session| self.0.token(session)),
            content_type: Some("application/json"),
            body: Some(&body),
        };
        let given: Given = read(&self.0.asked(asked).await?)?;
        if let Some(token) = given.token {
            self.0.wire.token(given.session_id.as_str(), &token);
            let mut book = self.0.book.borrow_mut();
            book.set_token(given.session_id.clone(), token);
        }
        Ok(Announced {
            session_id: given.session_id,
            head: given.head,
            lease: Duration::from_secs(given.lease_s),
        })
    }

    async fn renew(&self, session: &SessionId) -> Result<Duration, Unanswered> {
        let asked = Asked {
            method: "POST",
            path: &format!("{}/runtimes/{session}/renew", self.0.path),
            runtime: self.0.token(session),
            ..Asked::default()
        };
        let given: Given = read(&self.0.asked(asked).await?)?;
        Ok(Duration::from_secs(given.lease_s))
    }

    async fn sleep(&self, time: Duration) {
        self.0.wire.wait(time).await;
    }

    async fn upload(
        &self,
        session: &SessionId,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ArtifactRef, Unanswered> {
        let beside = Beside {
            shared: Rc::clone(&self.0),
            token: self.0.token(session),
        };
        let kept = ArtifactClient::new(beside).upload(media_type, bytes).await;
        kept.map_err(|error| Unanswered::Refused(error.to_string()))
    }

    async fn ask(
        &self,
        _session: &SessionId,
        _execution: &ExecutionId,
        _question: Question,
    ) -> Option<String> {
        None
    }
}

pub(crate) fn read<T: for<'de> Deserialize<'de>>(came: &Came) -> Result<T, Unanswered> {
    serde_json::from_slice(&came.bytes)
        .map_err(|error| Unanswered::Refused(format!("Ward's answer is not read: {error}.")))
}
