//! One notebook: its state in memory, its events in the store, who follows it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Actor;
use notebook::{ExecutionId, Notebook, NotebookEvent, Recorded, SessionId, Snapshot};
use protocol::{ErrorKind, Failure};
use serde::Deserialize as _;
use store::replica::{Entry, EventId, Fold as _};
use store::{Event, Millis, Seq, Store};
use tokio::sync::{broadcast, watch};

use crate::check::{self, Speaker};
use crate::comms::Comms;
use crate::index::Line;
use crate::log::{Log, recorded, told, written};
use crate::sessions::Lease;
use crate::wire::{Appended, Compacted, NotebookInfo, PostEvents, Present};

#[cfg(test)]
mod tests;

/// Who writes what Ward itself says.
pub(crate) const WARD: &str = "ward";
/// What the writers' names begin with under which Ward numbers events that came without ids.
const GIVEN: &str = "http:";
/// How many events are at hand for whoever follows.
const RECENT: usize = 1_024;
/// How many wait for one who is slow to hear who is there.
const PASSING: usize = 64;
/// How many events are told at a time.
const PAGE: usize = 256;
/// With so many segments behind it, a notebook is compacted by itself.
const MAX_SEGMENTS: usize = 500;

/// Something that is told and never kept.
pub type Passing = Present;

/// One notebook.
pub struct Book<S: Store> {
    pub(crate) id: String,
    info: Mutex<NotebookInfo>,
    /// Whoever holds it appends: one after the other.
    turn: tokio::sync::Mutex<Turn<S>>,
    /// For those who read beside it.
    reading: Mutex<Arc<Log<S>>>,
    state: Mutex<Snapshot>,
    recent: Mutex<VecDeque<Arc<Event>>>,
    head: watch::Sender<Seq>,
    passing: broadcast::Sender<Passing>,
    pub(crate) comms: Comms,
    pub(crate) leases: Mutex<HashMap<SessionId, Lease>>,
    /// What people answered, until the runtime has it. It is kept nowhere else.
    pub(crate) answers: Mutex<HashMap<ExecutionId, String>>,
    gone: watch::Sender<bool>,
}

impl<S: Store> std::fmt::Debug for Book<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Book").field("id", &self.id).finish()
    }
}

/// What belongs to whoever appends.
struct Turn<S: Store> {
    log: Log<S>,
    /// The notebook once more: what is to be appended is checked on it and taken in here first, and
    /// in what others see when it is written. So an append copies nothing of what was there before.
    /// None where it ran ahead of what was written, or never was.
    ahead: Option<Notebook>,
}

/// What was appended, and what Ward has to do about it.
pub(crate) struct Taken {
    pub(crate) appended: Appended,
    /// The events that were new, with who said them.
    pub(crate) new: Vec<NotebookEvent>,
}

impl<S: Store> Book<S> {
    /// Opens what is in the store.
    pub(crate) async fn open(
        store: Arc<S>,
        info: NotebookInfo,
        bases: Vec<u64>,
    ) -> Result<Self, Failure> {
        let log = Log::new(Arc::clone(&store), info.id.clone(), bases.clone());
        let reading = Log::new(store, info.id.clone(), bases);
        let state = log.open().await?;
        Ok(Self {
            id: info.id.clone(),
            info: Mutex::new(info),
            turn: tokio::sync::Mutex::new(Turn { log, ahead: None }),
            reading: Mutex::new(Arc::new(reading)),
            recent: Mutex::default(),
            head: watch::Sender::new(state.seq),
            state: Mutex::new(state),
            passing: broadcast::Sender::new(PASSING),
            comms: Comms::default(),
            leases: Mutex::default(),
            answers: Mutex::default(),
            gone: watch::Sender::new(false),
        })
    }

    /// About it.
    #[must_use]
    pub fn info(&self) -> NotebookInfo {
        lock(&self.info).clone()
    }

