//! How events lie in the database.
//!
//! A row is one event, or several that follow each other in a stream that is one of many, as an
//! action's or a session's: they were appended within a moment and are read together, and each row
//! costs as much as many bytes. A stream of its own kind, as the ledger, has a row for every event,
//! so that anybody can look at them with SQLite's own tools.

use std::fmt::Write as _;

use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};
use serde_json::value::RawValue;
use store::{Event, Millis, NewEvent, Seq, StreamName};

use crate::found::Found;

/// A row takes no more events once it holds so much.
const ROOM: usize = 16 << 10;

/// What a stream is, if it is one of many: `action` of `action/4f2a`.
pub(crate) fn kind_of(stream: &StreamName) -> Option<&str> {
    stream.as_str().split_once('/').map(|(kind, _)| kind)
}

/// Puts events into the database.
pub(crate) struct Rows<'a> {
    insert: CachedStatement<'a>,
    /// How many events were ever put there: the last row's id.
    count: i64,
    buffer: String,
}

impl<'a> Rows<'a> {
    pub(crate) fn of(connection: &'a Connection) -> rusqlite::Result<Self> {
        let insert = "INSERT INTO events (id, stream, seq, last, at, kind, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        Ok(Self {
            insert: connection.prepare_cached(insert)?,
            count: last_id(connection)?,
            buffer: String::new(),
        })
    }

    /// Events that follow each other in a stream, from this place on.
    pub(crate) fn add<'e>(
        &mut self,
        stream: &StreamName,
        first: Seq,
        events: impl Iterator<Item = &'e NewEvent>,
    ) -> rusqlite::Result<()> {
        let mut seq = first.get() as i64;
        if kind_of(stream).is_none() {
            for event in events {
                self.one(stream, seq, event)?;
                seq += 1;
            }
            return Ok(());
        }
        let mut events = events.peekable();
        while let Some(event) = events.next() {
            let has_room = |so_far: usize, next: &&NewEvent| so_far + size(next) <= ROOM;
            if !events
                .peek()
                .is_some_and(|next| has_room(size(event), next))
            {
                self.one(stream, seq, event)?;
                seq += 1;
                continue;
            }
            self.buffer.clear();
            let (mut last, at) = (seq, event.at);
            push(&mut self.buffer, '[', event);
            while let Some(event) = events.next_if(|next| has_room(self.buffer.len(), next)) {
                push(&mut self.buffer, ',', event);
                last += 1;
            }
            self.buffer.push(']');
            self.count += last - seq + 1;
            self.insert.execute((
                self.count,
                stream.as_str(),
                seq,
                last,
                at.0 as i64,
                "",
                &self.buffer,
            ))?;
            seq = last + 1;
        }
        Ok(())
    }

    fn one(&mut self, stream: &StreamName, seq: i64, event: &NewEvent) -> rusqlite::Result<()> {
        self.count += 1;
        self.insert.execute((
            self.count,
            stream.as_str(),
            seq,
            None::<i64>,
            event.at.0 as i64,
            &*event.kind,
            event.data.as_str(),
        ))?;
        Ok(())
    }
}

/// About how much an event takes in a row of several.
fn size(event: &NewEvent) -> usize {
    event.data.as_str().len() + event.kind.len() + 24
}

/// `[at,"kind",data]`, behind what is there.
fn push(row: &mut String, before: char, event: &NewEvent) {
    row.push(before);
    row.push('[');
    // Writing to a String cannot fail.
    let _ = write!(row, "{},", event.at.0);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match event.kind.bytes().all(is_plain) {
        true => drop(write!(row, "\"{}\",", event.kind)),
        false => drop(write!(row, "{},", serde_json::Value::from(&*event.kind))),
    }
    row.push_str(event.data.as_str());
    row.push(']');
}

/// The events of a stream after a place, in order, at most `limit`.
pub(crate) fn read<T: Found>(
    connection: &Connection,
    stream: &StreamName,
    after: Seq,
    limit: usize,
) -> rusqlite::Result<Vec<T>> {
    // The row that the next event is in may begin before it, and may end there.
    let mut query = connection.prepare_cached(
        "SELECT seq, last, at, kind, data FROM events
         WHERE stream = ?1 AND seq >= coalesce(
             (SELECT max(seq) FROM events WHERE stream = ?1 AND seq <= ?2), ?2)
         ORDER BY seq LIMIT ?3",
    )?;
    let next = i64::try_from(after.next().get()).unwrap_or(i64::MAX);
    let rows = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = query.query((stream.as_str(), next, rows))?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = rows.next()?
    {
        let found: Vec<T> = events_of(row)?;
        events.extend(found.into_iter().filter(|event| event.seq() > after));
    }
    events.truncate(limit);
    Ok(events)
}

