//! What would have to be done to take actions back, and whether what is there now lets it.
//!
//! Nothing is changed here. Several actions are looked at one after the other, the newest first,
//! each on what would be there after those before it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::undo::{FileChange, State, Unkept};
use protocol::{Digest, ErrorKind, Failure, Permissions};
use serde_json::json;

use super::blobs::Blobs;
use super::disk;
use super::manifest::{Manifest, Step};
use crate::diff;

/// Larger files are told by their sizes and digests.
const LARGEST: u64 = 256 * 1024;
/// The longest diff.
const MOST: usize = 64 * 1024;
/// How many files that have changed are told.
const SHOWN: usize = 20;

/// One thing to do. What is expected there is looked at once more when it is done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Writes a kept content.
    Write {
        path: String,
        digest: Digest,
        mode: Option<Permissions>,
        over: State,
    },
    /// Makes a symbolic link.
    Link {
        path: String,
        target: String,
    },
    Mkdir {
        path: String,
        mode: Option<Permissions>,
    },
    Delete {
        path: String,
        what: State,
    },
    /// A folder that was made on the way: it stays if something is in it.
    DeleteEmpty {
        path: String,
    },
    Move {
        from: String,
        to: String,
        what: State,
    },
}

/// What is to be done for each action, in their order; refuses where a path has changed since.
pub(super) fn plan(blobs: &Blobs, manifests: &[Manifest]) -> Result<Vec<Vec<Put>>, Failure> {
    let mut planning = Planning {
        blobs,
        ahead: Vec::new(),
        conflicts: Vec::new(),
    };
    let mut plans = Vec::new();
    for manifest in manifests {
        let mut puts = Vec::new();
        for step in manifest.steps.iter().rev() {
            match step {
                Step::Change(change) => planning.change(change, &mut puts)?,
                Step::Made { path } => planning.made(path, &mut puts)?,
                Step::Move {
                    from,
                    to,
                    what,
                    replaced,
                } => {
                    planning.moved(from, to, what, replaced, &mut puts)?;
                }
            }
        }
        plans.push(puts);
    }
    match planning.refusal() {
        Some(failure) => Err(failure),
        None => Ok(plans),
    }
}

/// What would be different from what is there now.
enum Ahead {
    Set(PathBuf, State),
    Move { from: PathBuf, to: PathBuf },
}

struct Conflict {
    path: String,
    /// Where it is to be read; nothing where it would be there only then.
    real: Option<PathBuf>,
    now: State,
    back: State,
}

struct Planning<'a> {
    blobs: &'a Blobs,
    ahead: Vec<Ahead>,
    conflicts: Vec<Conflict>,
}

