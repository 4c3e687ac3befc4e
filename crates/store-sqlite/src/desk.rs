//! What was appended lately: in the journal and in memory, and on its way into the database.
//!
//! An append finds the heads of its streams, gets its places, is written to the journal and is there
//! for readers. A [`Sheet`] at a time goes into the database.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use rusqlite::Connection;
use store::{Append, Expected, NewEvent, Seq, StoreError, StreamName};

use crate::found::Found;
use crate::journal::{Journal, Placed};
use crate::known::{Filter, Known};
use crate::rows::{Rows, head, kind_of};
use crate::writer::failed;

/// How many heads are remembered at least.
const HEADS: usize = 4096;
/// What an event takes beside its data, about.
const BESIDE: usize = 200;

/// The desk: everything that is known of what was appended lately.
#[derive(Debug)]
pub(crate) struct Desk {
    journal: Journal,
    /// For the heads that are not remembered.
    lookup: Connection,
    heads: HashMap<StreamName, Seq>,
    /// With so many heads it is looked which of them can be forgotten.
    many: usize,
    known: Known,
    /// What comes in.
    young: Sheet,
    /// What is being put into the database.
    old: Option<Arc<Sheet>>,
    /// How many events there are.
    count: u64,
}

/// What was appended during a while.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    order: Vec<Arc<Placed>>,
    by_stream: HashMap<StreamName, Vec<Arc<Placed>>>,
    /// How much memory it holds, about.
    bytes: usize,
}

