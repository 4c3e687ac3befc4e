//! The replica with what is to be pushed, kept and told: plain state, which does nothing by itself.

use std::collections::BTreeMap;

use notebook::{Author, Notebook, NotebookEvent, Recorded, SessionId};
use serde_json::{Value, json};
use store::Seq;
use store::replica::{Base, Effect, Entry, EventId, Input, Replica};

use crate::kept::{Kept, Tail, Unreadable};

/// How many events are pushed at once, and about how many bytes of them; one goes however large it
/// is.
const MOST: usize = 256;
const LARGEST: usize = 256 << 10;

/// A run can be asked for only over a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no connection to Ward just now. Cells can be edited, but not run.")]
pub struct Offline;

/// An event that Ward will never take, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The event.
    pub event: NotebookEvent,
    /// In Ward's words.
    pub why: String,
}

/// What Ward answered to a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body, as JSON; null where it is none.
    pub body: Value,
}

/// A push: as many of the pending events as go at once, for one session at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Where the notebook has to be.
    pub expected: Seq,
    /// The first of the events.
    pub first: Option<EventId>,
    /// How many there are.
    pub count: usize,
    /// The runtime session that said some of them.
    pub session: Option<SessionId>,
    /// Its token.
    pub token: Option<String>,
    /// The body of the request.
    pub body: String,
}

/// A page's replica of a notebook.
#[derive(Debug)]
pub struct Book {
    replica: Replica<Notebook>,
    writer: String,
    /// What the replica wants to push: the last that it asked for counts.
    push: Option<(Seq, Vec<Entry<NotebookEvent>>)>,
    /// How many events still go one at a time, because one among them was refused.
    alone: usize,
    connected: bool,
    /// Which session an event is of, by its number, for what is pending.
    said_by: BTreeMap<u64, SessionId>,
    tokens: BTreeMap<SessionId, String>,
    lost: BTreeMap<SessionId, String>,
    refused: Vec<Refused>,
    tail: Tail,
}

impl Book {
    /// A replica that begins with what the notebook amounts to. `writer` is no other replica's name.
    #[must_use]
    pub fn opened(writer: &str, base: Base<Notebook>) -> Self {
        let replica = Replica::restored(writer, base, Vec::new(), 0);
        let mut tail = Tail::default();
        tail.reset();
        Self::of(writer, replica, tail)
    }

    /// A replica as it was kept.
    pub fn restored(writer: &str, base: &str, live: &str) -> Result<Self, Unreadable> {
        let (replica, tail) = Tail::restored(writer, base, live)?;
        Ok(Self::of(writer, replica, tail))
    }

    fn of(writer: &str, replica: Replica<Notebook>, tail: Tail) -> Self {
        Self {
            replica,
            writer: writer.to_owned(),
            push: None,
            alone: 0,
            connected: false,
            said_by: BTreeMap::new(),
            tokens: BTreeMap::new(),
            lost: BTreeMap::new(),
            refused: Vec::new(),
            tail,
        }
    }

    /// What is seen here, with what is pending.
    #[must_use]
    pub fn state(&self) -> &Notebook {
        self.replica.state()
    }

    /// What Ward has confirmed.
    #[must_use]
    pub fn confirmed(&self) -> &Base<Notebook> {
        self.replica.confirmed()
    }

