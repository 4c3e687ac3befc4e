//! `fs.glob`: files whose path fits a pattern.

use std::ops::ControlFlow;
use std::path::Component;

use globset::{GlobBuilder, GlobMatcher};
use protocol::action::fs::{EntriesResult, GlobParams};
use protocol::facts::EntryKind;
use protocol::{ActionName, ErrorKind, Facts, Failure};

use crate::action::{Action, Call};
use crate::context::Context;
use crate::workspace::refusal;

use super::MAX_ENTRIES;
use super::walk::{Walked, walk};

/// `fs.glob`
#[derive(Debug)]
pub struct Glob;

impl Action for Glob {
    const NAME: ActionName = ActionName::FsGlob;
    const DESCRIPTION: &'static str = "Finds files whose path below `path` fits a pattern such as `src/**/*.rs` or `**/*.{ts,tsx}`. What .gitignore names is left out. At most 10,000 files.";
    type Params = GlobParams;
    type Result = EntriesResult;

    fn resolve(context: &Context, params: &GlobParams) -> Result<Facts, Failure> {
        compile(&params.pattern)?;
        Ok(super::reads(&context.grounds.folder(&params.path)?))
    }

    async fn execute(call: Call, params: GlobParams) -> Result<EntriesResult, Failure> {
        let pattern = compile(&params.pattern)?;
        call.blocking(move |call| glob(&call, &params.path, &pattern))
            .await
    }
}

fn compile(pattern: &str) -> Result<GlobMatcher, Failure> {
    let path = std::path::Path::new(pattern);
    let leaves = path.is_absolute() || path.components().any(|part| part == Component::ParentDir);
    if pattern.is_empty() || leaves {
        return Err(bad(
            pattern,
            "it has to be relative and without `..`",
            "Put the folder into `path` and the rest into `pattern`",
        ));
    }
    GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            bad(
                pattern,
                &error.kind().to_string(),
                "`*` fits within a name, `**` over folders, `{a,b}` one of them, `[ab]` a character; `\\` before any of these takes it as it is",
            )
        })
}

pub(super) fn bad(pattern: &str, why: &str, hint: &str) -> Failure {
    Failure::new(
        ErrorKind::BadPattern,
        format!(
            "{} is not a pattern: {why}. {hint}.",
            refusal::quoted(pattern)
        ),
    )
    .with("pattern", pattern)
}

fn glob(call: &Call, path: &str, pattern: &GlobMatcher) -> Result<EntriesResult, Failure> {
    let root = call.context.grounds.folder(path)?;
    let mut entries = Vec::new();
    let mut truncated = false;
    let walked = walk(call, &root, path, |found| {
        let below = found
            .relative
            .strip_prefix(root.relative())
            .unwrap_or(found.relative);
        if !pattern.is_match(below) {
            return Ok(ControlFlow::Continue(()));
        }
        if entries.len() == MAX_ENTRIES {
            truncated = true;
            return Ok(ControlFlow::Break(()));
        }
        let Ok(stat) = found.stat() else {
            return Ok(ControlFlow::Continue(()));
        };
        let target = match found.kind {
            EntryKind::Symlink => found.link_target(),
            EntryKind::File | EntryKind::Directory | EntryKind::Other => None,
        };
        entries.push(super::entry(found.relative, &stat, target.as_deref()));
        Ok(ControlFlow::Continue(()))
    })?;
    truncated |= walked == Walked::NotTooDeep;
    Ok(EntriesResult { entries, truncated })
}