impl Sheet {
    /// Puts everything into the database, in the order in which it was appended; what belongs to one
    /// of many streams, together.
    pub(crate) fn put_into(&self, rows: &mut Rows<'_>) -> rusqlite::Result<()> {
        for placed in &self.order {
            let (stream, first) = (&placed.stream, placed.first);
            let of_stream = match kind_of(stream) {
                Some(_) => self.by_stream.get(stream),
                None => None,
            };
            match of_stream {
                None => rows.add(stream, first, placed.events.iter())?,
                Some(all) if all.first().is_some_and(|one| Arc::ptr_eq(one, placed)) => {
                    rows.add(stream, first, all.iter().flat_map(|one| &one.events))?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &StreamName> {
        self.by_stream.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, placed: Arc<Placed>) {
        let size = |event: &NewEvent| BESIDE + event.kind.len() + event.data.as_str().len();
        self.bytes += placed.events.iter().map(size).sum::<usize>();
        match self.by_stream.get_mut(&placed.stream) {
            Some(known) => known.push(Arc::clone(&placed)),
            None => {
                let stream = placed.stream.clone();
                self.by_stream.insert(stream, vec![Arc::clone(&placed)]);
            }
        }
        self.order.push(placed);
    }
}

/// Events of one stream that are in memory, in order and without a gap; they may be in the database
/// by now as well.
#[derive(Debug, Default)]
pub(crate) struct Lately(Vec<Arc<Placed>>);

impl Lately {
    /// The place of the first.
    pub(crate) fn first(&self) -> Option<Seq> {
        self.0.first().map(|placed| placed.first)
    }

    /// The events after a place, in order.
    pub(crate) fn after<T: Found>(
        &self,
        after: Seq,
    ) -> impl Iterator<Item = Result<T, StoreError>> {
        let with_places = self.0.iter().flat_map(|placed| {
            let first = placed.first.get();
            let places = (first..).map(Seq::new);
            places.zip(&placed.events)
        });
        with_places
            .filter(move |(seq, _)| *seq > after)
            .map(|(seq, event)| told(seq, event))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|placed| placed.events.len()).sum()
    }
}

fn told<T: Found>(seq: Seq, event: &NewEvent) -> Result<T, StoreError> {
    T::of(seq, event.at, event.kind.to_string(), event.data.as_str())
        .map_err(|error| StoreError::Failed(format!("event {seq} cannot be read: {error}")))
}

impl Desk {
    pub(crate) fn new(journal: Journal, lookup: Connection, count: u64) -> Self {
        Self {
            journal,
            lookup,
            heads: HashMap::new(),
            many: HEADS,
            known: Known::default(),
            young: Sheet::default(),
            old: None,
            count,
        }
    }

    /// Appends a batch, and answers the place of each part of it.
    pub(crate) fn append(&mut self, batch: Vec<Append>) -> Result<Vec<Arc<Placed>>, StoreError> {
        let mut placed: Vec<Arc<Placed>> = Vec::with_capacity(batch.len());
        for append in batch {
            let before = placed.iter().rev().find(|p| p.stream == append.stream);
            let actual = match before {
                Some(before) => before.last(),
                None => self.head(&append.stream)?,
            };
            if let Expected::Head(expected) = append.expected
                && expected != actual
            {
                return Err(StoreError::Conflict {
                    stream: append.stream,
                    expected,
                    actual,
                });
            }
            placed.push(Arc::new(Placed {
                stream: append.stream,
                first: actual.next(),
                events: append.events,
            }));
        }
        self.journal.write(&placed).map_err(|error| {
            tracing::error!(%error, "the journal could not be written");
            StoreError::Failed(error.to_string())
        })?;
        for placed in &placed {
            self.remember(&placed.stream, placed.last());
            if !placed.events.is_empty() {
                if placed.first == Seq::START.next() {
                    self.known.begins(&placed.stream);
                }
                self.count += placed.events.len() as u64;
                self.young.add(Arc::clone(placed));
            }
        }
        Ok(placed)
    }

    /// Where a stream is; one that nobody knows is at its start.
    pub(crate) fn head(&mut self, stream: &StreamName) -> Result<Seq, StoreError> {
        if let Some(head) = self.heads.get(stream) {
            return Ok(*head);
        }
        let on_the_way = self.old.as_deref();
        let is_new = self.known.is_new(stream, &self.lookup, on_the_way);
        let found = match is_new.map_err(failed)? {
            true => Seq::default(),
            false => head(&self.lookup, stream).map_err(failed)?,
        };
        self.remember(stream, found);
        Ok(found)
    }

    fn remember(&mut self, stream: &StreamName, head: Seq) {
        if let Some(known) = self.heads.get_mut(stream) {
            *known = head;
            return;
        }
        if self.heads.len() >= self.many {
            let (young, old) = (&self.young, &self.old);
            let on_the_way = |stream: &StreamName| {
                young.by_stream.contains_key(stream)
                    || old
                        .as_ref()
                        .is_some_and(|old| old.by_stream.contains_key(stream))
            };
            // What is in the database can be found there again.
            self.heads.retain(|stream, _| on_the_way(stream));
            // Where most have to stay, the next look is not soon.
            self.many = HEADS.max(2 * self.heads.len());
        }
        self.heads.insert(stream.clone(), head);
    }

    /// What is in memory of a stream, and its head where that is remembered.
    pub(crate) fn lately(&self, stream: &StreamName) -> (Lately, Option<Seq>) {
        let sheets = self.old.iter().map(|old| &**old).chain([&self.young]);
        let known = sheets.filter_map(|sheet| sheet.by_stream.get(stream));
        let lately = Lately(known.flatten().map(Arc::clone).collect());
        (lately, self.heads.get(stream).copied())
    }

    /// A kind of streams whose names the writer is to read from the database, and then
    /// [`Desk::names`].
    pub(crate) fn wanted(&self) -> Option<&str> {
        self.known.wanted()
    }

    /// The names of a kind as they are in the database, or none where they could not be read. What is
    /// here is not there yet.
    pub(crate) fn names(&mut self, kind: &str, filter: Option<Filter>) {
        let sheets = self.old.iter().map(|old| &**old).chain([&self.young]);
        let here = sheets.flat_map(Sheet::streams);
        self.known.have(kind, filter, here);
    }

    /// How many events were ever appended.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// What came in and is not on its way yet.
    pub(crate) fn young(&self) -> &Sheet {
        &self.young
    }

    /// Begins a new sheet; the one so far is to be put into the database, then it is
    /// [`Desk::settled`].
    pub(crate) fn turn(&mut self) -> Arc<Sheet> {
        let sheet = Arc::new(std::mem::take(&mut self.young));
        self.known.add(&sheet);
        self.old = Some(Arc::clone(&sheet));
        self.journal.turn();
        sheet
    }

    /// The sheet of the last turn is in the database.
    pub(crate) fn settled(&mut self) -> Result<(), StoreError> {
        self.old = None;
        let settled = self.journal.settled();
        settled.map_err(|error| StoreError::Failed(error.to_string()))
    }

    /// These streams were removed from the database; nothing of them was in memory.
    pub(crate) fn removed(&mut self, streams: &[StreamName]) {
        for stream in streams {
            self.heads.remove(stream);
        }
    }
}
