//! Content-Length frames as npm `vscode-jsonrpc` writes them: bytes in, frames and errors out.
//!
//! Does no I/O and never fails: what cannot be read is itself told as a [`Frame`], and the reader
//! goes on behind it. However the bytes are cut, the same frames come out. It keeps at most one
//! frame within the limit; what is over the limit is passed over, not kept.

use crate::header::{self, BadHeader, MAX_HEADER, MAX_PLAUSIBLE};

/// How much of a frame over the limit is shown, so that whoever asked can be told.
const GLIMPSE: usize = 512;

/// What the buffer starts with, and shrinks back to after a large frame.
const BUFFER: usize = 64 * 1024;

/// What the bytes turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A body, whole.
    Body(&'a [u8]),
    /// A body over the limit. It is passed over as it arrives.
    TooLarge {
        /// What its header says.
        length: u64,
        /// How it starts.
        start: &'a [u8],
    },
    /// Header lines that cannot be read. Everything up to the next `Content-Length` line is passed
    /// over.
    Bad(BadHeader),
}

/// Finds the frames in a stream of bytes.
///
/// Read into [`spare`](Self::spare), tell how much with [`filled`](Self::filled), then call
/// [`next`](Self::next) until there is nothing more.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// What was not used yet is `buffer[start..end]`.
    start: usize,
    end: usize,
    state: State,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In the header lines.
    Header {
        length: Option<u64>,
        /// Bytes of header lines behind us.
        used: usize,
        /// Bytes of the line before us that hold no line end.
        scanned: usize,
    },
    /// Before a body of this length.
    Body(usize),
    /// Before a body over the limit.
    TooLarge(u64),
    /// In a body over the limit, with so much of it to come.
    Skip(u64),
    /// Out of step: looking for the next `Content-Length` line.
    Search,
}

const FRESH: State = State::Header {
    length: None,
    used: 0,
    scanned: 0,
};

impl FrameReader {
    /// A reader that passes over bodies of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            state: FRESH,
            limit,
        }
    }

    /// From the next header on, passes over bodies of more than `limit` bytes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where to read the next bytes into; never empty.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > BUFFER {
                self.buffer = vec![0; BUFFER];
            }
        }
        if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Grows with what has arrived, not with what a header promises.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Takes the first `count` bytes of [`spare`](Self::spare) as read.
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Takes bytes that were read elsewhere.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let spare = self.spare();
            let count = spare.len().min(bytes.len());
            spare[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// Whether the stream may end here: nothing is half-read.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        match self.state {
            State::Header { length, used, .. } => {
                length.is_none() && used == 0 && self.start == self.end
            }
            State::Search | State::Skip(0) => true,
            State::Body(_) | State::TooLarge(_) | State::Skip(_) => false,
        }
    }

    /// The next frame, where there is a whole one.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend from itself"
    )]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            let waiting = self.end - self.start;
            match self.state {
                State::Header {
                    length,
                    used,
                    scanned,
                } => {
                    if let Err(bad) = self.header_line(length, used, scanned)? {
                        self.state = State::Search;
                        return Some(Frame::Bad(bad));
                    }
                }
                State::Body(length) => {
                    if waiting < length {
                        return None;
                    }
                    self.state = FRESH;
                    let body = self.take(length);
                    return Some(Frame::Body(&self.buffer[body]));
                }
                State::TooLarge(length) => {
                    let shown = usize::try_from(length).map_or(GLIMPSE, |all| all.min(GLIMPSE));
                    if waiting < shown {
                        return None;
                    }
                    self.state = State::Skip(length - shown as u64);
                    let start = self.take(shown);
                    return Some(Frame::TooLarge {
                        length,
                        start: &self.buffer[start],
                    });
                }
                State::Skip(0) => self.state = FRESH,
                State::Skip(rest) => {
                    if waiting == 0 {
                        return None;
                    }
                    let now = usize::try_from(rest).map_or(waiting, |rest| rest.min(waiting));
                    self.take(now);
                    self.state = State::Skip(rest - now as u64);
                }
                State::Search => match header::plausible(&self.buffer[self.start..self.end]) {
                    Some(at) => {
                        self.take(at);
                        self.state = FRESH;
                    }
                    None => {
                        // What could still become the line is kept, and no more.
                        self.take(waiting.saturating_sub(MAX_PLAUSIBLE - 1));
                        return None;
                    }
                },
            }
        }
    }

    /// One header line. Where it is bad it is left in place, because the search may find a header
    /// in it.
    fn header_line(
        &mut self,
        length: Option<u64>,
        used: usize,
        scanned: usize,
    ) -> Option<Result<(), BadHeader>> {
        let waiting = &self.buffer[self.start..self.end];
        let Some(line_end) = waiting[scanned..].iter().position(|byte| *byte == b'\n') else {
            if used + waiting.len() > MAX_HEADER {
                return Some(Err(BadHeader::TooLong));
            }
            self.state = State::Header {
                length,
                used,
                scanned: waiting.len(),
            };
            return None;
        };
        let line = &waiting[..scanned + line_end];
        let after = line.len() + 1;
        if used + after > MAX_HEADER {
            return Some(Err(BadHeader::TooLong));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            self.take(after);
            return match length {
                // Empty lines between frames do no harm.
                None if used == 0 => {
                    self.state = FRESH;
                    Some(Ok(()))
                }
                None => Some(Err(BadHeader::NoLength)),
                Some(length) => {
                    self.state = match usize::try_from(length) {
                        Ok(length) if length <= self.limit => State::Body(length),
                        _ => State::TooLarge(length),
                    };
                    Some(Ok(()))
                }
            };
        }
        let length = match (length, header::line(line)) {
            (_, Err(bad)) => return Some(Err(bad)),
            (Some(one), Ok(Some(other))) if one != other => {
                return Some(Err(BadHeader::TwoLengths));
            }
            (before, Ok(now)) => now.or(before),
        };
        self.take(after);
        self.state = State::Header {
            length,
            used: used + after,
            scanned: 0,
        };
        Some(Ok(()))
    }

    fn take(&mut self, count: usize) -> std::ops::Range<usize> {
        let from = self.start;
        self.start += count;
        from..self.start
    }
}

/// Appends one frame.
pub fn write_frame(out: &mut Vec<u8>, body: &[u8]) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = body.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.reserve(40 + body.len());
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}