    /// What is only here so far.
    pub fn pending(&self) -> impl Iterator<Item = &Entry<NotebookEvent>> {
        self.replica.pending()
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Writes what a person may: an edit at any time, a wish only where it can be heard at once.
    pub fn write(&mut self, event: NotebookEvent) -> Result<EventId, Offline> {
        match event.author() {
            Author::Requester if !self.connected => Err(Offline),
            Author::Editor | Author::Requester | Author::Runtime | Author::Ward => {
                Ok(self.take_in(event))
            }
        }
    }

    /// Writes what a runtime session says.
    pub fn say(&mut self, session: &SessionId, event: NotebookEvent) -> EventId {
        let id = self.take_in(event);
        self.said_by.insert(id.number, session.clone());
        id
    }

    fn take_in(&mut self, event: NotebookEvent) -> EventId {
        self.feed(Input::Write(event));
        EventId {
            writer: self.writer.clone(),
            number: self.replica.written(),
        }
    }

    /// There is a connection.
    pub fn connect(&mut self) {
        self.connected = true;
        self.feed(Input::Connected);
    }

    /// There is none any more. Runs that were asked for and not confirmed are not asked for later:
    /// nobody knows what the person wants by then.
    pub fn disconnect(&mut self) {
        self.connected = false;
        self.push = None;
        self.feed(Input::Disconnected);
        let why = "The connection was lost before Ward confirmed it.";
        self.let_go(|entry| entry.event.author() == Author::Requester, Some(why));
    }

    /// Nobody knows what became of a push: it is sent again.
    pub fn again(&mut self) {
        self.feed(Input::Retry);
    }

    /// Events as Ward told them, each with its number. Whether they could be taken; else the whole
    /// state has to be asked for.
    pub fn told(&mut self, events: Vec<(u64, Value)>) -> bool {
        let mut first = None;
        let mut entries: Vec<Entry<NotebookEvent>> = Vec::with_capacity(events.len());
        for (at, (number, event)) in events.into_iter().enumerate() {
            let before = number.saturating_sub(1);
            let first = *first.get_or_insert(before);
            let Ok(event) = serde_json::from_value::<Recorded>(event) else {
                return false;
            };
            if u64::try_from(at).is_ok_and(|at| first + at != before) {
                return false;
            }
            entries.push(event.into());
        }
        let after = Seq::new(first.unwrap_or_default());
        if after > self.replica.head() {
            return false;
        }
        let mut wishes: Vec<_> = self.replica.pending().cloned().collect();
        wishes.retain(|entry| {
            let told = entries.iter().any(|told| told.id == entry.id);
            entry.event.author() == Author::Requester && !told
        });
        self.feed(Input::Pulled { after, entries });
        // What lost its meaning by what others did is not asked for, and whoever wished it is told.
        wishes.retain(|wish| self.replica.pending().all(|entry| entry.id != wish.id));
        self.tell(
            wishes,
            "Somebody else changed the cell before Ward confirmed it.",
        );
        true
    }

    /// Goes on from what the notebook amounts to now.
    pub fn jump(&mut self, base: Base<Notebook>) {
        let later = base.seq > self.replica.head();
        let effects = self.replica.jump(base);
        if later {
            self.tail.reset();
        }
        self.take_up(effects);
    }

    /// What is to be pushed next.
    pub fn next_push(&mut self) -> Option<Outgoing> {
        let (expected, entries) = self.push.take()?;
        let most = if self.alone > 0 { 1 } else { MOST };
        let mut session: Option<&SessionId> = None;
        let mut sent: Vec<Value> = Vec::new();
        let mut bytes = 0;
        for entry in entries.iter().take(most) {
            let of = self.said_by.get(&entry.id.number);
            let of = of.filter(|_| entry.id.writer == self.writer);
            if let (Some(of), Some(session)) = (of, session)
                && of != session
            {
                break;
            }
            session = session.or(of);
            let one = json!({ "id": entry.id, "event": entry.event });
            bytes += one.to_string().len();
            if bytes > LARGEST && !sent.is_empty() {
                break;
            }
            sent.push(one);
        }
        Some(Outgoing {
            expected,
            first: entries.first().map(|entry| entry.id.clone()),
            count: sent.len(),
            token: session.and_then(|session| self.tokens.get(session).cloned()),
            session: session.cloned(),
            body: json!({ "expected": expected, "entries": sent }).to_string(),
        })
    }

    /// What Ward answered to a push. `false` where it is to be asked again later.
    pub fn answered(&mut self, outgoing: &Outgoing, answer: &Answer) -> bool {
        let body = &answer.body;
        match answer.status {
            200..300 => {
                self.alone = self.alone.saturating_sub(outgoing.count);
                let head = body["head"].as_u64().map(Seq::new);
                self.feed(Input::Accepted {
                    expected: outgoing.expected,
                    head: head.unwrap_or(outgoing.expected),
                });
            }
            // Signed out, gone or busy: nothing of what was written is refused by that.
            401 | 404 | 408 | 410 | 425 | 429 | 500.. => return false,
            // So it is where nobody looked at the events: not Ward, or for another host's page.
            403 if body["kind"] != "forbidden" => return false,
            409 if body["head"].is_u64() => {
                let head = body["head"].as_u64().map(Seq::new).unwrap_or_default();
                self.feed(Input::Behind { head });
            }
            409 if self.drop_run(body) => {}
            // One of them is refused: which one shows when each goes alone.
            _ if outgoing.count > 1 => {
                self.alone = outgoing.count;
                self.feed(Input::Retry);
            }
            // An output that cannot be kept is no reason for its runtime to end.
            400 | 413 | 422 if self.drop_output(outgoing) => {}
            _ => self.refuse(outgoing, body),
        }
        true
    }

    /// Where a run is over, what was still to be said of it is for nobody.
    fn drop_run(&mut self, body: &Value) -> bool {
        let Some(over) = body["execution_id"].as_str() else {
            return false;
        };
        self.let_go(
            |entry| {
                let about = entry.event.execution();
                entry.event.author() == Author::Runtime
                    && about.is_some_and(|id| id.as_str() == over)
            },
            None,
        )
    }

    /// Puts in the place of an event that was refused that it was dropped. Whether it is the output
    /// of a runtime.
    fn drop_output(&mut self, outgoing: &Outgoing) -> bool {
        let mut pending: Vec<_> = self.replica.pending().cloned().collect();
        let first = pending
            .iter_mut()
            .find(|entry| Some(&entry.id) == outgoing.first.as_ref())
            .filter(|_| outgoing.session.is_some());
        let Some((first, dropped)) = first.and_then(|one| one.event.instead().map(|it| (one, it)))
        else {
            return false;
        };
        first.event = dropped;
        self.alone = self.alone.saturating_sub(1);
        self.put_back(pending);
        true
    }

    fn refuse(&mut self, outgoing: &Outgoing, body: &Value) {
        self.alone = self.alone.saturating_sub(1);
        let why = body["error"].as_str().unwrap_or("Ward refused it.");
        let gone = match &outgoing.session {
            // Its session is not its own any more, so nothing else that it said will be taken.
            Some(session) => {
                // Where the notebook says why, whoever has the session reads it there.
                if !self.is_over(session) {
                    self.lost.insert(session.clone(), why.to_owned());
                }
                let said_by = self.said_by.clone();
                let writer = self.writer.clone();
                self.let_go(
                    |entry| {
                        entry.id.writer == writer && said_by.get(&entry.id.number) == Some(session)
                    },
                    None,
                )
            }
            None => self.let_go(
                |entry| Some(&entry.id) == outgoing.first.as_ref(),
                Some(why),
            ),
        };
        if !gone {
            self.feed(Input::Retry);
        }
    }

    /// Lets go of pending events, and says whether there were any; where a reason is given, the page
    /// is told of each.
    fn let_go(&mut self, which: impl Fn(&Entry<NotebookEvent>) -> bool, why: Option<&str>) -> bool {
        let (gone, kept): (Vec<_>, Vec<_>) = self.replica.pending().cloned().partition(&which);
        if gone.is_empty() {
            return false;
        }
        self.put_back(kept);
        if let Some(why) = why {
            self.tell(gone, why);
        }
        true
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
        self.tail.more(Vec::new());
        if self.connected {
            self.feed(Input::Connected);
        }
    }

    /// The page is told of what is gone.
    fn tell(&mut self, gone: Vec<Entry<NotebookEvent>>, why: &str) {
        let refused = gone.into_iter().map(|entry| Refused {
            event: entry.event,
            why: why.to_owned(),
        });
        self.refused.extend(refused);
    }

    /// What was refused since this was asked last.
    pub fn take_refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    /// What is to be kept before anything is sent.
    pub fn take_kept(&mut self) -> Option<Kept> {
        self.tail.take(&self.replica)
    }

    /// What was to be kept was not: the next time all of it is.
    pub fn was_not_kept(&mut self) {
        self.tail.reset();
    }

    /// A session's token, for what it says.
    pub fn set_token(&mut self, session: SessionId, token: String) {
        self.lost.remove(&session);
        self.tokens.insert(session, token);
    }

    /// A session's token.
    #[must_use]
    pub fn token(&self, session: &SessionId) -> Option<&str> {
        self.tokens.get(session).map(String::as_str)
    }

    /// Why a session is not its agent's any more, where it is not.
    #[must_use]
    pub fn lost(&self, session: &SessionId) -> Option<&str> {
        self.lost.get(session).map(String::as_str)
    }

    /// Whether the notebook says that a session is over.
    #[must_use]
    pub fn is_over(&self, session: &SessionId) -> bool {
        let session = self.replica.confirmed().state.session(session);
        session.is_some_and(|session| !session.is_active())
    }

    fn feed(&mut self, input: Input<NotebookEvent>) {
        let effects = self.replica.take(input);
        self.take_up(effects);
    }

    fn take_up(&mut self, effects: Vec<Effect<NotebookEvent>>) {
        for effect in effects {
            match effect {
                Effect::Keep { confirmed, pending } => {
                    self.tail.more(confirmed);
                    let first = pending
                        .iter()
                        .find(|entry| entry.id.writer == self.writer)
                        .map_or(self.replica.written() + 1, |entry| entry.id.number);
                    self.said_by = self.said_by.split_off(&first);
                }
                Effect::Push { expected, entries } => self.push = Some((expected, entries)),
                // What is missing comes by the stream that is followed.
                Effect::Pull { .. } => {}
            }
        }
    }
}
