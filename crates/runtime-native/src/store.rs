//! The store of a native agent: a replica of the notebook that follows it over HTTP.
//!
//! [`HttpStore`] is cheap to clone; [`HttpStore::sync`] has to be driven beside whatever uses it.

mod given;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt as _;
use notebook::{Notebook, NotebookEvent, Recorded, SessionId};
use runtime_core::{NotebookStore as _, Unanswered};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Seq;
use store::replica::{Base, Effect, Entry, EventId, Input, Replica};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::http::{Answer, Events, Http, Request};

/// How long to wait before Ward is asked again, at first and at most.
const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(5);
/// How long the notebook has to say why a session is over that Ward takes nothing of any more.
const REASON: Duration = Duration::from_secs(5);
/// How many events are pushed at once, and how many bytes of them; one goes however large it is.
const MOST: usize = 256;
const LARGEST: usize = 256 << 10;
/// Why a notebook cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Ward is not there.
    #[error("Ward cannot be reached: {0}. Is `ward serve` running?")]
    Away(String),
    /// Ward said no.
    #[error("{0}")]
    Refused(String),
    /// The token is not a person's.
    #[error("The token is not a person's. An agent of a notebook acts for a person.")]
    NotAPerson,
    /// What came cannot be read.
    #[error("Ward's answer is not what was expected: {0}")]
    Unreadable(String),
}

impl OpenError {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Away(_) => "disconnected",
            Self::Refused(_) => "denied",
            Self::NotAPerson => "forbidden",
            Self::Unreadable(_) => "parse_error",
        }
    }
}

/// A notebook's replica over HTTP. Clones are the same one.
pub struct HttpStore<H>(Rc<Shared<H>>);

impl<H> Clone for HttpStore<H> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

struct Shared<H> {
    http: H,
    /// The path of the notebook.
    path: String,
    user: String,
    /// The folder on Ward's machine that the notebook belongs to.
    workspace: String,
    state: RefCell<State>,
    /// More is confirmed, or a session was lost.
    changed: Notify,
    /// Something is to be pushed.
    due: Notify,
    /// Since when Ward cannot be reached, while it cannot.
    away: watch::Sender<Option<Instant>>,
}

struct State {
    replica: Replica<Notebook>,
    writer: String,
    /// What the replica wants to push: the last that it asked for counts.
    push: Option<(Seq, Vec<Entry<NotebookEvent>>)>,
    /// The token of each session.
    tokens: BTreeMap<SessionId, String>,
    lost: BTreeMap<SessionId, String>,
    /// How many events still go one at a time, because one among them was refused.
    alone: usize,
}

#[derive(Deserialize)]
struct Opened {
    seq: Seq,
    state: Notebook,
    notebook: Info,
}

#[derive(Deserialize)]
struct Info {
    workspace: String,
}

impl<H: Http> HttpStore<H> {
    /// Opens a notebook: who authenticated, and what it amounts to so far.
    pub async fn open(http: H, notebook: &str) -> Result<Self, OpenError> {
        let user = user(&http).await?;
        let path = format!("/notebooks/{}", encoded(notebook));
        let opened = get(&http, &path).await?;
        let opened: Opened = serde_json::from_value(opened)
            .map_err(|error| OpenError::Unreadable(error.to_string()))?;
        let base = Base {
            seq: opened.seq,
            state: opened.state,
        };
        let writer = random().map_err(OpenError::Unreadable)?;
        let replica = Replica::restored(writer.clone(), base, Vec::new(), 0);
        Ok(Self(Rc::new(Shared {
            http,
            path,
            user,
            workspace: opened.notebook.workspace,
            state: RefCell::new(State {
                replica,
                writer,
                push: None,
                tokens: BTreeMap::new(),
                lost: BTreeMap::new(),
                alone: 0,
            }),
            changed: Notify::new(),
            due: Notify::new(),
            away: watch::Sender::new(None),
        })))
    }