impl Planning<'_> {
    fn change(&mut self, change: &FileChange, puts: &mut Vec<Put>) -> Result<(), Failure> {
        let FileChange {
            path,
            before,
            after,
            unkept,
            ..
        } = change;
        let now = self.state(path)?;
        if now.is_same_as(before) && *before != State::Other {
            return Ok(());
        }
        if let Some(unkept) = unkept {
            return Err(not_kept(path, *unkept));
        }
        let emptied = matches!((before, after), (State::Absent, State::Directory { .. }));
        if !now.is_same_as(after) || (emptied && !self.is_empty(path)?) {
            self.conflict(path, now, before);
        } else {
            self.put(path, before, after, puts)?;
        }
        self.ahead.push(Ahead::Set(path.into(), before.clone()));
        Ok(())
    }

    /// From what the action left to what was there.
    fn put(
        &self,
        path: &str,
        before: &State,
        after: &State,
        puts: &mut Vec<Put>,
    ) -> Result<(), Failure> {
        let delete = || Put::Delete {
            path: path.to_owned(),
            what: after.clone(),
        };
        match before {
            State::Absent => puts.push(delete()),
            State::File { digest, mode, .. } => {
                self.must_have(path, digest)?;
                let over = match after {
                    State::Directory { .. } => {
                        puts.push(delete());
                        State::Absent
                    }
                    State::Absent | State::File { .. } | State::Symlink { .. } | State::Other => {
                        after.clone()
                    }
                };
                // What somebody changed about its permissions since is left, unless the action did.
                let same = matches!(after, State::File { mode: left, .. } if left == mode);
                puts.push(Put::Write {
                    path: path.to_owned(),
                    digest: digest.clone(),
                    mode: if same { None } else { *mode },
                    over,
                });
            }
            State::Directory { mode } => {
                if *after != State::Absent {
                    puts.push(delete());
                }
                puts.push(Put::Mkdir {
                    path: path.to_owned(),
                    mode: *mode,
                });
            }
            State::Symlink { target } => {
                if *after != State::Absent {
                    puts.push(delete());
                }
                puts.push(Put::Link {
                    path: path.to_owned(),
                    target: target.clone(),
                });
            }
            State::Other => return Err(not_kept(path, Unkept::Special)),
        }
        Ok(())
    }

    fn made(&mut self, path: &str, puts: &mut Vec<Put>) -> Result<(), Failure> {
        if matches!(self.state(path)?, State::Directory { .. }) && self.is_empty(path)? {
            puts.push(Put::DeleteEmpty {
                path: path.to_owned(),
            });
            self.ahead.push(Ahead::Set(path.into(), State::Absent));
        }
        Ok(())
    }

    fn moved(
        &mut self,
        from: &str,
        to: &str,
        what: &State,
        replaced: &FileChange,
        puts: &mut Vec<Put>,
    ) -> Result<(), Failure> {
        let (here, there) = (self.state(from)?, self.state(to)?);
        if here.is_same_as(what) && there.is_same_as(&replaced.before) {
            return Ok(());
        }
        if let Some(unkept) = replaced.unkept {
            return Err(not_kept(to, unkept));
        }
        let mut fits = true;
        if here != State::Absent {
            self.conflict(from, here, what);
            fits = false;
        }
        if !there.is_same_as(what) {
            self.conflict(to, there, &replaced.before);
            fits = false;
        }
        let (back, away) = (PathBuf::from(from), PathBuf::from(to));
        if fits {
            puts.push(Put::Move {
                from: to.to_owned(),
                to: from.to_owned(),
                what: what.clone(),
            });
        }
        self.ahead.push(Ahead::Move {
            from: away,
            to: back,
        });
        if fits && replaced.before != State::Absent {
            self.put(to, &replaced.before, &State::Absent, puts)?;
        }
        self.ahead
            .push(Ahead::Set(to.into(), replaced.before.clone()));
        Ok(())
    }

    fn conflict(&mut self, path: &str, now: State, back: &State) {
        self.conflicts.push(Conflict {
            path: path.to_owned(),
            real: match self.place(Path::new(path)) {
                Place::OnDisk(real) => Some(real),
                Place::Known(_) => None,
            },
            now,
            back: back.clone(),
        });
    }

    fn must_have(&self, path: &str, digest: &Digest) -> Result<(), Failure> {
        if self.blobs.has(digest, None) {
            return Ok(());
        }
        Err(gone(path))
    }

    /// What will be at a path when all that is planned so far is done.
    fn state(&self, path: &str) -> Result<State, Failure> {
        match self.place(Path::new(path)) {
            Place::Known(state) => Ok(state),
            Place::OnDisk(real) => {
                let state = disk::state(&real).map_err(|error| unreadable(path, &error))?;
                // Behind a link nothing is found, which is not to say that nothing is there.
                if state == State::Absent
                    && let Some(link) = disk::link_above(&real)
                {
                    return Err(led_away(path, link));
                }
                Ok(state)
            }
        }
    }

    fn place(&self, path: &Path) -> Place {
        let mut path = path.to_owned();
        for ahead in self.ahead.iter().rev() {
            match ahead {
                Ahead::Set(set, state) if *set == path => return Place::Known(state.clone()),
                // Only a folder has something below it, and what is set there came later.
                Ahead::Set(set, state) => {
                    if path.starts_with(set) && !matches!(state, State::Directory { .. }) {
                        return Place::Known(State::Absent);
                    }
                }
                Ahead::Move { from, to } => {
                    if let Ok(rest) = path.strip_prefix(to) {
                        path = joined(from, rest);
                    } else if path.starts_with(from) {
                        return Place::Known(State::Absent);
                    }
                }
            }
        }
        Place::OnDisk(path)
    }

    /// Whether nothing will be in a folder.
    fn is_empty(&self, path: &str) -> Result<bool, Failure> {
        let path = Path::new(path);
        let mut names: BTreeSet<OsString> = BTreeSet::new();
        if let Place::OnDisk(real) = self.place(path) {
            let listed = disk::names(&real);
            names.extend(listed.map_err(|error| unreadable(&path.to_string_lossy(), &error))?);
        } else {
            let listed = disk::names(path);
            names.extend(listed.map_err(|error| unreadable(&path.to_string_lossy(), &error))?);
        }
        for ahead in &self.ahead {
            let (Ahead::Set(changed, _) | Ahead::Move { to: changed, .. }) = ahead;
            if let (Some(above), Some(name)) = (changed.parent(), changed.file_name())
                && (above == path
                    || matches!(self.place(path), Place::OnDisk(real) if real == above))
            {
                names.insert(name.to_owned());
            }
        }
        for name in names {
            let there = match self.place(&path.join(&name)) {
                Place::Known(state) => state != State::Absent,
                Place::OnDisk(real) => !matches!(disk::look(&real), Ok(disk::Entry::Absent)),
            };
            if there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What has changed since, with a diff of what would be lost.
    fn refusal(&self) -> Option<Failure> {
        let first = self.conflicts.first()?;
        let mut diff = String::new();
        for conflict in self.conflicts.iter().take(SHOWN) {
            if diff.len() < MOST {
                diff.push_str(&self.diff(conflict, MOST - diff.len()));
            }
        }
        let others = match self.conflicts.len() - 1 {
            0 => String::new(),
            1 => " and one other path".to_owned(),
            count => format!(" and {count} other paths"),
        };
        let paths = self.conflicts.iter().take(SHOWN);
        let paths: Vec<&str> = paths.map(|conflict| conflict.path.as_str()).collect();
        Some(
            Failure::new(
                ErrorKind::Changed,
                format!(
                    "{}{others} changed since, so nothing was undone. The diff shows what undoing would do to it; put it back by hand, or undo what came later first.",
                    diff::name(&first.path)
                ),
            )
            .with("paths", json!(paths))
            .with("diff", diff),
        )
    }

    fn diff(&self, conflict: &Conflict, most: usize) -> String {
        let Conflict {
            path,
            real,
            now,
            back,
        } = conflict;
        let there = match real {
            Some(real) if matches!(now, State::File { .. }) => {
                disk::read(real, LARGEST).ok().flatten().and_then(text)
            }
            Some(_) | None => self.text(now),
        };
        match (there, self.text(back)) {
            (Some(now), Some(back)) => diff::unified(path, &now, &back, most),
            _ => format!("{}-{}\n+{}\n", diff::header(path), said(now), said(back)),
        }
    }

    /// A kept content, where it can be shown.
    fn text(&self, state: &State) -> Option<String> {
        match state {
            State::Absent => Some(String::new()),
            State::File { digest, .. } => text(self.blobs.read(digest).ok()??),
            State::Directory { .. } | State::Symlink { .. } | State::Other => None,
        }
    }
}

fn led_away(path: &str, link: &Path) -> Failure {
    let link = link.to_string_lossy();
    Failure::new(
        ErrorKind::Changed,
        format!(
            "{} is a symbolic link now, so {} is no longer where the action left it, and nothing was undone. Put the folder back in its place, then try once more.",
            diff::name(&link),
            diff::name(path)
        ),
    )
    .with("path", path)
}

fn text(bytes: Vec<u8>) -> Option<String> {
    let short = bytes.len() as u64 <= LARGEST;
    String::from_utf8(bytes).ok().filter(|_| short)
}

enum Place {
    Known(State),
    OnDisk(PathBuf),
}

fn joined(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        folder.to_owned()
    } else {
        folder.join(rest)
    }
}

