//! The frame reader: what comes out for which bytes, however they are cut.

use proptest::prelude::*;
use rpc::{BadHeader, Frame, FrameReader, write_frame};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Body(String),
    TooLarge(u64, String),
    Bad(BadHeader),
}

fn read(limit: usize, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut reader = FrameReader::new(limit);
    let mut seen = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Some(frame) = reader.next() {
            seen.push(match frame {
                Frame::Body(body) => Seen::Body(String::from_utf8_lossy(body).into_owned()),
                Frame::TooLarge { length, start } => {
                    Seen::TooLarge(length, String::from_utf8_lossy(start).into_owned())
                }
                Frame::Bad(bad) => Seen::Bad(bad),
            });
        }
    }
    seen
}

fn body(text: &str) -> Seen {
    Seen::Body(text.to_owned())
}

fn framed(text: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

#[test]
fn frames_are_written_as_vscode_jsonrpc_writes_them() {
    let mut out = Vec::new();
    write_frame(&mut out, "{}".as_bytes());
    write_frame(&mut out, "\"1234567890\"".as_bytes());
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "Content-Length: 2\r\n\r\n{}Content-Length: 12\r\n\r\n\"1234567890\""
    );
}

#[test]
fn several_frames_in_one_read_come_out_in_order() {
    let bytes = framed("{}") + &framed("[1]") + &framed("");
    assert_eq!(
        read(100, &[bytes.as_bytes()]),
        vec![body("{}"), body("[1]"), body("")]
    );
}

#[test]
fn header_names_are_case_insensitive_and_a_charset_is_tolerated() {
    let bytes =
        b"content-type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:2\r\n\r\n{}";
    assert_eq!(read(100, &[bytes]), vec![body("{}")]);
}

#[test]
fn a_frame_over_the_limit_is_told_once_and_passed_over() {
    let large = "x".repeat(2_000);
    let bytes = framed(&large) + &framed("{}");
    assert_eq!(
        read(1_000, &[bytes.as_bytes()]),
        vec![Seen::TooLarge(2_000, "x".repeat(512)), body("{}")]
    );
}

#[test]
fn a_frame_over_the_limit_is_not_kept() {
    let mut reader = FrameReader::new(1_000);
    reader.push(b"Content-Length: 100000000000\r\n\r\n");
    for _ in 0..1_000 {
        reader.push(&[b'x'; 10_000]);
        while reader.next().is_some() {}
    }
    assert_eq!(reader.spare().len(), 64 * 1024);
    assert!(!reader.is_between_frames());
}

#[test]
fn after_a_bad_header_the_next_content_length_line_is_found() {
    let bytes = format!(
        "Content-Length: many\r\n\r\n{{\"a\": 1}}{}{}",
        framed("{}"),
        framed("[]")
    );
    assert_eq!(
        read(100, &[bytes.as_bytes()]),
        vec![Seen::Bad(BadHeader::BadLength), body("{}"), body("[]")]
    );
}

#[test]
fn json_without_any_header_is_told_at_the_end_of_its_line() {
    assert_eq!(
        read(100, &[b"{\"jsonrpc\":\"2.0\"}\n"]),
        vec![Seen::Bad(BadHeader::NotAHeader)]
    );
}

#[test]
fn each_way_a_header_can_be_bad_has_its_name() {
    assert_eq!(
        read(100, &[b"Content-Type: x\r\n\r\n"]),
        vec![Seen::Bad(BadHeader::NoLength)]
    );
    assert_eq!(
        read(100, &[b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"]),
        vec![Seen::Bad(BadHeader::TwoLengths), body("{}")]
    );
    assert_eq!(
        read(100, &[&[b'a'; 9_000]]),
        vec![Seen::Bad(BadHeader::TooLong)]
    );
}

#[test]
fn the_stream_may_end_only_between_frames() {
    let mut reader = FrameReader::new(100);
    let bytes = framed("{}");
    for byte in bytes.as_bytes() {
        assert_eq!(reader.next(), None);
        reader.push(&[*byte]);
        if *byte != b'}' {
            assert_eq!(reader.next(), None);
            assert!(!reader.is_between_frames());
        }
    }
    assert_eq!(reader.next(), Some(Frame::Body(b"{}")));
    assert!(reader.is_between_frames());
}

/// Pieces from which streams are put together: good frames, and what may go wrong between them.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[ -~\r\n]{0,40}".prop_map(|text| framed(&text).into_bytes()),
        1 => (60_usize..2_000).prop_map(|size| framed(&"y".repeat(size)).into_bytes()),
        1 => Just(b"Content-Length: x\r\n\r\n".to_vec()),
        1 => Just(b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n".to_vec()),
        1 => Just(b"Content-Type: a; charset=b\r\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => (8_000_usize..8_400).prop_map(|size| vec![b'h'; size]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_same_frames_come_out_however_the_bytes_are_cut(
        pieces in proptest::collection::vec(piece(), 0..12),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut cut_up = Vec::new();
        let mut from = 0;
        for cut in cuts {
            cut_up.push(&bytes[from..cut]);
            from = cut;
        }
        cut_up.push(&bytes[from..]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();

        let whole = read(1_000, &[&bytes]);
        prop_assert_eq!(&read(1_000, &cut_up), &whole);
        prop_assert_eq!(&read(1_000, &single), &whole);
    }

    #[test]
    fn good_frames_come_out_as_they_went_in(
        texts in proptest::collection::vec("\\PC{0,80}", 0..12),
    ) {
        let mut bytes = Vec::new();
        for text in &texts {
            write_frame(&mut bytes, text.as_bytes());
        }
        let expected: Vec<Seen> = texts.iter().map(|text| body(text)).collect();
        prop_assert_eq!(read(10_000, &[&bytes]), expected);
    }
}
