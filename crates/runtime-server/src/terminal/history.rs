//! The latest output of a terminal or background command, for whoever asks later.

use std::collections::VecDeque;

use protocol::Data;

use super::text::{headless, unfinished};

/// Bytes of output that can be asked for later.
const KEPT: usize = 256 * 1024;

/// The last bytes of a stream, with their place in it.
#[derive(Debug, Default)]
pub(crate) struct History {
    bytes: VecDeque<u8>,
    /// Where the stream stands: bytes that were ever added.
    end: u64,
}

/// A part of the history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) data: Data,
    /// Bytes that were asked for and are no longer kept.
    pub(crate) dropped: u64,
    /// Where the stream goes on behind it.
    pub(crate) next: u64,
}

/// Whether more can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    /// It still runs.
    MayCome,
    /// It has ended.
    No,
}

impl History {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// All that is kept from `from` on; a character that is not finished waits for the next time.
    pub(crate) fn read(&self, from: Option<u64>, more: More) -> Part {
        let oldest = self.end - self.bytes.len() as u64;
        let from = from.unwrap_or(oldest).min(self.end);
        let start = from.max(oldest);
        let skipped = usize::try_from(start - oldest).unwrap_or(self.bytes.len());
        let mut bytes: Vec<u8> = self.bytes.range(skipped..).copied().collect();
        let mut dropped = start - from;
        if start == oldest && oldest > 0 {
            // What was dropped may have taken the start of a character with it.
            let ragged = headless(&bytes);
            bytes.drain(..ragged);
            dropped += ragged as u64;
        }
        let waiting = match more {
            More::MayCome => unfinished(&bytes),
            More::No => 0,
        };
        bytes.truncate(bytes.len() - waiting);
        Part {
            data: Data::from_bytes(bytes),
            dropped,
            next: self.end - waiting as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, dropped: u64, next: u64) -> Part {
        Part {
            data: Data::from_bytes(text.into()),
            dropped,
            next,
        }
    }

    #[test]
    fn reading_goes_on_where_it_left_off() {
        let mut history = History::default();
        history.add(b"one ");
        assert_eq!(history.read(None, More::MayCome), part("one ", 0, 4));
        history.add("zwö".as_bytes());
        assert_eq!(history.read(Some(4), More::MayCome), part("zwö", 0, 8));
        assert_eq!(history.read(Some(8), More::MayCome), part("", 0, 8));
        assert_eq!(history.read(Some(99), More::MayCome), part("", 0, 8));
    }

    #[test]
    fn a_character_is_never_split() {
        let mut history = History::default();
        history.add(b"a\xc3");
        assert_eq!(history.read(None, More::MayCome), part("a", 0, 1));
        history.add(b"\xb6");
        assert_eq!(history.read(Some(1), More::MayCome), part("ö", 0, 3));
    }

    #[test]
    fn what_is_no_longer_kept_is_told() {
        let mut history = History::default();
        let all = "ö".repeat(KEPT);
        history.add(b"x");
        history.add(all.as_bytes());
        let end = 1 + all.len() as u64;
        let read = history.read(Some(0), More::No);
        assert_eq!(read.next, end);
        assert_eq!(read.dropped + read.data.text.len() as u64, end);
        assert_eq!(read.data.text.replace('ö', ""), "");
    }
}
