//! Which streams the database may hold. Of most new streams this says for certain that they are new,
//! so that nobody has to look for them there.
//!
//! The names that Ward makes, an action's or a session's, begin with the time: a new one is behind all
//! that are there. Names that others choose are in no order; where many of a kind were looked for, the
//! writer reads all of its names once, into a filter.

use std::collections::HashMap;
use std::hash::RandomState;

use fastbloom::BloomFilter;
use rusqlite::Connection;
use store::StreamName;

use crate::desk::Sheet;
use crate::rows::{kind_of, names, newest};

/// So many are looked for before their names are read.
const MANY: usize = 64;
/// Half a megabyte: of a million streams it takes one in seven new ones for one that may be there.
const BITS: usize = 1 << 22;
const HASHES: u32 = 4;

/// What is known, by the kind of stream.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<String, Kind>);

#[derive(Debug)]
struct Kind {
    /// The last name, in the order of names, that is in the database or on the way there.
    newest: Option<String>,
    names: Names,
}

#[derive(Debug)]
enum Names {
    /// So many were looked for in the database.
    Unread(usize),
    /// Says of a name that is not in it that there is no such stream.
    Read(Filter),
}

/// Names, any of which it may forget to tell from others, but none of which it forgets.
#[derive(Debug)]
pub(crate) struct Filter(BloomFilter<RandomState>);

impl Filter {
    /// Every stream of a kind that is in the database.
    pub(crate) fn read(connection: &Connection, kind: &str) -> rusqlite::Result<Self> {
        let filter = BloomFilter::with_num_bits(BITS);
        let mut filter = filter.hasher(RandomState::new()).hashes(HASHES);
        names(connection, kind, |name| {
            filter.insert(name);
        })?;
        Ok(Self(filter))
    }
}

impl Known {
    /// Whether a stream is certain to be neither in the database nor on the way there.
    pub(crate) fn is_new(
        &mut self,
        stream: &StreamName,
        lookup: &Connection,
        on_the_way: Option<&Sheet>,
    ) -> rusqlite::Result<bool> {
        let Some(name) = kind_of(stream) else {
            return Ok(false);
        };
        if !self.0.contains_key(name) {
            let kind = Kind {
                newest: newest(lookup, name)?,
                names: Names::Unread(0),
            };
            self.0.insert(name.to_owned(), kind);
            if let Some(sheet) = on_the_way {
                self.add(sheet);
            }
        }
        let Some(kind) = self.0.get_mut(name) else {
            return Ok(false);
        };
        if kind
            .newest
            .as_deref()
            .is_none_or(|newest| newest < stream.as_str())
        {
            return Ok(true);
        }
        Ok(match &mut kind.names {
            Names::Unread(looked) => {
                *looked += 1;
                false
            }
            Names::Read(filter) => !filter.0.contains(stream.as_str()),
        })
    }

    /// These are on the way to the database.
    pub(crate) fn add(&mut self, sheet: &Sheet) {
        for stream in sheet.streams() {
            let kind = kind_of(stream).and_then(|kind| self.0.get_mut(kind));
            if let Some(Kind { newest, .. }) = kind
                && newest
                    .as_deref()
                    .is_none_or(|newest| newest < stream.as_str())
            {
                *newest = Some(stream.as_str().to_owned());
            }
        }
    }

    /// A stream begins.
    pub(crate) fn begins(&mut self, stream: &StreamName) {
        let kind = kind_of(stream).and_then(|kind| self.0.get_mut(kind));
        if let Some(Kind {
            names: Names::Read(filter),
            ..
        }) = kind
        {
            filter.0.insert(stream.as_str());
        }
    }

    /// A kind whose names are worth reading.
    pub(crate) fn wanted(&self) -> Option<&str> {
        let mut kinds = self.0.iter();
        let many = |kind: &Kind| matches!(kind.names, Names::Unread(looked) if looked >= MANY);
        let found = kinds.find(|(_, kind)| many(kind));
        found.map(|(name, _)| name.as_str())
    }

