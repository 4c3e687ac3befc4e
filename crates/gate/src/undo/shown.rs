//! What an action did to files, for a person to look at: also what it replaced whole.

use std::path::Path;
use std::sync::Arc;

use protocol::Failure;
use protocol::undo::{Changes, FileChange, ShownChange, State};
use serde_json::Value;
use store::Store;

use super::blobs::Blobs;
use super::{blocking, disk};
use crate::actor::Actor;
use crate::diff;
use crate::gate::{Gate, no_action};
use crate::record::stream_of;

/// Larger files have no diff.
const LARGEST: u64 = 256 * 1024;
/// The longest diff of one file.
const MOST: usize = 64 * 1024;
/// How long the diffs of one action become; what comes after has none.
const ALL: usize = 256 * 1024;
/// How many files are compared: a comparison can take a while.
const COMPARED: usize = 40;

impl<S: Store> Gate<S> {
    /// What an action of this person's, or of one of their agents, did to files. An action that
    /// changed none has none.
    ///
    /// Refuses agents: what a file held before may be what they may not read.
    pub async fn changes(&self, actor: &Actor, id: &str) -> Result<Changes, Failure> {
        let person = actor.must_be_person("look at what files held before")?;
        let stream = stream_of(id).map_err(|_| no_action(id))?;
        let found = self.0.look_up(&stream).await?;
        let ended = found
            .filter(|found| found.person.as_deref() == Some(person))
            .ok_or_else(|| no_action(id))?
            .ended
            .unwrap_or_default();
        let files = ended.get("files").cloned().unwrap_or_default();
        let files: Vec<FileChange> = serde_json::from_value(files).unwrap_or_default();
        let more = ended.get("more_files").and_then(Value::as_u64);
        let blobs = Arc::clone(&self.0.undo.blobs);
        let files = blocking(move || shown(&blobs, files)).await;
        Ok(Changes {
            files: files.unwrap_or_default(),
            more: more.unwrap_or(0),
        })
    }
}

fn shown(blobs: &Blobs, files: Vec<FileChange>) -> Vec<ShownChange> {
    let mut left = ALL;
    let files = files.into_iter().enumerate().map(|(index, change)| {
        let FileChange {
            path,
            before,
            after,
            ..
        } = change;
        let diff = (index < COMPARED && left > 0)
            .then(|| compared(blobs, &path, &before, &after, left.min(MOST)))
            .flatten();
        left = left.saturating_sub(diff.as_ref().map_or(0, String::len));
        ShownChange {
            path,
            before,
            after,
            diff,
        }
    });
    files.collect()
}

/// A diff, where both sides are text that can still be had.
fn compared(
    blobs: &Blobs,
    path: &str,
    before: &State,
    after: &State,
    most: usize,
) -> Option<String> {
    if matches!((before, after), (State::Absent, State::Absent)) {
        return None;
    }
    let old = text(before, |state| kept(blobs, state))?;
    let new = text(after, |state| {
        there(path, state).or_else(|| kept(blobs, state))
    })?;
    Some(diff::unified(path, &old, &new, most))
}

fn text(state: &State, read: impl FnOnce(&State) -> Option<Vec<u8>>) -> Option<String> {
    match state {
        State::Absent => Some(String::new()),
        State::File { size, .. } if size.is_some_and(|size| size > LARGEST) => None,
        State::File { .. } => {
            let bytes = read(state)?;
            let short = bytes.len() as u64 <= LARGEST;
            String::from_utf8(bytes).ok().filter(|_| short)
        }
        State::Directory { .. } | State::Symlink { .. } | State::Other => None,
    }
}

/// What was kept: before an action, or before a later one.
fn kept(blobs: &Blobs, state: &State) -> Option<Vec<u8>> {
    let State::File { digest, .. } = state else {
        return None;
    };
    blobs.read(digest).ok()?
}

