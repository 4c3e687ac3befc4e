//! What a result keeps of a stream: its head and its tail, and a line between that says what was
//! cut.

use std::collections::VecDeque;

use protocol::Data;

use super::text::{headless, unfinished};

/// Bytes kept at either end.
const END: usize = 32 * 1024;

/// The head and the tail of a stream.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl Kept {
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        let room = END - self.head.len();
        if room > 0 {
            let (first, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(first);
            bytes = rest;
        }
        let over = bytes.len().saturating_sub(END);
        self.cut += over as u64;
        let bytes = &bytes[over..];
        let over = (self.tail.len() + bytes.len()).saturating_sub(END);
        self.cut += over as u64;
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }

    /// What is kept, and how many bytes were cut out of its middle.
    pub(crate) fn finish(self) -> (Data, u64) {
        let mut bytes = self.head;
        let tail: Vec<u8> = self.tail.into();
        if self.cut == 0 {
            bytes.extend_from_slice(&tail);
            return (Data::from_bytes(bytes), 0);
        }
        // The cut must not make half characters of whole ones.
        let (ragged_end, ragged_start) = (unfinished(&bytes), headless(&tail));
        let cut = self.cut + (ragged_end + ragged_start) as u64;
        bytes.truncate(bytes.len() - ragged_end);
        bytes.extend_from_slice(format!("\n[{cut} bytes were cut here]\n").as_bytes());
        bytes.extend_from_slice(&tail[ragged_start..]);
        (Data::from_bytes(bytes), cut)
    }
}

#[cfg(test)]
mod tests {
    use protocol::Encoding;

    use super::*;

    fn kept(bytes: &[u8], piece: usize) -> (Data, u64) {
        let mut kept = Kept::default();
        for piece in bytes.chunks(piece) {
            kept.add(piece);
        }
        kept.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let text = "x".repeat(2 * END);
        assert_eq!(
            kept(text.as_bytes(), 1_000),
            (Data::from_bytes(text.into_bytes()), 0)
        );
    }

    #[test]
    fn of_more_the_head_and_the_tail_are_kept_and_the_cut_is_told() {
        let all = [vec![b'a'; END], vec![b'b'; 10], vec![b'c'; END]].concat();
        for piece in [1, 7, 1_000, all.len()] {
            let (data, cut) = kept(&all, piece);
            assert_eq!(cut, 10);
            assert_eq!(
                data.text,
                format!(
                    "{}\n[10 bytes were cut here]\n{}",
                    "a".repeat(END),
                    "c".repeat(END)
                )
            );
        }
    }

    #[test]
    fn the_cut_splits_no_character() {
        let all = "€".repeat(END);
        let (data, cut) = kept(all.as_bytes(), 999);
        assert_eq!(data.encoding, Encoding::Utf8);
        let marker = format!("\n[{cut} bytes were cut here]\n");
        let rest = data.text.len() - marker.len();
        assert_eq!(rest as u64 + cut, all.len() as u64);
        assert_eq!(data.text.replace(&marker, "").replace('€', ""), "");
    }
}