    /// What its events amount to, and up to which.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        lock(&self.state).clone()
    }

    /// Looks at the state without a copy of it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Notebook) -> T) -> T {
        look(&lock(&self.state).state)
    }

    /// Told of every event.
    #[must_use]
    pub fn heads(&self) -> watch::Receiver<Seq> {
        self.head.subscribe()
    }

    /// Told who is there.
    #[must_use]
    pub fn passing(&self) -> broadcast::Receiver<Passing> {
        self.passing.subscribe()
    }

    /// Ready when it was deleted.
    pub async fn gone(&self) {
        let mut gone = self.gone.subscribe();
        // The sender lives in `self`.
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// Says where somebody is.
    pub fn present(&self, actor: &Actor, presence: notebook::Presence) -> Result<(), Failure> {
        if presence.client.len() > 100 {
            return Err(
                Failure::new(ErrorKind::InvalidParams, "`client` has at most 100 bytes.")
                    .with("field", "client"),
            );
        }
        // Nobody may be listening.
        let _ = self.passing.send(Present {
            actor: actor.name(),
            presence,
        });
        Ok(())
    }

    /// Events after `after`, in order, some at a time.
    pub async fn events(&self, after: Seq) -> Result<Vec<Arc<Event>>, Failure> {
        {
            let recent = lock(&self.recent);
            if let Some(first) = recent.front()
                && first.seq <= after.next()
            {
                let passed = after.next().get() - first.seq.get();
                let passed = usize::try_from(passed).unwrap_or(usize::MAX);
                return Ok(recent.iter().skip(passed).take(PAGE).cloned().collect());
            }
        }
        let log = Arc::clone(&lock(&self.reading));
        let mut events = Vec::new();
        for event in log.read(after, PAGE).await? {
            let seq = event.seq;
            // What an older Ward wrote is told in today's words.
            events.push(Arc::new(told(&recorded(event)?, seq)));
        }
        Ok(events)
    }

    /// Appends what an actor says, once. Where they speak for a runtime, `session` is it.
    pub(crate) async fn post(
        &self,
        actor: &Actor,
        session: Option<&SessionId>,
        asked: PostEvents,
    ) -> Result<Taken, Failure> {
        let name = actor.name();
        let mut turn = self.turn.lock().await;
        let (head, mut next) = self.ahead(&mut turn);
        let entries = with_ids(&next, &name, asked.entries, asked.events)?;
        let used = entries.iter().map(|(id, _)| id).filter(|id| next.has(id));
        let used: HashSet<EventId> = used.cloned().collect();
        let is_new = entries.iter().any(|(id, _)| !used.contains(id));
        if is_new
            && asked
                .expected
                .is_some_and(|expected| expected != head.get())
        {
            let why = match asked.expected > Some(head.get()) {
                true => "`expected` is ahead of that. Read the notebook, and go on from its `seq`.",
                false => "others were first. Read on from there and try again.",
            };
            return Err(Failure::new(
                ErrorKind::Conflict,
                format!("The notebook is at event {head}: {why}"),
            )
            .with("head", head.get()));
        }
        let known = self.find(&used).await?;
        let mut new: Vec<Recorded> = Vec::with_capacity(entries.len());
        for (id, event) in entries {
            if next.owner_of(&id.writer).is_some_and(|owner| owner != name) {
                return Err(Failure::new(
                    ErrorKind::Forbidden,
                    "Somebody else writes under this name. Choose another `writer`.",
                )
                .with("field", "writer"));
            }
            if next.has(&id) {
                let now = new.iter().find(|one| one.id == id).map(|one| &one.event);
                match now.or_else(|| known.get(&id)) {
                    Some(known) if *known == event => continue,
                    known => {
                        let failure = taken_by_another(&id, known, next.last_of(&id.writer));
                        // Who is behind reads on, and finds there what became of it.
                        return Err(match asked.expected {
                            Some(expected) if expected < head.get() => {
                                failure.with("head", head.get())
                            }
                            Some(_) | None => failure,
                        });
                    }
                }
            }
            let speaker = Speaker { actor, session };
            check::may(&next, &speaker, &event)?;
            let follow = check::follows(&next, &event);
            for (actor, event) in std::iter::once((name.as_str(), event))
                .chain(follow.into_iter().map(|event| (WARD, event)))
            {
                let id = match actor == WARD {
                    true => ward_id(&next),
                    false => id.clone(),
                };
                new.push(take(&mut next, id, event, actor));
            }
        }
        self.write(&mut turn, head, next, new).await
    }

    /// Where the notebook is, and the copy that may run ahead of it. It is given back when what was
    /// taken in is written; where that fails, or is given up, the next one makes another.
    fn ahead(&self, turn: &mut Turn<S>) -> (Seq, Notebook) {
        let state = lock(&self.state);
        let next = turn.ahead.take();
        (state.seq, next.unwrap_or_else(|| state.state.clone()))
    }

    /// Appends what Ward says of it. `say` looks at the notebook as it is then; nothing is appended
    /// where it has nothing to say.
    pub(crate) async fn say(
        &self,
        say: impl FnOnce(&Notebook) -> Vec<NotebookEvent>,
    ) -> Result<Taken, Failure> {
        self.say_for(WARD, say).await
    }

    /// The same of what somebody did, and not Ward by itself.
    pub(crate) async fn say_for(
        &self,
        actor: &str,
        say: impl FnOnce(&Notebook) -> Vec<NotebookEvent>,
    ) -> Result<Taken, Failure> {
        let mut turn = self.turn.lock().await;
        let (head, mut next) = self.ahead(&mut turn);
        let mut new = Vec::new();
        for event in say(&next) {
            let id = ward_id(&next);
            new.push(take(&mut next, id, event, actor));
        }
        self.write(&mut turn, head, next, new).await
    }

    async fn write(
        &self,
        turn: &mut Turn<S>,
        head: Seq,
        next: Notebook,
        new: Vec<Recorded>,
    ) -> Result<Taken, Failure> {
        if new.is_empty() {
            turn.ahead = Some(next);
            return Ok(Taken {
                appended: Appended {
                    head: head.get(),
                    appended: 0,
                },
                new: Vec::new(),
            });
        }
        if *self.gone.borrow() {
            return Err(Failure::new(
                ErrorKind::Unknown,
                "The notebook was deleted meanwhile.",
            ));
        }
        let events = new.iter().map(written).collect::<Result<_, _>>()?;
        let mut batch = vec![turn.log.append(head, events)?];
        let titled = new.iter().rev().find_map(|recorded| match &recorded.event {
            NotebookEvent::NotebookTitled(event) => Some(event.title.clone()),
            _ => None,
        });
        if let Some(title) = &titled {
            let (id, title) = (self.id.clone(), title.clone());
            batch.push(Line::Titled { id, title }.append()?);
        }
        turn.log.write(batch).await?;
        if let Some(title) = titled {
            lock(&self.info).title = title;
        }
        let mut at = head;
        {
            let mut recent = lock(&self.recent);
            for recorded in &new {
                at = at.next();
                recent.push_back(Arc::new(told(recorded, at)));
            }
            let surplus = recent.len().saturating_sub(RECENT);
            recent.drain(..surplus);
        }
        let mut events = Vec::with_capacity(new.len());
        {
            let mut state = lock(&self.state);
            for recorded in new {
                let entry: Entry<NotebookEvent> = recorded.into();
                state.state.apply(&entry);
                events.push(entry.event);
            }
            state.seq = at;
        }
        turn.ahead = Some(next);
        self.head.send_replace(at);
        // The events are there; that the next start is quicker is not worth a failure.
        if let Err(failure) = self.keep_short(turn).await {
            tracing::warn!(%failure, "a notebook's snapshot could not be written");
        }
        Ok(Taken {
            appended: Appended {
                head: at.get(),
                appended: events.len(),
            },
            new: events,
        })
    }

    async fn keep_short(&self, turn: &mut Turn<S>) -> Result<(), Failure> {
        let Turn { log, ahead } = turn;
        if !log.is_long(*self.head.borrow()) {
            return Ok(());
        }
        // What changed since the last time is there twice; now both share it again.
        *ahead = None;
        let before = log.bases().len();
        log.cut(&self.snapshot()).await?;
        if log.bases().len() > MAX_SEGMENTS {
            self.drop_old(log).await?;
        }
        if log.bases().len() != before {
            self.read_from(log);
        }
        Ok(())
    }

    async fn drop_old(&self, log: &mut Log<S>) -> Result<(), Failure> {
        log.drop_old().await?;
        let through = log.bases().first().copied().unwrap_or_default();
        lock(&self.info).compacted = Some(Compacted {
            through,
            events: through,
        });
        let mut recent = lock(&self.recent);
        recent.retain(|event| event.seq.get() > through);
        Ok(())
    }

    fn read_from(&self, log: &Log<S>) {
        let bases = log.bases().to_vec();
        let log = Log::new(Arc::clone(log.store()), self.id.clone(), bases);
        *lock(&self.reading) = Arc::new(log);
    }

    /// Keeps what all events so far amount to, drops them, and says what it dropped.
    pub(crate) async fn compact(&self) -> Result<Compacted, Failure> {
        let Turn { log, ahead } = &mut *self.turn.lock().await;
        *ahead = None;
        let before = log.bases().first().copied().unwrap_or_default();
        log.cut(&self.snapshot()).await?;
        self.drop_old(log).await?;
        self.read_from(log);
        let through = log.bases().first().copied().unwrap_or_default();
        Ok(Compacted {
            through,
            events: through - before,
        })
    }

    /// Everything that is there of it goes.
    pub(crate) async fn delete(&self) -> Result<(), Failure> {
        let Turn { log, ahead } = &mut *self.turn.lock().await;
        *ahead = None;
        log.say_deleted().await?;
        self.gone.send_replace(true);
        log.remove().await
    }

    /// The events under these ids, as far as they are still there.
    async fn find(
        &self,
        wanted: &HashSet<EventId>,
    ) -> Result<HashMap<EventId, NotebookEvent>, Failure> {
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let mut look = |events: &[Arc<Event>]| {
            for event in events {
                if let Some(id) = event.data.get("id")
                    && let Ok(id) = EventId::deserialize(id)
                    && wanted.contains(&id)
                {
                    let known = recorded(Event::clone(event))?;
                    found.insert(id, known.event);
                }
            }
            Ok::<_, Failure>(found.len() == wanted.len())
        };
        // What is sent again was mostly sent a moment ago.
        let recent: Vec<_> = lock(&self.recent).iter().cloned().collect();
        let mut all = look(&recent)?;
        let first = lock(&self.reading).bases().first().copied();
        let mut after = Seq::new(first.unwrap_or_default());
        while !all {
            let events = self.events(after).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            all = look(&events)?;
        }
        Ok(found)
    }
}

