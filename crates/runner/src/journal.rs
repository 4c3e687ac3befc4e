//! What is written of sessions, before it is told: the events that clients follow, the history that
//! the model is told, and the index of all sessions. What belongs together is written together.

use gate::now;
use protocol::session::{SessionEvent, TextDelta};
use protocol::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use store::{Append, Expected, Json, NewEvent, Seq, Store, StoreError, StreamName};

use crate::runner::Inner;
use crate::session::history::{Entry, History};
use crate::session::lately::Fresh;
use crate::session::record::{Progress, Record};
use crate::session::{End, Session, stream};

/// How many events are read at a time.
const PAGE: usize = 256;
/// The stream of all sessions.
const INDEX: &str = "sessions";

/// An entry of the index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Listed {
    /// There is a new one.
    Created(Box<Record>),
    /// It is further.
    Moved {
        id: String,
        #[serde(flatten)]
        progress: Box<Progress>,
    },
    /// It is gone.
    Deleted { id: String },
}

/// What is to be written at once.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) events: Vec<SessionEvent>,
    pub(crate) entries: Vec<Entry>,
}

impl Page {
    pub(crate) fn event(event: SessionEvent) -> Self {
        Self {
            events: vec![event],
            entries: Vec::new(),
        }
    }

    pub(crate) fn and(mut self, event: SessionEvent) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn entry(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }
}

impl<S: Store> Inner<S> {
    /// Writes events that change nothing but what is told.
    pub(crate) async fn tell(
        &self,
        session: &Session,
        events: &[SessionEvent],
    ) -> Result<Seq, Failure> {
        let append = self.events(session, events)?;
        self.append(session, vec![append]).await
    }

    /// Writes a page of a session: `pen` is its pen, with its history loaded.
    pub(crate) async fn write(
        &self,
        session: &Session,
        history: &mut History,
        page: Page,
        change: impl FnOnce(&mut Progress),
    ) -> Result<Seq, Failure> {
        let before = session.record().progress.clone();
        let mut progress = before.clone();
        change(&mut progress);
        progress.updated_at = now().0;
        let mut batch = Vec::with_capacity(3);
        batch.push(self.events(session, &page.events)?);
        if !page.entries.is_empty() {
            batch.push(Append {
                stream: history_of(&session.id).map_err(unwritten)?,
                expected: Expected::Any,
                events: page.entries.iter().map(kept).collect::<Result<_, _>>()?,
            });
        }
        let is_same = before
            == Progress {
                updated_at: before.updated_at,
                ..progress.clone()
            };
        if !is_same {
            batch.push(index(&Listed::Moved {
                id: session.id.clone(),
                progress: Box::new(progress.clone()),
            })?);
        }
        let head = self.append(session, batch).await?;
        for entry in page.entries {
            history.add(entry);
        }
        let mut record = session.record();
        // These go on while something is written.
        progress.worked_ms = record.progress.worked_ms;
        if progress.state == before.state {
            progress.state = record.progress.state;
        }
        record.progress = progress;
        Ok(head)
    }

    /// Begins a session: the index, its first events, its first entries.
    pub(crate) async fn create(&self, session: &Session, page: Page) -> Result<Seq, Failure> {
        let record = Box::new(session.record().clone());
        let mut first = self.events(session, &page.events)?;
        first.expected = Expected::Head(Seq::START);
        let batch = vec![
            first,
            Append {
                stream: history_of(&session.id).map_err(unwritten)?,
                expected: Expected::Any,
                events: page.entries.iter().map(kept).collect::<Result<_, _>>()?,
            },
            index(&Listed::Created(record))?,
        ];
        let head = self.append(session, batch).await?;
        let mut pen = session.pen.lock().await;
        let history = pen.get_or_insert_with(History::default);
        for entry in page.entries {
            history.add(entry);
        }
        Ok(head)
    }

    /// Appends a batch that begins with a session's events, and tells whoever follows it. Answers
    /// where the session is.
    async fn append(&self, session: &Session, batch: Vec<Append>) -> Result<Seq, Failure> {
        let fresh = batch.first().map(Fresh::of);
        let heads = self.gate.store().append(batch).await.map_err(unwritten)?;
        let head = heads.first().copied().unwrap_or_default();
        if let Some(fresh) = fresh {
            session.lately.written(fresh, head);
        }
        Ok(head)
    }

    /// Writes that a session is gone, and removes what was said in it.
    pub(crate) async fn delete(&self, session: &Session) -> Result<(), Failure> {
        let id = session.id.clone();
        let streams = vec![session.stream.clone(), history_of(&id).map_err(unwritten)?];
        let gone = index(&Listed::Deleted { id })?;
        let store = self.gate.store();
        store.append(vec![gone]).await.map_err(unwritten)?;
        store.remove(streams).await.map_err(unwritten)
    }

    /// All sessions, as the index has them.
    pub(crate) async fn listed(&self) -> Result<Vec<Record>, Failure> {
        let mut records: Vec<Record> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let stream = stream(INDEX).map_err(unwritten)?;
        self.each(&stream, |event| {
            let Ok(listed) = serde_json::from_value(event.data) else {
                tracing::warn!(seq = %event.seq, "an entry of the index of sessions cannot be read");
                return;
            };
            match listed {
                Listed::Created(record) => {
                    places.insert(record.id.clone(), records.len());
                    records.push(*record);
                }
                Listed::Moved { id, progress } => {
                    if let Some(place) = places.get(&id) {
                        records[*place].progress = *progress;
                    }
                }
                Listed::Deleted { id } => {
                    places.remove(&id);
                }
            }
        })
        .await?;
        let kept = |record: &Record| places.contains_key(&record.id);
        Ok(records.into_iter().filter(kept).collect())
    }

