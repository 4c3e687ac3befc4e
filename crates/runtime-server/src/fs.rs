//! The file actions, one file each, and what they share.

mod delete;
mod diff;
mod edit;
mod glob;
mod lines;
mod list;
mod mkdir;
mod moving;
mod patch;
mod read;
mod search;
mod stat;
mod tree;
mod walk;
mod write;

pub use delete::Delete;
pub use edit::Edit;
pub use glob::Glob;
pub use list::List;
pub use mkdir::Mkdir;
pub use moving::Move;
pub use patch::Patch;
pub use read::Read;
pub use search::Search;
pub use stat::Stat;
pub use write::Write;

use std::path::Path;

use protocol::action::fs::Entry;
use protocol::facts::{Access, EntryKind, PathFact};
use protocol::{Digest, ErrorKind, Facts, Failure};

use crate::workspace::{HostPath, kind_of, refusal};

/// The largest file that is read, edited or patched: it is held in memory while that is done.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// How many entries one answer lists.
const MAX_ENTRIES: usize = 10_000;

/// How much content or diff one answer carries.
const MAX_TEXT: usize = 1024 * 1024;

/// The facts of an action that reads one path.
fn reads(found: &HostPath) -> Facts {
    reads_at(found.real(), found.kind())
}

fn reads_at(real: &Path, kind: EntryKind) -> Facts {
    touches(vec![PathFact {
        path: real.to_string_lossy().into_owned(),
        access: Access::Read,
        kind: Some(kind),
        digest: None,
    }])
}

fn touches(paths: Vec<PathFact>) -> Facts {
    Facts {
        paths,
        ..Facts::default()
    }
}

/// One entry as it is told. Names that are not UTF-8 are told with `�` in them.
fn entry(relative: &Path, stat: &rustix::fs::Stat, target: Option<&[u8]>) -> Entry {
    let kind = kind_of(stat);
    let path = match relative.to_string_lossy() {
        root if root.is_empty() => ".".to_owned(),
        path => path.into_owned(),
    };
    Entry {
        path,
        kind,
        size: match kind {
            EntryKind::File => u64::try_from(stat.st_size).ok(),
            EntryKind::Directory | EntryKind::Symlink | EntryKind::Other => None,
        },
        modified: Some(milliseconds(stat)),
        target: target.map(|target| String::from_utf8_lossy(target).into_owned()),
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_wrap,
    reason = "the fields differ between architectures; nanoseconds fit"
)]
fn milliseconds(stat: &rustix::fs::Stat) -> i64 {
    (stat.st_mtime as i64)
        .saturating_mul(1000)
        .saturating_add(stat.st_mtime_nsec as i64 / 1_000_000)
}

/// Refuses to replace what is not what the client last saw.
fn expected(expect: Option<&Digest>, now: Option<&Digest>, path: &str) -> Result<(), Failure> {
    let Some(expect) = expect else {
        return Ok(());
    };
    if now == Some(expect) {
        return Ok(());
    }
    let (why, digest) = match now {
        Some(now) => (
            "has another content than was expected",
            serde_json::json!(now),
        ),
        None => ("is not there any more", serde_json::Value::Null),
    };
    Err(Failure::new(
        ErrorKind::Changed,
        format!(
            "{} {why}, so nothing was changed. Read it again, then try with the digest it has now.",
            refusal::quoted(path)
        ),
    )
    .with("path", path)
    .with("digest", digest))
}
