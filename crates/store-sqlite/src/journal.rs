//! What was appended and is not in the database yet, as records in a file ([`Pad`]).
//!
//! Two files take turns. While the records of one go into the database, new ones go into the other;
//! then the first is emptied. What is found in them when the store is opened was appended by a Ward
//! that was killed, and goes into the database before anything else.
//!
//! A file begins with a word that says what it is and with the system's start in which it was
//! written. A record is the length of its body, the body's checksum and the body: its number, and a
//! batch with the place of every event. A number is written with its least byte first, a text as its
//! length and its bytes. What is not written is zero.

use std::path::{Path, PathBuf};

use store::{Json, Millis, NewEvent, Seq, StreamName};

use crate::error::OpenError;
use crate::pad::Pad;

const FILES: [&str; 2] = ["ward.journal-a", "ward.journal-b"];
/// How a file begins; the older ones began with a record, and none was as long as this says.
const WORD: &[u8; 8] = b"ward.j2\n";
/// The name of a start of the system.
type Start = [u8; 36];
/// The length and the checksum of a record.
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
    pads: [Pad; 2],
    /// Which of them is written to.
    turn: usize,
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
    /// in the order in which it was written, and stays there until [`Journal::clear`], before which
    /// nothing can be written.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<Record>), OpenError> {
        let mut found = Vec::new();
        let mut open = |name: &str| -> Result<Pad, OpenError> {
            let path = folder.join(name);
            let (pad, bytes) = Pad::open(&path).map_err(|why| OpenError::Folder {
                folder: folder.to_owned(),
                why,
            })?;
            found.extend(records(&bytes, &path)?);
            Ok(pad)
        };
        let pads = [open(FILES[0])?, open(FILES[1])?];
        found.sort_by_key(|record| record.number);
        let journal = Self {
            pads,
            turn: 0,
            number: found.last().map_or(0, |record| record.number),
            buffer: Vec::new(),
        };
        Ok((journal, found))
    }

    /// Empties both files, and begins.
    pub(crate) fn clear(&mut self) -> std::io::Result<()> {
        let mut head = WORD.to_vec();
        head.extend(start().unwrap_or([0; size_of::<Start>()]));
        self.pads.iter_mut().try_for_each(|pad| pad.clear(&head))
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
        self.pads[self.turn].write(&self.buffer)?;
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
    }

    /// What was written before the last turn is in the database.
    pub(crate) fn settled(&mut self) -> std::io::Result<()> {
        self.pads[1 - self.turn].empty()
    }
}

/// The records of a file. The last one may be cut short: whoever wrote it was killed before anybody
/// was told of it. Where the system was started since, anything may be behind the first that is not
/// whole: what the disk had got by then.
fn records(bytes: &[u8], path: &Path) -> Result<Vec<Record>, OpenError> {
    let (all, is_of_now) = match bytes.strip_prefix(WORD) {
        Some(rest) => match rest.split_at_checked(size_of::<Start>()) {
            Some((written, all)) => (all, start().is_some_and(|now| now == written)),
            None => return Ok(Vec::new()),
        },
        // By an older Ward.
        None => (bytes, true),
    };
    let mut records = Vec::new();
    let mut rest = Bytes(all);
    while !rest.is_empty() {
        let body = rest.body();
        match body.and_then(Bytes::record) {
            Some(record) => records.push(record),
            None if rest.is_empty() => break,
            None if is_of_now => {
                return Err(OpenError::Damaged {
                    path: PathBuf::from(path),
                    why: format!("record {} of it cannot be read", records.len() + 1),
                });
            }
            None => {
                tracing::warn!(path = %path.display(), "the system was started anew before all of the journal was on the disk; what came last is lost");
                break;
            }
        }
    }
    Ok(records)
}

/// The start of the system that this is, if it can be known.
fn start() -> Option<Start> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    id.trim_ascii_end().try_into().ok()
}