    /// A session's history: the one in memory, or the one in the store.
    pub(crate) async fn history<'a>(
        &self,
        session: &Session,
        pen: &'a mut Option<History>,
    ) -> Result<&'a mut History, Failure> {
        if pen.is_none() {
            let mut history = History::default();
            for entry in self.entries(&session.id).await? {
                history.add(entry);
            }
            *pen = Some(history);
        }
        Ok(pen.get_or_insert_with(History::default))
    }

    /// All entries of a session's history.
    pub(crate) async fn entries(&self, id: &str) -> Result<Vec<Entry>, Failure> {
        let mut entries = Vec::new();
        let mut unreadable = None;
        self.each(
            &history_of(id).map_err(unwritten)?,
            |event| match serde_json::from_value(event.data) {
                Ok(entry) => entries.push(entry),
                Err(error) => unreadable = Some(error),
            },
        )
        .await?;
        match unreadable {
            // A conversation with a hole in it is not the conversation.
            Some(error) => Err(Failure::new(
                ErrorKind::Internal,
                format!("The history of this session cannot be read: {error}."),
            )),
            None => Ok(entries),
        }
    }

    /// How a session stopped last, if nothing runs of it. Read when it is asked for: what was said
    /// last can be long, and there are many sessions.
    pub(crate) async fn last(&self, session: &Session) -> Result<Option<End>, Failure> {
        if let Some(failed) = session.unwritten() {
            return Ok(Some(End::Failed(failed)));
        }
        if !session.is_settled() {
            return Ok(None);
        }
        let mut most = 4;
        loop {
            let events = self.gate.store().tail(&session.stream, most).await;
            let events = events.map_err(unwritten)?;
            let is_all = events.len() < most;
            for event in events.into_iter().rev() {
                match SessionEvent::read(&event.kind, event.data) {
                    Some(SessionEvent::Completed(completed)) => {
                        return Ok(Some(End::Completed(completed)));
                    }
                    Some(SessionEvent::Failed(failed)) => return Ok(Some(End::Failed(failed))),
                    // What becomes of a session that rests, or what a newer Ward wrote.
                    Some(SessionEvent::Changed(_)) | None => {}
                    // A conversation that was forked and has not run yet.
                    Some(_) => return Ok(None),
                }
            }
            if is_all {
                return Ok(None);
            }
            most *= 8;
        }
    }

    /// Every event of a stream, in order.
    pub(crate) async fn each(
        &self,
        stream: &StreamName,
        mut take: impl FnMut(store::Event),
    ) -> Result<(), Failure> {
        let mut after = Seq::START;
        loop {
            let events = self.gate.store().read(stream, after, PAGE).await;
            let events = events.map_err(unwritten)?;
            let Some(last) = events.last() else {
                return Ok(());
            };
            after = last.seq;
            events.into_iter().for_each(&mut take);
        }
    }

    fn events(&self, session: &Session, events: &[SessionEvent]) -> Result<Append, Failure> {
        let at = now();
        let new = |event: &SessionEvent| {
            Ok(NewEvent {
                kind: event.kind().into(),
                at,
                data: self.clean(event)?,
            })
        };
        Ok(Append {
            stream: session.stream.clone(),
            expected: Expected::Any,
            events: events.iter().map(new).collect::<Result<_, Failure>>()?,
        })
    }

    /// An event's data without secrets.
    fn clean(&self, event: &SessionEvent) -> Result<Json, Failure> {
        let redactor = self.gate.redactor();
        if let SessionEvent::Text(delta) | SessionEvent::Reasoning(delta) = event {
            let text = redactor.redact_str(&delta.text).into_owned();
            return json(&TextDelta { text });
        }
        let mut data = event.data().map_err(unwritable)?;
        redactor.redact(&mut data);
        Ok(data.into())
    }
}

fn kept(entry: &Entry) -> Result<NewEvent, Failure> {
    Ok(NewEvent {
        kind: "history".into(),
        at: now(),
        data: json(entry)?,
    })
}

fn index(listed: &Listed) -> Result<Append, Failure> {
    Ok(Append {
        stream: stream(INDEX).map_err(unwritten)?,
        expected: Expected::Any,
        events: vec![NewEvent {
            kind: "session".into(),
            at: now(),
            data: json(listed)?,
        }],
    })
}

fn history_of(id: &str) -> Result<StreamName, StoreError> {
    stream(&format!("history/{id}"))
}

fn json(value: &impl Serialize) -> Result<Json, Failure> {
    let text = serde_json::to_string(value).map_err(unwritable)?;
    Ok(Json::from_text(text))
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::new(
        ErrorKind::Internal,
        format!("This cannot be written: {error}."),
    )
}

pub(crate) fn unwritten(error: StoreError) -> Failure {
    tracing::error!(%error, "a session could not be written");
    let kind = match error {
        StoreError::Conflict { .. } => ErrorKind::Conflict,
        StoreError::Failed(_) | StoreError::Closed => ErrorKind::Internal,
    };
    Failure::new(kind, error.to_string())
}