/// What is there now, if it is still what the action left.
fn there(path: &str, state: &State) -> Option<Vec<u8>> {
    let State::File { digest, .. } = state else {
        return None;
    };
    let bytes = disk::read(Path::new(path), LARGEST).ok()??;
    (protocol::Digest::of(&bytes) == *digest).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::keep::file_state;
    use protocol::Digest;

    struct Scene {
        folder: tempfile::TempDir,
        blobs: Blobs,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let blobs = Blobs::new(&folder.path().join("data"), 1 << 30);
            Self { folder, blobs }
        }

        fn path(&self, name: &str) -> String {
            let real = self.folder.path().canonicalize().unwrap().join(name);
            real.to_str().unwrap().to_owned()
        }

        fn keep(&self, content: &str) -> State {
            self.blobs.keep(content.as_bytes(), u64::MAX).unwrap();
            file(content)
        }

        fn diff(&self, name: &str, before: State, after: State) -> Option<String> {
            let change = FileChange::new(self.path(name), before, after, None);
            let diff = shown(&self.blobs, vec![change]).remove(0).diff?;
            // Without the header, which has the folder's name.
            Some(diff.splitn(3, '\n').last().unwrap().to_owned())
        }
    }

    fn file(content: &str) -> State {
        let size = Some(content.len() as u64);
        file_state(Digest::of(content.as_bytes()), size, None)
    }

    #[test]
    fn what_was_replaced_is_compared_with_what_is_there_or_was_kept_since() {
        let scene = Scene::new();
        let before = scene.keep("one\ntwo\n");
        std::fs::write(scene.path("a"), "one\n2\u{202e}\n").unwrap();
        let wanted = "@@ -1,2 +1,2 @@\n one\n-two\n+2\\u{202e}\n";
        let after = file("one\n2\u{202e}\n");
        let shown = scene.diff("a", before.clone(), after.clone());
        assert_eq!(shown.as_deref(), Some(wanted));
        // A later action replaced it, and so it was kept.
        std::fs::write(scene.path("a"), "something else").unwrap();
        assert_eq!(scene.diff("a", before.clone(), after.clone()), None);
        scene.keep("one\n2\u{202e}\n");
        assert_eq!(scene.diff("a", before, after).as_deref(), Some(wanted));
    }

    #[test]
    fn what_is_new_or_gone_is_shown_whole() {
        let scene = Scene::new();
        std::fs::write(scene.path("a"), "new\n").unwrap();
        let added = scene.diff("a", State::Absent, file("new\n"));
        assert_eq!(added.as_deref(), Some("@@ -0,0 +1 @@\n+new\n"));
        let old = scene.keep("old\n");
        let gone = scene.diff("b", old, State::Absent);
        assert_eq!(gone.as_deref(), Some("@@ -1 +0,0 @@\n-old\n"));
    }

    #[test]
    fn what_is_no_text_too_large_or_a_link_has_no_diff() {
        let scene = Scene::new();
        let large = "x".repeat(300 * 1024);
        std::fs::write(scene.path("a"), &large).unwrap();
        assert_eq!(scene.diff("a", State::Absent, file(&large)), None);
        std::fs::write(scene.path("b"), b"\xff\xfe").unwrap();
        let binary = file_state(Digest::of(b"\xff\xfe"), Some(2), None);
        assert_eq!(scene.diff("b", State::Absent, binary), None);
        // A link that took the place of the file since is not followed.
        std::fs::write(scene.path("secret"), "secret\n").unwrap();
        std::os::unix::fs::symlink("secret", scene.path("c")).unwrap();
        assert_eq!(scene.diff("c", State::Absent, file("secret\n")), None);
        assert_eq!(scene.diff("d", State::Absent, State::Absent), None);
    }

    #[test]
    fn the_diffs_of_an_action_have_a_limit() {
        let scene = Scene::new();
        let changes: Vec<FileChange> = (0..60)
            .map(|index| {
                let content = format!("{index}\n").repeat(4000);
                let path = scene.path(&format!("f{index}"));
                std::fs::write(&path, &content).unwrap();
                FileChange::new(path, State::Absent, file(&content), None)
            })
            .collect();
        let shown = shown(&scene.blobs, changes);
        assert_eq!(shown.len(), 60);
        let all: usize = shown
            .iter()
            .flat_map(|one| &one.diff)
            .map(String::len)
            .sum();
        assert!(all <= ALL + 100, "{all}");
        assert!(shown[0].diff.is_some() && shown[59].diff.is_none());
    }
}