/// Bytes that are yet to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Whether nothing is written from here on.
    fn is_empty(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }

    /// The next body, if it is whole and its checksum fits. One that is longer than what is there
    /// takes all of it.
    fn body(&mut self) -> Option<Self> {
        let (Some(size), Some(checksum)) = (self.u32(), self.u32()) else {
            self.0 = &[];
            return None;
        };
        let Some(body) = self.take(usize::try_from(size).ok()?) else {
            self.0 = &[];
            return None;
        };
        (crc32fast::hash(body) == checksum).then_some(Self(body))
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
            kind: self.text()?.into(),
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

    use crate::pad::FRONT;

    use super::*;

    const HEAD: usize = WORD.len() + size_of::<Start>();

    fn placed(stream: &str, first: u64, data: &[&str]) -> Arc<Placed> {
        let event = |data: &&str| NewEvent {
            kind: "happened".into(),
            at: Millis(7),
            data: Json::from_text(*data),
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

    fn begun(folder: &Path) -> Journal {
        let (mut journal, found) = Journal::open(folder).unwrap();
        assert_eq!(found, []);
        journal.clear().unwrap();
        journal
    }

    /// The files as they are while a journal is open, in another folder.
    fn as_if_killed(folder: &Path) -> tempfile::TempDir {
        let left = tempfile::tempdir().unwrap();
        for name in FILES {
            std::fs::copy(folder.join(name), left.path().join(name)).unwrap();
        }
        left
    }

    fn written() -> (tempfile::TempDir, Vec<Vec<Arc<Placed>>>) {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begun(folder.path());
        let all = vec![
            vec![placed("a", 1, &["1", "\"ä\""]), placed("b/c", 9, &[])],
            vec![placed("b/c", 9, &["{}"])],
            vec![placed("a", 3, &["[1,2]"])],
        ];
        journal.write(&all[0]).unwrap();
        journal.turn();
        journal.write(&all[1]).unwrap();
        journal.write(&all[2]).unwrap();
        (as_if_killed(folder.path()), all)
    }

    /// A file, up to the end of its last record.
    fn read(path: &Path) -> Vec<u8> {
        let mut bytes = std::fs::read(path).unwrap();
        let mut end = HEAD;
        while let length @ 1.. = length_of(&bytes[end..]) {
            end += length;
        }
        bytes.truncate(end);
        bytes
    }

    /// The second of the files that were written.
    fn second(folder: &Path) -> (PathBuf, Vec<u8>) {
        let path = folder.join(FILES[1]);
        let bytes = read(&path);
        (path, bytes)
    }

    /// How long the record is that begins here, if one does.
    fn length_of(bytes: &[u8]) -> usize {
        match u32::from_le_bytes(bytes[..4].try_into().unwrap()) {
            0 => 0,
            body => HEADER + body as usize,
        }
    }

    #[test]
    fn what_was_written_is_found_in_its_order_over_both_files() {
        let (folder, all) = written();
        let (mut journal, found) = Journal::open(folder.path()).unwrap();
        assert_eq!(batches(found), owned(all));
        journal.clear().unwrap();
        assert_eq!(Journal::open(folder.path()).unwrap().1, []);
    }

    #[test]
    fn what_is_settled_is_gone_and_the_rest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begun(folder.path());
        let long = "1".repeat(FRONT / 3);
        for first in 1..=7 {
            journal.write(&[placed("a", first, &[&long])]).unwrap();
        }
        journal.turn();
        journal.write(&[placed("a", 8, &["8"])]).unwrap();
        journal.settled().unwrap();
        let left = as_if_killed(folder.path());
        let (_, found) = Journal::open(left.path()).unwrap();
        assert_eq!(batches(found), owned(vec![vec![placed("a", 8, &["8"])]]));
        let first = std::fs::read(folder.path().join(FILES[0])).unwrap();
        assert!(first.len() <= FRONT && first[HEAD..].iter().all(|byte| *byte == 0));
        journal.turn();
        journal.settled().unwrap();
        drop(journal);
        let length = |name: &str| folder.path().join(name).metadata().unwrap().len();
        assert_eq!(FILES.map(length), [0, 0]);
    }

    #[test]
    fn what_is_longer_than_what_is_mapped_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begun(folder.path());
        let long = "1".repeat(FRONT - 1000);
        let data = ["1", &long, "2", &long, "3"];
        let all = (1..)
            .zip(data)
            .map(|(seq, data)| vec![placed("a", seq, &[data])]);
        let all: Vec<_> = all.collect();
        for batch in &all {
            journal.write(batch).unwrap();
        }
        let left = as_if_killed(folder.path());
        assert_eq!(batches(Journal::open(left.path()).unwrap().1), owned(all));
    }

    #[test]
    fn a_record_that_was_cut_short_anywhere_is_passed_over_and_those_before_it_count() {
        let (folder, all) = written();
        let mut all = owned(all);
        all.pop();
        let (path, whole) = second(folder.path());
        let begins = HEAD + length_of(&whole[HEAD..]);
        for length in begins..whole.len() {
            let mut left = whole[..length].to_vec();
            for zeros in [0, FRONT] {
                left.resize(length + zeros, 0);
                std::fs::write(&path, &left).unwrap();
                let (_, found) = Journal::open(folder.path()).unwrap();
                assert_eq!(batches(found), all, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_record_that_was_changed_before_the_last_is_refused_and_left_as_it_is() {
        let (folder, _) = written();
        let (path, whole) = second(folder.path());
        let flip = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let blank = |range: std::ops::Range<usize>| {
            let mut bytes = whole.clone();
            bytes[range].fill(0);
            bytes
        };
        let first = HEAD..HEAD + length_of(&whole[HEAD..]);
        for bytes in [flip(HEAD + HEADER + 9), flip(HEAD + 5), blank(first)] {
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

    #[test]
    fn after_a_start_of_the_system_what_is_whole_counts_up_to_the_first_that_is_not() {
        let (folder, all) = written();
        let (path, mut bytes) = second(folder.path());
        bytes[WORD.len()..HEAD].fill(b'7');
        let begins = HEAD + length_of(&bytes[HEAD..]);
        bytes[HEAD..begins].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        let (_, found) = Journal::open(folder.path()).unwrap();
        assert_eq!(batches(found), owned(all)[..1]);
    }

    #[test]
    fn what_an_older_ward_left_is_found() {
        let (folder, all) = written();
        for name in FILES {
            let path = folder.path().join(name);
            std::fs::write(&path, &read(&path)[HEAD..]).unwrap();
        }
        let (_, found) = Journal::open(folder.path()).unwrap();
        assert_eq!(batches(found), owned(all));
    }
}