    /// The names of a kind as they were read, and those of it that came since; without, they are
    /// not wanted again for a while.
    pub(crate) fn have<'a>(
        &mut self,
        kind: &str,
        filter: Option<Filter>,
        since: impl Iterator<Item = &'a StreamName>,
    ) {
        let Some(known) = self.0.get_mut(kind) else {
            return;
        };
        known.names = match filter {
            None => Names::Unread(0),
            Some(mut filter) => {
                let since = since.filter(|stream| kind_of(stream) == Some(kind));
                since.for_each(|stream| {
                    filter.0.insert(stream.as_str());
                });
                Names::Read(filter)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use store::{Append, Expected, Json, Millis, NewEvent, Seq};

    use super::*;
    use crate::desk::Desk;
    use crate::journal::Journal;
    use crate::rows::Rows;
    use crate::schema;

    struct Place {
        folder: tempfile::TempDir,
        writes: Connection,
        desk: Desk,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ward.db");
            let writes = schema::open(&path).unwrap();
            let lookup = Connection::open(&path).unwrap();
            let (journal, _) = Journal::open(folder.path()).unwrap();
            let desk = Desk::new(journal, lookup, 0);
            Self {
                folder,
                writes,
                desk,
            }
        }

        fn append(&mut self, stream: &StreamName) {
            let event = NewEvent {
                kind: "happened".into(),
                at: Millis(1),
                data: Json::from_text("1".to_owned()),
            };
            let append = Append {
                stream: stream.clone(),
                expected: Expected::Head(Seq::START),
                events: vec![event],
            };
            self.desk.append(vec![append]).unwrap();
        }

        fn put(&mut self) {
            let sheet = self.desk.turn();
            let transaction = self.writes.transaction().unwrap();
            sheet
                .put_into(&mut Rows::of(&transaction).unwrap())
                .unwrap();
            transaction.commit().unwrap();
            self.desk.settled().unwrap();
        }

        /// A desk that remembers nothing of what it did.
        fn again(mut self) -> Self {
            self.put();
            let path = self.folder.path().join("ward.db");
            let (journal, _) = Journal::open(self.folder.path()).unwrap();
            self.desk = Desk::new(journal, Connection::open(path).unwrap(), 0);
            self
        }
    }

    /// In the order of no clock.
    fn stream(number: u64) -> StreamName {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        StreamName::new(format!("action/{mixed:016x}")).unwrap()
    }

    #[test]
    fn every_stream_that_was_begun_is_found_before_and_after_the_names_were_read() {
        let mut place = Place::new();
        (0..500).for_each(|number| place.append(&stream(number)));
        let mut place = place.again();
        // On the desk while the names are read: in no row, and behind none by name.
        (500..600).for_each(|number| place.append(&stream(number)));
        for number in 1000..1100 {
            assert_eq!(place.desk.head(&stream(number)), Ok(Seq::START));
        }
        assert_eq!(place.desk.wanted(), Some("action"));
        let names = Filter::read(&place.writes, "action").unwrap();
        place.desk.names("action", Some(names));
        assert_eq!(place.desk.wanted(), None);
        (600..700).for_each(|number| place.append(&stream(number)));
        place.put();
        // More than the desk remembers the heads of.
        (5000..10_000).for_each(|number| drop(place.desk.head(&stream(number))));
        for number in 0..700 {
            assert_eq!(
                place.desk.head(&stream(number)),
                Ok(Seq::new(1)),
                "{number}"
            );
        }
        for number in 2000..3000 {
            assert_eq!(place.desk.head(&stream(number)), Ok(Seq::START));
        }
    }

    #[test]
    fn hardly_any_new_stream_is_taken_for_one_that_may_be_there() {
        let mut place = Place::new();
        (0..2000).for_each(|number| place.append(&stream(number)));
        place.put();
        let lookup = Connection::open(place.folder.path().join("ward.db")).unwrap();
        let mut known = Known::default();
        let mut new = |number: u64| known.is_new(&stream(number), &lookup, None).unwrap();
        assert_eq!((0..2000).filter(|number| new(*number)).count(), 0);
        let names = Filter::read(&lookup, "action").unwrap();
        known.have("action", Some(names), std::iter::empty());
        let mut new = |number: u64| known.is_new(&stream(number), &lookup, None).unwrap();
        assert_eq!((0..2000).filter(|number| new(*number)).count(), 0);
        let seen = (2000..12_000).filter(|number| new(*number)).count();
        assert!(seen > 9990, "{seen}");
    }

    #[test]
    fn names_that_could_not_be_read_are_looked_for_as_before() {
        let mut place = Place::new();
        (0..200).for_each(|number| place.append(&stream(number)));
        let mut place = place.again();
        (1000..1200).for_each(|number| drop(place.desk.head(&stream(number))));
        place.desk.names("action", None);
        assert_eq!(place.desk.wanted(), None);
        assert_eq!(place.desk.head(&stream(7)), Ok(Seq::new(1)));
        assert_eq!(place.desk.head(&stream(7000)), Ok(Seq::START));
    }
}