/// Refuses an event under an id that is not its own.
fn taken_by_another(id: &EventId, known: Option<&NotebookEvent>, last: u64) -> Failure {
    let EventId { writer, number } = id;
    let next = last + 1;
    Failure::new(
        ErrorKind::Conflict,
        match known {
            Some(_) => format!("Event {number} of `{writer}` was another one. An id is used once."),
            None => format!(
                "`{writer}` is at event {last}, and its event {number} was passed over or is gone with what was compacted, so that this cannot be told to be the same. Read the notebook; what is not in it goes under {next}."
            ),
        },
    )
}

/// Gives ids to the events that have none: numbers under a name that is the actor's alone.
fn with_ids(
    notebook: &Notebook,
    actor: &str,
    entries: Vec<crate::wire::PostEntry>,
    events: Vec<NotebookEvent>,
) -> Result<Vec<(EventId, NotebookEvent)>, Failure> {
    if entries.iter().any(|entry| {
        let writer = &entry.id.writer;
        writer.is_empty() || writer.len() > 100 || entry.id.number == 0
    }) {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            "`writer` has 1 to 100 bytes, and `number` is counted from 1.",
        )
        .with("field", "id"));
    }
    if entries
        .iter()
        .any(|entry| entry.id.writer.starts_with(GIVEN))
    {
        return Err(Failure::new(
            ErrorKind::Forbidden,
            format!("Ward gives the names that begin with `{GIVEN}`. Choose another `writer`."),
        )
        .with("field", "writer"));
    }
    let mut all: Vec<_> = entries
        .into_iter()
        .map(|entry| {
            let id = EventId {
                writer: entry.id.writer,
                number: entry.id.number,
            };
            (id, entry.event)
        })
        .collect();
    if !events.is_empty() {
        let writer = format!("{GIVEN}{actor}");
        let first = notebook.last_of(&writer) + 1;
        for (number, event) in (first..).zip(events) {
            let writer = writer.clone();
            all.push((EventId { writer, number }, event));
        }
    }
    Ok(all)
}

fn ward_id(notebook: &Notebook) -> EventId {
    EventId {
        writer: WARD.to_owned(),
        number: notebook.last_of(WARD) + 1,
    }
}

fn take(notebook: &mut Notebook, id: EventId, event: NotebookEvent, actor: &str) -> Recorded {
    let at: Millis = gate::now();
    let entry = Entry {
        id,
        event,
        actor: Some(actor.to_owned()),
        at: Some(at),
    };
    notebook.apply(&entry);
    Recorded {
        id: entry.id,
        event: entry.event,
        actor: actor.to_owned(),
        at,
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
