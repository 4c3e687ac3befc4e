//! The frame reader never panics, never keeps more than it may, and does not care how its input is
//! cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::{Frame, FrameReader};

const LIMIT: usize = 256;

#[derive(Debug, PartialEq)]
enum Seen {
    Body(Vec<u8>),
    TooLarge(u64, Vec<u8>),
    Bad(rpc::BadHeader),
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut reader = FrameReader::new(LIMIT);
    let mut seen = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Some(frame) = reader.next() {
            seen.push(match frame {
                Frame::Body(body) => {
                    assert!(body.len() <= LIMIT);
                    Seen::Body(body.to_vec())
                }
                Frame::TooLarge { length, start } => {
                    assert!(length > LIMIT as u64);
                    Seen::TooLarge(length, start.to_vec())
                }
                Frame::Bad(bad) => Seen::Bad(bad),
            });
        }
    }
    seen
}

// The first byte says how the rest is cut; plain bytes, so that a dictionary and seeds fit.
fuzz_target!(|input: &[u8]| {
    let Some((cut, bytes)) = input.split_first() else {
        return;
    };
    let whole = read(std::iter::once(bytes));
    let cut_up = read(bytes.chunks(usize::from(*cut).max(1)));
    assert_eq!(whole, cut_up);
});