/// The last events of a stream, in order, at most `limit`.
pub(crate) fn tail(
    connection: &Connection,
    stream: &StreamName,
    limit: usize,
) -> rusqlite::Result<Vec<Event>> {
    let mut query = connection.prepare_cached(
        "SELECT seq, last, at, kind, data FROM events
         WHERE stream = ?1 ORDER BY seq DESC",
    )?;
    let mut rows = query.query([stream.as_str()])?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = rows.next()?
    {
        events.extend(events_of::<Event>(row)?.into_iter().rev());
    }
    events.truncate(limit);
    events.reverse();
    Ok(events)
}

/// Where a stream is in the database; one that nobody knows is at its start.
pub(crate) fn head(connection: &Connection, stream: &StreamName) -> rusqlite::Result<Seq> {
    let head: Option<i64> = connection
        .prepare_cached(
            "SELECT coalesce(last, seq) FROM events WHERE stream = ?1 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([stream.as_str()], |row| row.get(0))
        .optional()?;
    Ok(Seq::new(head.unwrap_or_default().unsigned_abs()))
}

/// The last stream of a kind in the database, in the order of names.
pub(crate) fn newest(connection: &Connection, kind: &str) -> rusqlite::Result<Option<String>> {
    let newest =
        "SELECT stream FROM events WHERE stream > ?1 AND stream < ?2 ORDER BY stream DESC LIMIT 1";
    connection
        .prepare_cached(newest)?
        .query_row(range(kind), |row| row.get(0))
        .optional()
}

/// The streams of a kind in the database, each at least once.
pub(crate) fn names(
    connection: &Connection,
    kind: &str,
    mut tell: impl FnMut(&str),
) -> rusqlite::Result<()> {
    let mut query =
        connection.prepare_cached("SELECT stream FROM events WHERE stream > ?1 AND stream < ?2")?;
    let mut rows = query.query(range(kind))?;
    while let Some(row) = rows.next()? {
        tell(row.get_ref(0)?.as_str()?);
    }
    Ok(())
}

/// What the names of all streams of a kind lie between.
fn range(kind: &str) -> [String; 2] {
    // `0` is the sign after `/`.
    [format!("{kind}/"), format!("{kind}0")]
}

/// How many events were ever put into the database.
pub(crate) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(last_id(connection)?.unsigned_abs())
}

fn last_id(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM events")?
        .query_row([], |row| row.get(0))
}

/// Removes whole streams, and what they held from the file as well.
pub(crate) fn remove(connection: &mut Connection, streams: &[StreamName]) -> rusqlite::Result<()> {
    connection.pragma_update(None, "secure_delete", true)?;
    let transaction = connection.transaction()?;
    for stream in streams {
        transaction.execute("DELETE FROM events WHERE stream = ?1", [stream.as_str()])?;
    }
    transaction.commit()
}

/// The events of a row.
fn events_of<T: Found>(row: &Row<'_>) -> rusqlite::Result<Vec<T>> {
    let unreadable = |error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(4, Type::Text, error.into())
    };
    let first = row.get::<_, i64>(0)?.unsigned_abs();
    let text = row.get_ref(4)?.as_str()?;
    if row.get::<_, Option<i64>>(1)?.is_none() {
        let at: i64 = row.get(2)?;
        let at = u64::try_from(at).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, at))?;
        let event = T::of(Seq::new(first), Millis(at), row.get(3)?, text);
        return Ok(vec![event.map_err(unreadable)?]);
    }
    let several: Vec<(u64, String, &RawValue)> = serde_json::from_str(text).map_err(unreadable)?;
    let places = (first..).map(Seq::new);
    places
        .zip(several)
        .map(|(seq, (at, kind, data))| T::of(seq, Millis(at), kind, data.get()).map_err(unreadable))
        .collect()
}
