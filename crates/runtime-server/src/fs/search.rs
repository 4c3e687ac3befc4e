//! `fs.search`: lines that fit a regular expression.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use protocol::action::fs::{SearchParams, SearchResult};
use protocol::facts::EntryKind;
use protocol::{ActionName, ErrorKind, Facts, Failure};
use tokio_util::sync::CancellationToken;

use crate::action::{Action, Call};
use crate::context::Context;
use crate::workspace::{Final, HostPath, refusal};

use super::glob::bad;
use super::lines::Lines;
use super::walk::{Walked, walk};

const LIMIT: u32 = 200;
const MAX_LIMIT: u32 = 10_000;
const MAX_CONTEXT: u32 = 20;

/// A line is held in memory whole; a file with longer ones is skipped like a binary one.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// `fs.search`
#[derive(Debug)]
pub struct Search;

impl Action for Search {
    const NAME: ActionName = ActionName::FsSearch;
    const DESCRIPTION: &'static str = "Finds lines that fit a regular expression (ripgrep's syntax; `(?i)` ignores case) in the files below `path`. What .gitignore names and binary files are left out.";
    type Params = SearchParams;
    type Result = SearchResult;

    fn resolve(context: &Context, params: &SearchParams) -> Result<Facts, Failure> {
        Query::new(params)?;
        Ok(super::reads(&root(context, &params.path)?))
    }

    async fn execute(call: Call, params: SearchParams) -> Result<SearchResult, Failure> {
        let query = Query::new(&params)?;
        call.blocking(move |call| search(&call, &params.path, query))
            .await
    }
}

struct Query {
    matcher: RegexMatcher,
    files: Option<Override>,
    context: u32,
    limit: u32,
}

impl Query {
    fn new(params: &SearchParams) -> Result<Self, Failure> {
        let matcher = RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .build(&params.pattern)
            .map_err(|error| {
                bad(
                    &params.pattern,
                    error.to_string().trim(),
                    "Write it in ripgrep's syntax, within one line; `\\` before ( ) [ ] { } . * + ? ^ $ | takes it as it is",
                )
            })?;
        Ok(Self {
            matcher,
            files: params.glob.as_deref().map(only_files).transpose()?,
            context: at_most("context", params.context.unwrap_or(0), MAX_CONTEXT)?,
            limit: match params.limit {
                Some(0) => return Err(out_of_range("limit", 0, MAX_LIMIT)),
                Some(limit) => at_most("limit", limit, MAX_LIMIT)?,
                None => LIMIT,
            },
        })
    }
}

fn only_files(glob: &str) -> Result<Override, Failure> {
    let hint = "Write it such as `*.rs`, `src/**` or `!*.md`";
    let mut builder = OverrideBuilder::new("/");
    builder
        .add(glob)
        .map_err(|error| bad(glob, &error.to_string(), hint))?;
    builder
        .build()
        .map_err(|error| bad(glob, &error.to_string(), hint))
}

fn at_most(field: &str, value: u32, most: u32) -> Result<u32, Failure> {
    if value > most {
        return Err(out_of_range(field, value, most));
    }
    Ok(value)
}

fn out_of_range(field: &str, value: u32, most: u32) -> Failure {
    Failure::new(
        ErrorKind::InvalidParams,
        format!("`{field}` of fs.search is {value}; it may be up to {most}, and `limit` not 0."),
    )
    .with("field", field)
}

fn root(context: &Context, path: &str) -> Result<HostPath, Failure> {
    let found = context.grounds.find(path, Final::Followed)?;
    match found.kind() {
        EntryKind::File | EntryKind::Directory => Ok(found),
        EntryKind::Symlink | EntryKind::Other => Err(refusal::not_a_file(found.stat(), path)),
    }
}

fn search(call: &Call, path: &str, query: Query) -> Result<SearchResult, Failure> {
    let root = root(&call.context, path)?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .before_context(query.context as usize)
        .after_context(query.context as usize)
        .heap_limit(Some(MAX_LINE))
        .build();
    let mut lines = Lines::new(query.matcher, query.context, query.limit);

    if root.kind() == EntryKind::File {
        let file = root.open().map_err(|errno| refusal::of(errno, path))?;
        search_file(call, &mut searcher, &mut lines, root.relative(), file)?;
        return Ok(lines.finish());
    }
    let walked = walk(call, &root, path, |found| {
        let below = found
            .relative
            .strip_prefix(root.relative())
            .unwrap_or(found.relative);
        let left_out = query
            .files
            .as_ref()
            .is_some_and(|files| files.matched(Path::new("/").join(below), false).is_ignore());
        if found.kind != EntryKind::File || left_out {
            return Ok(ControlFlow::Continue(()));
        }
        // What cannot be opened is left out, as in every search.
        if let Ok(file) = found.open() {
            search_file(call, &mut searcher, &mut lines, found.relative, file)?;
        }
        Ok(if lines.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    if walked == Walked::NotTooDeep {
        lines.leave_out();
    }
    Ok(lines.finish())
}

fn search_file(
    call: &Call,
    searcher: &mut Searcher,
    lines: &mut Lines,
    relative: &Path,
    file: File,
) -> Result<(), Failure> {
    lines.enter(&relative.to_string_lossy());
    let reader = Cancellable {
        file,
        cancel: &call.cancel,
    };
    let matcher = lines.matcher();
    if let Err(error) = searcher.search_reader(matcher, reader, &mut *lines) {
        call.still_wanted()?;
        tracing::debug!(path = %relative.display(), %error, "a file was left out of a search");
    }
    Ok(())
}

/// Reads a file until nobody wants the result any more: one file can take minutes.
struct Cancellable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
