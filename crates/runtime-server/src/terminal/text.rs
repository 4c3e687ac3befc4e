//! Where characters end in a stream of bytes that may be cut anywhere.

use protocol::{Data, Encoding};

/// Cuts a stream into pieces that never split a character.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The start of a character whose rest has not come yet: three bytes at most.
    tail: Vec<u8>,
}

impl Pieces {
    /// The next piece, where there is one. Bytes that are no text at all come as base64, intact.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Option<Data> {
        let mut piece = std::mem::take(&mut self.tail);
        piece.extend_from_slice(bytes);
        let whole = piece.len() - unfinished(&piece);
        self.tail = piece.split_off(whole);
        (!piece.is_empty()).then(|| Data::from_bytes(piece))
    }

    /// What is left at the end: a character that was never finished.
    pub(crate) fn rest(&mut self) -> Option<Data> {
        let tail = std::mem::take(&mut self.tail);
        (!tail.is_empty()).then(|| Data::from_bytes(tail))
    }
}

/// How many bytes a piece of output has.
pub(crate) fn size(data: &Data) -> u64 {
    match data.encoding {
        Encoding::Utf8 => data.text.len() as u64,
        // Three bytes are written as four; what pads the last four is none.
        Encoding::Base64 => {
            let padding = data.text.len() - data.text.trim_end_matches('=').len();
            (data.text.len() / 4 * 3 - padding) as u64
        }
    }
}

/// How many bytes at the end are the start of a character whose rest is missing.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return 0,
        };
        return if length > back && could_go_on(&bytes[bytes.len() - back..]) {
            back
        } else {
            0
        };
    }
    0
}

/// How many bytes at the start are the end of a character whose beginning is missing.
pub(crate) fn headless(bytes: &[u8]) -> usize {
    let count = bytes
        .iter()
        .take_while(|byte| (0x80..=0xbf).contains(*byte))
        .count();
    if count > 3 { 0 } else { count }
}

fn could_go_on(start: &[u8]) -> bool {
    std::str::from_utf8(start).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(data: Data) -> Vec<u8> {
        Data::decode(data.text, data.encoding).unwrap()
    }

    #[test]
    fn a_character_that_is_cut_waits_for_its_rest() {
        let mut pieces = Pieces::default();
        assert_eq!(
            pieces.next(b"a\xf0\x9f").map(|data| data.text),
            Some("a".to_owned())
        );
        assert_eq!(pieces.next(b"\x98"), None);
        assert_eq!(
            pieces.next(b"\x80b").map(|data| data.text),
            Some("\u{1f600}b".to_owned())
        );
        assert_eq!(pieces.rest(), None);
    }

    #[test]
    fn bytes_that_are_no_text_come_intact() {
        let mut pieces = Pieces::default();
        let piece = pieces.next(b"\xff\xfe");
        assert_eq!(piece, Some(Data::base64(b"\xff\xfe")));
        assert_eq!(piece.as_ref().map(size), Some(2));
        assert_eq!(pieces.next(b"\xe2\x82"), None);
        assert_eq!(pieces.rest(), Some(Data::base64(b"\xe2\x82")));
    }

    proptest! {
        #[test]
        fn however_text_is_cut_it_stays_text_and_whole(
            text in "\\PC{0,60}",
            size in 1_usize..6,
        ) {
            let mut pieces = Pieces::default();
            let mut out = String::new();
            for cut in text.as_bytes().chunks(size) {
                if let Some(data) = pieces.next(cut) {
                    prop_assert_eq!(data.encoding, Encoding::Utf8);
                    out.push_str(&data.text);
                }
            }
            prop_assert_eq!(pieces.rest(), None);
            prop_assert_eq!(out, text);
        }

        #[test]
        fn however_bytes_are_cut_none_is_lost(
            all in proptest::collection::vec(any::<u8>(), 0..60),
            size in 1_usize..6,
        ) {
            let mut pieces = Pieces::default();
            let mut out = Vec::new();
            for cut in all.chunks(size) {
                out.extend(pieces.next(cut).map(bytes).unwrap_or_default());
            }
            out.extend(pieces.rest().map(bytes).unwrap_or_default());
            prop_assert_eq!(out, all);
        }
    }
}