    /// The folder that the notebook belongs to, on Ward's machine.
    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.0.workspace
    }

    /// Writes something that a person may: an edit, or a wish.
    pub fn write(&self, event: NotebookEvent) -> EventId {
        let mut state = self.0.state.borrow_mut();
        let effects = state.replica.take(Input::Write(event));
        state.keep(effects);
        self.0.due.notify_one();
        EventId {
            writer: state.writer.clone(),
            number: state.replica.written(),
        }
    }

    /// Keeps the replica in step, for as long as it is driven: follows the notebook, pushes what is
    /// written here, and connects again where the connection is lost. Comes to its end only where
    /// Ward says that this notebook is not to be had.
    pub async fn sync(&self) -> String {
        let mut pause = SOON;
        loop {
            let from = self.0.state.borrow().replica.head();
            let path = format!("{}/events?from={from}", self.0.path);
            match self.0.http.follow(&path).await {
                Ok(Ok(events)) => {
                    pause = SOON;
                    self.0.away.send_replace(None);
                    self.feed(Input::Connected);
                    self.follow(events).await;
                    self.feed(Input::Disconnected);
                    self.0.state.borrow_mut().push = None;
                }
                Ok(Err(answer)) => match answer.unanswered() {
                    Unanswered::Refused(why) => return why,
                    Unanswered::Away(why) => tracing::debug!(why, "Ward takes no reader"),
                },
                Err(why) => tracing::debug!(why, "Ward cannot be reached"),
            }
            self.0.away.send_if_modified(|since| {
                let is_new = since.is_none();
                since.get_or_insert_with(Instant::now);
                is_new
            });
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LATE);
        }
    }

    /// Ready when Ward could not be reached for this long, in one go.
    pub async fn away_for(&self, long: Duration) {
        let mut away = self.0.away.subscribe();
        loop {
            let since = *away.borrow_and_update();
            let over = async {
                match since {
                    Some(since) => sleep_until(since + long).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                // Who tells is there for as long as this is.
                _ = away.changed() => {}
            }
        }
    }

    /// Follows the notebook and pushes, until the connection is lost.
    async fn follow(&self, mut events: Events) {
        let pushing = async {
            loop {
                let next = self.0.state.borrow_mut().push.take();
                match next {
                    Some((expected, entries)) => {
                        if let Err(why) = self.push(expected, entries).await {
                            tracing::debug!(why, "a push did not arrive");
                            return;
                        }
                    }
                    None => self.0.due.notified().await,
                }
            }
        };
        let following = async {
            while let Some(Ok(event)) = events.next().await {
                let Some(number) = event.id else { continue };
                let Ok(recorded) = serde_json::from_str::<Recorded>(&event.data) else {
                    // What cannot be read cannot be folded: the state is asked for as a whole.
                    tracing::warn!(number, "an event of the notebook cannot be read");
                    return self.reopen().await;
                };
                let after = Seq::new(number.saturating_sub(1));
                if after > self.0.state.borrow().replica.head() {
                    // Events that are no longer told one by one.
                    return self.reopen().await;
                }
                self.feed(Input::Pulled {
                    after,
                    entries: vec![recorded.into()],
                });
            }
        };
        tokio::select! {
            () = pushing => {}
            () = following => {}
        }
    }

    /// Goes on from what the notebook amounts to now.
    async fn reopen(&self) {
        let Ok(opened) = get(&self.0.http, &self.0.path).await else {
            return;
        };
        if let Ok(opened) = serde_json::from_value::<Opened>(opened) {
            let base = Base {
                seq: opened.seq,
                state: opened.state,
            };
            let mut state = self.0.state.borrow_mut();
            let effects = state.replica.jump(base);
            state.keep(effects);
            self.0.changed.notify_waiters();
            self.0.due.notify_one();
        }
    }

    /// Asks Ward to append. An error is that nobody knows whether it did.
    async fn push(&self, expected: Seq, entries: Vec<Entry<NotebookEvent>>) -> Result<(), String> {
        let token = self.token_for(&entries);
        let most = match self.0.state.borrow().alone {
            0 => MOST,
            _ => 1,
        };
        let (count, body) = body(expected, entries.iter().take(most));
        let answer = self
            .0
            .http
            .call(Request {
                method: "POST",
                path: format!("{}/events", self.0.path),
                runtime: token.as_ref().map(|(_, token)| token.as_str()),
                content_type: Some("application/json"),
                body,
            })
            .await?;
        if answer.is_good() {
            let head = answer.json()["head"].as_u64();
            let head = head.ok_or("Ward did not say where the notebook is.")?;
            {
                let mut state = self.0.state.borrow_mut();
                state.alone = state.alone.saturating_sub(count);
            }
            self.feed(Input::Accepted {
                expected,
                head: Seq::new(head),
            });
            return Ok(());
        }
        let failure = answer.json();
        if let Some(over) = failure["execution_id"].as_str() {
            // Ward ended that run meanwhile: what was still to be said of it is for nobody.
            self.drop_run(over);
            return Ok(());
        }
        if answer.status == 409 {
            let next = self.0.state.borrow().replica.head().next();
            let head = failure["head"].as_u64().map_or(next, Seq::new);
            self.feed(Input::Behind { head });
            return Ok(());
        }
        match answer.unanswered() {
            Unanswered::Away(why) => Err(why),
            Unanswered::Refused(why) => {
                if self.drops_output(count, &answer) {
                    return Ok(());
                }
                let mut session = token.map(|(session, _)| session);
                if let Some(its) = &session {
                    if answer.status != 403 {
                        // One that is still its own is ended: else what it runs would seem to go on.
                        let _ = self.end(its).await;
                    } else if timeout(REASON, self.over(its)).await.is_ok() {
                        // The notebook says why, and whoever has the session reads it there.
                        session = None;
                    }
                }
                self.refused(session, &answer, why);
                Ok(())
            }
        }
    }

    /// Where Ward refuses what is in an event and not who says it, the output that it is goes, and
    /// that it went is said in its place: it is no reason for its runtime to end. Which one of
    /// several it is shows when each goes alone. Whether that helps.
    fn drops_output(&self, count: usize, answer: &Answer) -> bool {
        if !matches!(answer.status, 400 | 413 | 422) {
            return false;
        }
        let mut state = self.0.state.borrow_mut();
        if count > 1 {
            state.alone = count;
            let effects = state.replica.take(Input::Retry);
            state.keep(effects);
        } else {
            let mut pending: Vec<_> = state.replica.pending().cloned().collect();
            let first = pending.first_mut();
            let Some((first, dropped)) =
                first.and_then(|one| one.event.instead().map(|it| (one, it)))
            else {
                return false;
            };
            let why = answer.sentence();
            tracing::warn!(why, "an output that Ward refused is dropped");
            first.event = dropped;
            state.alone = state.alone.saturating_sub(1);
            state.put_back(pending);
        }
        drop(state);
        self.0.due.notify_one();
        true
    }

    /// Ready when the notebook says that a session is over.
    async fn over(&self, session: &SessionId) {
        loop {
            let changed = self.changed();
            let is_over = self.look(|seen| {
                let session = seen.state.session(session);
                session.is_some_and(|session| !session.is_active())
            });
            if is_over {
                return;
            }
            changed.await;
        }
    }

    async fn end(&self, session: &SessionId) -> Result<Answer, Unanswered> {
        self.asked(Request {
            method: "DELETE",
            path: format!("{}/runtimes/{session}", self.0.path),
            ..Request::default()
        })
        .await
    }

    /// What was pushed will never be taken: it is let go of, and whoever wrote it is told.
    fn refused(&self, session: Option<SessionId>, answer: &Answer, why: String) {
        tracing::warn!(status = answer.status, why, "Ward refused what was written");
        let mut state = self.0.state.borrow_mut();
        state.keep_pending(|_| false);
        if let Some(session) = session {
            state.lost.insert(session, why);
        }
        drop(state);
        self.0.changed.notify_waiters();
    }

    fn drop_run(&self, over: &str) {
        let mut state = self.0.state.borrow_mut();
        state.keep_pending(|event| event.execution().is_none_or(|id| id.as_str() != over));
        drop(state);
        self.0.changed.notify_waiters();
        self.0.due.notify_one();
    }

    /// The session that these events are of, with its token.
    fn token_for(&self, entries: &[Entry<NotebookEvent>]) -> Option<(SessionId, String)> {
        let state = self.0.state.borrow();
        let of = |event: &NotebookEvent| match event {
            NotebookEvent::RuntimeStatus(event) => Some(event.session_id.clone()),
            NotebookEvent::RuntimeTerminated(event) => Some(event.session_id.clone()),
            event => {
                let run = state.replica.state().execution(event.execution()?)?;
                run.session_id.clone()
            }
        };
        let session = entries.iter().find_map(|entry| of(&entry.event))?;
        let token = state.tokens.get(&session)?.clone();
        Some((session, token))
    }

    /// Gives the replica something, and keeps what it wants done.
    fn feed(&self, input: Input<NotebookEvent>) {
        let mut state = self.0.state.borrow_mut();
        let before = state.replica.head();
        let effects = state.replica.take(input);
        state.keep(effects);
        let more = state.replica.head() > before;
        drop(state);
        self.0.due.notify_one();
        if more {
            self.0.changed.notify_waiters();
        }
    }
}

