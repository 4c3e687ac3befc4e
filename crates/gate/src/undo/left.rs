//! Finds out what a file action left.

use std::path::Path;

use protocol::action::fs::{Done, EditResult, PatchResult, WriteResult};
use protocol::undo::State;
use protocol::{ActionName, ErrorKind, Failure};
use serde_json::value::RawValue;

use super::disk::{self, Entry};
use super::keep::{Earlier, Was, file_state};
use super::manifest::Step;

/// What the action changed, by what it answered.
pub(super) fn after(action: ActionName, earlier: Vec<Earlier>, result: &RawValue) -> Vec<Step> {
    let left: Vec<State> = match action {
        ActionName::FsWrite => match serde_json::from_str::<WriteResult>(result.get()) {
            Ok(result) => vec![file_state(result.digest, None, None)],
            Err(_) => return left_there(earlier),
        },
        ActionName::FsEdit => match serde_json::from_str::<EditResult>(result.get()) {
            Ok(result) => vec![file_state(result.digest, None, None)],
            Err(_) => return left_there(earlier),
        },
        ActionName::FsPatch => match serde_json::from_str::<PatchResult>(result.get()) {
            Ok(result) => result
                .files
                .into_iter()
                .map(|file| match file.digest {
                    Some(digest) => file_state(digest, None, None),
                    None => State::Absent,
                })
                .collect(),
            Err(_) => return left_there(earlier),
        },
        _ => match serde_json::from_str::<Done>(result.get()) {
            Ok(Done { changed: false }) => return Vec::new(),
            Ok(Done { changed: true }) | Err(_) => Vec::new(),
        },
    };
    let mut left = left.into_iter();
    let mut steps = Vec::new();
    for earlier in earlier {
        steps.push(match earlier {
            Earlier::Missing(path) => Step::Made { path },
            Earlier::Entry(was) => {
                let state = match action {
                    ActionName::FsDelete => State::Absent,
                    ActionName::FsMkdir => State::Directory { mode: None },
                    _ => left.next().unwrap_or(State::Other),
                };
                let state = with_mode(state, &was.path);
                Step::Change(was.became(state))
            }
            Earlier::Move { from, what, to } => moved(from, what, to),
        });
    }
    steps
}

/// What an action changed that did not come to its end, by what is there now.
pub(super) fn after_failure(
    action: ActionName,
    earlier: Vec<Earlier>,
    failure: &Failure,
) -> Vec<Step> {
    let half_done = match failure.kind {
        ErrorKind::Cancelled | ErrorKind::RuntimeLost | ErrorKind::Disconnected => true,
        // All others are done whole or not at all.
        _ => action == ActionName::FsDelete,
    };
    if half_done {
        left_there(earlier)
    } else {
        Vec::new()
    }
}

fn left_there(earlier: Vec<Earlier>) -> Vec<Step> {
    let now = |path: &str| disk::state(Path::new(path)).unwrap_or(State::Other);
    let mut steps = Vec::new();
    for earlier in earlier {
        match earlier {
            Earlier::Missing(path) => {
                if matches!(now(&path), State::Directory { .. }) {
                    steps.push(Step::Made { path });
                }
            }
            Earlier::Entry(was) => {
                let state = now(&was.path);
                if !state.is_same_as(&was.state) {
                    steps.push(Step::Change(was.became(state)));
                }
            }
            Earlier::Move { from, what, to } => {
                if now(&from) == State::Absent && now(&to.path).is_same_as(&what) {
                    steps.push(moved(from, what, to));
                }
            }
        }
    }
    steps
}

fn moved(from: String, what: State, to: Was) -> Step {
    Step::Move {
        from,
        to: to.path.clone(),
        replaced: to.became(what.clone()),
        what,
    }
}

/// The state with the permissions that are there now, if it is still such a file.
fn with_mode(state: State, path: &str) -> State {
    match (state, disk::look(Path::new(path))) {
        (State::File { digest, .. }, Ok(Entry::File { size, mode, .. })) => {
            file_state(digest, Some(size), Some(mode))
        }
        (State::Directory { .. }, Ok(Entry::Directory { mode, .. })) => {
            State::Directory { mode: Some(mode) }
        }
        (state, _) => state,
    }
}

#[cfg(test)]
mod tests {
    use protocol::Digest;

    use super::*;

    #[test]
    fn of_what_was_done_by_half_only_that_half_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let path = |name: &str| real.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("d")).unwrap();
        std::fs::write(path("d/left"), "left").unwrap();
        let file = |content: &str| file_state(Digest::of(content.as_bytes()), None, None);
        let was = |name: &str, state: State| Was {
            path: path(name),
            state,
            unkept: None,
        };
        let earlier = || {
            let folder = State::Directory { mode: None };
            let entries = [
                was("d/gone", file("gone")),
                was("d/left", file("left")),
                was("d", folder),
            ];
            entries.map(Earlier::Entry).into_iter().collect::<Vec<_>>()
        };
        let gone = Step::Change(was("d/gone", file("gone")).became(State::Absent));
        let cancelled = Failure::new(ErrorKind::Cancelled, "It was cancelled.");
        let steps = after_failure(ActionName::FsDelete, earlier(), &cancelled);
        assert_eq!(steps, [gone]);
        // What is done whole or not at all was not done, whoever changed something meanwhile.
        let full = Failure::new(ErrorKind::Io, "The disk is full.");
        assert_eq!(after_failure(ActionName::FsPatch, earlier(), &full), []);
    }
}
