//! What was appended and is not in the database yet, as records in a file: to write one takes a
//! single call of the system.
//!
//! Two files take turns. While the records of one go into the database, new ones go into the other;
//! then the first is emptied. What is found in them when the store is opened was appended by a Ward
//! that was killed, and goes into the database before anything else.
//!
//! A record is the length of its body, the body's checksum and the body: its number, and a batch
//! with the place of every event. A number is written with its least byte first, a text as its length
//! and its bytes.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use store::{Json, Millis, NewEvent, Seq, StreamName};

use crate::error::OpenError;

const FILES: [&str; 2] = ["ward.journal-a", "ward.journal-b"];
/// The length and the checksum.
const HEADER: usize = 8;

/// Events of one stream, with the place of the first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) stream: StreamName,
    pub(crate) first: Seq,
    pub(crate) events: Vec<NewEvent>,
}

impl Placed {
    /// The place of the last; the one before the first where there are none.
    pub(crate) fn last(&self) -> Seq {
        let next = self.first.get() + self.events.len() as u64;
        Seq::new(next.saturating_sub(1))
    }
}

/// The two files.
#[derive(Debug)]
pub(crate) struct Journal {
    files: [File; 2],
    /// Which of them is written to, and how much is in it.
    turn: usize,
    length: u64,
    /// How many records were written.
    number: u64,
    buffer: Vec<u8>,
}

/// A batch that was found in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    number: u64,
    pub(crate) batch: Vec<Placed>,
}