impl State {
    fn keep(&mut self, effects: Vec<Effect<NotebookEvent>>) {
        for effect in effects {
            match effect {
                Effect::Push { expected, entries } => self.push = Some((expected, entries)),
                // It lives in memory, and what is missing comes by the events that are followed.
                Effect::Keep { .. } | Effect::Pull { .. } => {}
            }
        }
    }

    /// Lets go of what is pending and not wanted any more.
    fn keep_pending(&mut self, wanted: impl Fn(&NotebookEvent) -> bool) {
        let pending = self.replica.pending();
        let pending = pending.filter(|entry| wanted(&entry.event)).cloned();
        self.put_back(pending.collect());
    }

    /// From now on this is pending.
    fn put_back(&mut self, pending: Vec<Entry<NotebookEvent>>) {
        self.replica = Replica::restored(
            self.writer.clone(),
            self.replica.confirmed().clone(),
            pending,
            self.replica.written(),
        );
        self.push = None;
        let effects = self.replica.take(Input::Connected);
        self.keep(effects);
    }
}

impl<H: Http> HttpStore<H> {
    /// A session's token.
    pub(crate) fn token(&self, session: &SessionId) -> Option<String> {
        self.0.state.borrow().tokens.get(session).cloned()
    }

    /// The notebook's path.
    pub(crate) fn path(&self) -> &str {
        &self.0.path
    }

