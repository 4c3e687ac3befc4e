//! The lines that a search found, with the lines around them.

use std::collections::VecDeque;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use protocol::action::fs::{Match, SearchResult};

/// A longer line is cut, so that a minified file does not fill the answer.
const MAX_CHARS: usize = 1000;

/// What all lines of an answer may weigh together, with the lines around them.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// How much of a long line is kept before the match.
const LEAD: usize = 200;

/// Collects matches over several files, in the order they come.
pub(super) struct Lines {
    matcher: RegexMatcher,
    context: u64,
    limit: usize,
    path: String,
    matches: Vec<Match>,
    /// Where the matches of the file that is being read begin.
    first: usize,
    /// The last lines that went by, for `before`.
    recent: VecDeque<(u64, String)>,
    bytes: usize,
    truncated: bool,
}

impl Lines {
    pub(super) fn new(matcher: RegexMatcher, context: u32, limit: u32) -> Self {
        Self {
            matcher,
            context: u64::from(context),
            limit: limit as usize,
            path: String::new(),
            matches: Vec::new(),
            first: 0,
            recent: VecDeque::new(),
            bytes: 0,
            truncated: false,
        }
    }

    pub(super) fn matcher(&self) -> RegexMatcher {
        self.matcher.clone()
    }

    /// The lines that follow are of this file.
    pub(super) fn enter(&mut self, path: &str) {
        path.clone_into(&mut self.path);
        self.first = self.matches.len();
        self.recent.clear();
    }

    /// Whether there were more matches than fit.
    pub(super) fn is_full(&self) -> bool {
        self.truncated
    }

    /// Something could not be looked at.
    pub(super) fn leave_out(&mut self) {
        self.truncated = true;
    }

    pub(super) fn finish(self) -> SearchResult {
        SearchResult {
            matches: self.matches,
            truncated: self.truncated,
        }
    }

    /// One line went by: it is context of the matches shortly before it.
    fn pass(&mut self, number: u64, bytes: &[u8]) {
        if self.context == 0 {
            return;
        }
        let text = shown(bytes, 0).0;
        for found in self.matches[self.first..].iter_mut().rev() {
            if number - found.line > self.context {
                break;
            }
            self.bytes += text.len();
            found.after.push(text.clone());
        }
        self.recent.push_back((number, text));
        if self.recent.len() as u64 > self.context {
            self.recent.pop_front();
        }
    }
}

impl Sink for &mut Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let number = found.line_number().unwrap_or(0);
        let line = found.bytes();
        if self.matches.len() == self.limit || self.bytes > MAX_BYTES {
            self.truncated = true;
            self.pass(number, line);
            return Ok(false);
        }
        let start = self.matcher.find(line)?.map_or(0, |fit| fit.start());
        let (text, column) = shown(line, start);
        let before: Vec<String> = self
            .recent
            .iter()
            .filter(|(line, _)| number - line <= self.context)
            .map(|(_, text)| text.clone())
            .collect();
        self.pass(number, line);
        let path = self.path.clone();
        self.bytes += path.len() + text.len() + before.iter().map(String::len).sum::<usize>();
        self.matches.push(Match {
            path,
            line: number,
            column,
            text,
            before,
            after: Vec::new(),
        });
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.pass(line.line_number().unwrap_or(0), line.bytes());
        Ok(true)
    }
}

/// A line as it is told, cut around byte `start`, and the column of that byte in characters.
fn shown(line: &[u8], start: usize) -> (String, u64) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let before = String::from_utf8_lossy(&line[..start.min(line.len())])
        .chars()
        .count();
    let text = String::from_utf8_lossy(line);
    let column = before as u64 + 1;
    let length = text.chars().count();
    if length <= MAX_CHARS {
        return (text.into_owned(), column);
    }
    let from = if before < MAX_CHARS - LEAD {
        0
    } else {
        before - LEAD
    };
    let mut cut = String::new();
    if from > 0 {
        cut.push('…');
    }
    cut.extend(text.chars().skip(from).take(MAX_CHARS));
    if from + MAX_CHARS < length {
        cut.push('…');
    }
    (cut, column)
}