/// A state in a few words.
fn said(state: &State) -> String {
    match state {
        State::Absent => "nothing".to_owned(),
        State::File {
            digest,
            size: Some(size),
            ..
        } => format!("a file of {size} bytes, {digest}"),
        State::File {
            digest, size: None, ..
        } => format!("a file, {digest}"),
        State::Directory { .. } => "a folder".to_owned(),
        State::Symlink { target } => format!("a symbolic link to {}", diff::name(target)),
        State::Other => "something else".to_owned(),
    }
}

fn not_kept(path: &str, unkept: Unkept) -> Failure {
    let kind = match unkept {
        Unkept::TooLarge => ErrorKind::TooLarge,
        Unkept::Unreadable | Unkept::Special => ErrorKind::Unknown,
    };
    Failure::new(
        kind,
        format!(
            "What was at {} cannot be put back: {}. Nothing was undone.",
            diff::name(path),
            unkept.as_clause()
        ),
    )
    .with("path", path)
    .with("unkept", json!(unkept))
}

pub(super) fn gone(path: &str) -> Failure {
    Failure::new(
        ErrorKind::Unknown,
        format!(
            "What was at {} is no longer kept: it had to make room for newer. Nothing was undone.",
            diff::name(path)
        ),
    )
    .with("path", path)
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        ErrorKind::Io,
        format!(
            "{} cannot be looked at ({error}), so nothing was undone.",
            diff::name(path)
        ),
    )
    .with("path", path)
}