    pub(crate) async fn asked(&self, request: Request<'_>) -> Result<Answer, Unanswered> {
        let answer = self.0.http.call(request).await;
        let answer = answer.map_err(Unanswered::Away)?;
        match answer.is_good() {
            true => Ok(answer),
            false => Err(answer.unanswered()),
        }
    }
}

/// The body of a push: as many of the events as are pushed at once, and how many that is.
fn body<'a>(
    expected: Seq,
    entries: impl Iterator<Item = &'a Entry<NotebookEvent>>,
) -> (usize, Vec<u8>) {
    let mut size = 0;
    let mut sent = Vec::new();
    for entry in entries {
        let entry = json!({"id": entry.id, "event": entry.event}).to_string();
        size += entry.len();
        if !sent.is_empty() && size > LARGEST {
            break;
        }
        sent.push(entry);
    }
    let body = format!(
        r#"{{"expected":{expected},"entries":[{}]}}"#,
        sent.join(",")
    );
    (sent.len(), body.into_bytes())
}

/// Who the token authenticates.
async fn user(http: &impl Http) -> Result<String, OpenError> {
    let health = get(http, "/healthz").await?;
    let actor = health["actor"].as_str().ok_or_else(|| {
        OpenError::Refused(
            "Ward does not know this token. `ward tokens add --person NAME` makes one.".to_owned(),
        )
    })?;
    let person = actor.strip_prefix("person:").ok_or(OpenError::NotAPerson)?;
    Ok(person.to_owned())
}

async fn get(http: &impl Http, path: &str) -> Result<Value, OpenError> {
    let request = Request {
        method: "GET",
        path: path.to_owned(),
        ..Request::default()
    };
    let answer = http.call(request).await.map_err(OpenError::Away)?;
    match answer.is_good() {
        true => Ok(answer.json()),
        false => Err(OpenError::Refused(answer.sentence())),
    }
}

pub(crate) fn read<T: for<'de> Deserialize<'de>>(answer: &Answer) -> Result<T, Unanswered> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| Unanswered::Refused(format!("Ward's answer cannot be read: {error}")))
}

/// Text as a part of an address: whatever it is, it must not change where that leads.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A name that nobody else has, and nobody can guess.
pub(crate) fn random() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