impl Journal {
    /// Opens the files of a folder, and makes them where there are none. What is in them is answered,
    /// in the order in which it was written, and stays there until [`Journal::clear`].
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<Record>), OpenError> {
        let mut found = Vec::new();
        let mut open = |name: &str| -> Result<File, OpenError> {
            let path = folder.join(name);
            let unusable = |why| OpenError::Folder {
                folder: folder.to_owned(),
                why,
            };
            let mut file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)
                .map_err(unusable)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(unusable)?;
            found.extend(records(&bytes, &path)?);
            Ok(file)
        };
        let files = [open(FILES[0])?, open(FILES[1])?];
        found.sort_by_key(|record| record.number);
        let journal = Self {
            files,
            turn: 0,
            length: 0,
            number: found.last().map_or(0, |record| record.number),
            buffer: Vec::new(),
        };
        Ok((journal, found))
    }

    /// Empties both files.
    pub(crate) fn clear(&mut self) -> std::io::Result<()> {
        self.length = 0;
        self.files.iter().try_for_each(|file| file.set_len(0))
    }

    /// Writes a batch. Where that fails, nothing of it is left.
    pub(crate) fn write(&mut self, batch: &[std::sync::Arc<Placed>]) -> std::io::Result<()> {
        self.number += 1;
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        self.buffer.extend(self.number.to_le_bytes());
        for placed in batch {
            text(&mut self.buffer, placed.stream.as_str())?;
            self.buffer.extend(placed.first.get().to_le_bytes());
            length(&mut self.buffer, placed.events.len())?;
            for event in &placed.events {
                self.buffer.extend(event.at.0.to_le_bytes());
                text(&mut self.buffer, &event.kind)?;
                text(&mut self.buffer, event.data.as_str())?;
            }
        }
        let (header, body) = self.buffer.split_at_mut(HEADER);
        let size = u32::try_from(body.len()).map_err(|_| too_large())?;
        header[..4].copy_from_slice(&size.to_le_bytes());
        header[4..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let file = &mut self.files[self.turn];
        if let Err(error) = file.write_all(&self.buffer) {
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
        // One large batch is no reason to hold so much for ever.
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// From now on the other file is written to. It is empty: [`Journal::settled`] was called since
    /// the last turn.
    pub(crate) fn turn(&mut self) {
        self.turn = 1 - self.turn;
        self.length = 0;
    }

    /// What was written before the last turn is in the database.
    pub(crate) fn settled(&mut self) -> std::io::Result<()> {
        self.files[1 - self.turn].set_len(0)
    }
}

/// The records of a file. The last one may be cut short: whoever wrote it was killed before anybody
/// was told of it.
fn records(bytes: &[u8], path: &Path) -> Result<Vec<Record>, OpenError> {
    let mut records = Vec::new();
    let mut rest = Bytes(bytes);
    while !rest.0.is_empty() {
        let Some(body) = rest.body() else {
            break;
        };
        let is_last = rest.0.is_empty();
        match body.and_then(Bytes::record) {
            Some(record) => records.push(record),
            None if is_last => break,
            None => {
                return Err(OpenError::Damaged {
                    path: PathBuf::from(path),
                    why: format!("record {} of it cannot be read", records.len() + 1),
                });
            }
        }
    }
    Ok(records)
}

/// Bytes that are yet to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The next body, if it is whole; within, whether its checksum fits.
    fn body(&mut self) -> Option<Option<Self>> {
        let size = self.u32()?;
        let checksum = self.u32()?;
        let body = self.take(usize::try_from(size).ok()?)?;
        Some((crc32fast::hash(body) == checksum).then_some(Self(body)))
    }

    fn record(mut self) -> Option<Record> {
        let number = self.u64()?;
        let mut batch = Vec::new();
        while !self.0.is_empty() {
            let stream = StreamName::new(self.text()?).ok()?;
            let first = Seq::new(self.u64()?);
            let count = self.u32()?;
            let events = (0..count).map(|_| self.event()).collect::<Option<_>>()?;
            batch.push(Placed {
                stream,
                first,
                events,
            });
        }
        Some(Record { number, batch })
    }

    fn event(&mut self) -> Option<NewEvent> {
        Some(NewEvent {
            at: Millis(self.u64()?),
            kind: self.text()?,
            data: Json::from_text(self.text()?),
        })
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u32()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

fn text(buffer: &mut Vec<u8>, text: &str) -> std::io::Result<()> {
    length(buffer, text.len())?;
    buffer.extend_from_slice(text.as_bytes());
    Ok(())
}

fn length(buffer: &mut Vec<u8>, count: usize) -> std::io::Result<()> {
    let count = u32::try_from(count).map_err(|_| too_large())?;
    buffer.extend(count.to_le_bytes());
    Ok(())
}

fn too_large() -> std::io::Error {
    std::io::Error::other("it is larger than the store can keep")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn placed(stream: &str, first: u64, data: &[&str]) -> Arc<Placed> {
        let event = |data: &&str| NewEvent {
            kind: "happened".into(),
            at: Millis(7),
            data: Json::from_text((*data).to_owned()),
        };
        Arc::new(Placed {
            stream: StreamName::new(stream).unwrap(),
            first: Seq::new(first),
            events: data.iter().map(event).collect(),
        })
    }

    fn batches(records: Vec<Record>) -> Vec<Vec<Placed>> {
        records.into_iter().map(|record| record.batch).collect()
    }

    fn owned(batches: Vec<Vec<Arc<Placed>>>) -> Vec<Vec<Placed>> {
        let own = |batch: Vec<Arc<Placed>>| {
            let own = |placed| Arc::into_inner(placed).unwrap();
            batch.into_iter().map(own).collect()
        };
        batches.into_iter().map(own).collect()
    }

    fn written(folder: &Path) -> Vec<Vec<Arc<Placed>>> {
        let (mut journal, found) = Journal::open(folder).unwrap();
        assert_eq!(found, []);
        let all = vec![
            vec![placed("a", 1, &["1", "\"ä\""]), placed("b/c", 9, &[])],
            vec![placed("b/c", 9, &["{}"])],
            vec![placed("a", 3, &["[1,2]"])],
        ];
        journal.write(&all[0]).unwrap();
        journal.turn();
        journal.write(&all[1]).unwrap();
        journal.write(&all[2]).unwrap();
        all
    }

    #[test]
    fn what_was_written_is_found_in_its_order_over_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let all = written(folder.path());
        let (mut journal, found) = Journal::open(folder.path()).unwrap();
        assert_eq!(batches(found), owned(all));
        journal.clear().unwrap();
        assert_eq!(Journal::open(folder.path()).unwrap().1, []);
    }

    #[test]
    fn what_is_settled_is_gone_and_the_rest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.write(&[placed("a", 1, &["1"])]).unwrap();
        journal.turn();
        journal.write(&[placed("a", 2, &["2"])]).unwrap();
        journal.settled().unwrap();
        let (_, found) = Journal::open(folder.path()).unwrap();
        assert_eq!(batches(found), owned(vec![vec![placed("a", 2, &["2"])]]));
    }

    #[test]
    fn a_record_that_was_cut_short_anywhere_is_passed_over_and_those_before_it_count() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = owned(written(folder.path()));
        all.pop();
        let path = folder.path().join(FILES[1]);
        let whole = std::fs::read(&path).unwrap();
        let second = HEADER + u32::from_le_bytes(whole[..4].try_into().unwrap()) as usize;
        for length in second..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (_, found) = Journal::open(folder.path()).unwrap();
            assert_eq!(batches(found), all, "{length} bytes");
        }
    }

    #[test]
    fn a_record_that_was_changed_before_the_last_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let path = folder.path().join(FILES[1]);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEADER + 9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let refused = Journal::open(folder.path()).unwrap_err();
        assert!(
            matches!(&refused, OpenError::Damaged { path: at, why }
                if *at == path && why == "record 1 of it cannot be read"),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
