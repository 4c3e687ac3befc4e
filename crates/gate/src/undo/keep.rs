//! Keeps what a file action is about to replace.

use std::path::Path;

use protocol::facts::{Access, EntryKind, PathFact};
use protocol::undo::{FileChange, State, Unkept};
use protocol::{ActionName, Digest, Facts, Permissions};

use super::blobs::Blobs;
use super::disk::{self, Entry};

/// As deep as folders are deleted.
const MAX_DEPTH: usize = 128;

/// How much is kept of one action.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) file: u64,
    pub(super) bytes: u64,
    pub(super) files: usize,
}

/// How one path was before the action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// A folder on the way that is not there and will be made.
    Missing(String),
    /// What will be replaced.
    Entry(Was),
    /// What will be moved, and what is in its new place.
    Move { from: String, what: State, to: Was },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Was {
    pub(super) path: String,
    pub(super) state: State,
    pub(super) unkept: Option<Unkept>,
}

impl Was {
    pub(super) fn became(self, after: State) -> FileChange {
        FileChange::new(self.path, self.state, after, self.unkept)
    }
}

/// Whether an action can change files by itself, so that something is kept of it.
pub(crate) fn changes_files(action: ActionName) -> bool {
    match action {
        ActionName::FsWrite
        | ActionName::FsEdit
        | ActionName::FsPatch
        | ActionName::FsMkdir
        | ActionName::FsMove
        | ActionName::FsDelete => true,
        ActionName::FsRead
        | ActionName::FsList
        | ActionName::FsStat
        | ActionName::FsGlob
        | ActionName::FsSearch
        | ActionName::TerminalRun
        | ActionName::TerminalOpen
        | ActionName::TerminalWrite
        | ActionName::TerminalResize
        | ActionName::TerminalClose
        | ActionName::TerminalList
        | ActionName::TerminalRead
        | ActionName::TerminalStop
        | ActionName::EditorOpen
        | ActionName::EditorSelection
        | ActionName::EditorDiagnostics
        | ActionName::EditorDiff
        | ActionName::EditorSymbols
        | ActionName::EditorFormat
        | ActionName::EditorRename
        | ActionName::EditorCommand
        | ActionName::EditorTask
        | ActionName::CellExecute => false,
    }
}

/// Keeps what the action would replace. It never fails: what cannot be kept is noted as such.
pub(super) fn before(
    blobs: &Blobs,
    limits: Limits,
    action: ActionName,
    facts: &Facts,
) -> Vec<Earlier> {
    let mut keeping = Keeping {
        blobs,
        left: limits,
        earlier: Vec::new(),
    };
    if action == ActionName::FsMove {
        if let [from, to] = facts.paths.as_slice()
            && from.path != to.path
        {
            keeping.moving(from, to);
        }
        return keeping.earlier;
    }
    for fact in &facts.paths {
        match fact.access {
            Access::Read => {}
            Access::Write | Access::Delete => keeping.path(fact),
        }
    }
    keeping.earlier
}

struct Keeping<'a> {
    blobs: &'a Blobs,
    left: Limits,
    earlier: Vec<Earlier>,
}

impl Keeping<'_> {
    fn moving(&mut self, from: &PathFact, to: &PathFact) {
        self.missing_above(to);
        let what = match from.kind {
            Some(EntryKind::File) => match &from.digest {
                Some(digest) => State::File {
                    digest: digest.clone(),
                    size: None,
                    mode: None,
                },
                None => State::Other,
            },
            Some(EntryKind::Directory) => State::Directory { mode: None },
            Some(EntryKind::Symlink) => disk::state(Path::new(&from.path)).unwrap_or(State::Other),
            Some(EntryKind::Other) | None => State::Other,
        };
        let to = self.was(to);
        let from = from.path.clone();
        self.earlier.push(Earlier::Move { from, what, to });
    }

    fn path(&mut self, fact: &PathFact) {
        self.missing_above(fact);
        if fact.kind == Some(EntryKind::Directory) {
            self.folder(fact);
        } else {
            let was = self.was(fact);
            self.earlier.push(Earlier::Entry(was));
        }
    }

    /// The folders that will be made, the uppermost first.
    fn missing_above(&mut self, fact: &PathFact) {
        if fact.kind.is_some() {
            return;
        }
        let missing = Path::new(&fact.path)
            .ancestors()
            .skip(1)
            .take_while(|above| matches!(disk::state(above), Ok(State::Absent)));
        let mut missing: Vec<String> = missing
            .filter_map(|path| Some(path.to_str()?.to_owned()))
            .collect();
        missing.reverse();
        for path in missing {
            let known =
                |earlier: &Earlier| matches!(earlier, Earlier::Missing(known) if *known == path);
            if !self.earlier.iter().any(known) {
                self.earlier.push(Earlier::Missing(path));
            }
        }
    }

    /// What is at a path that is no folder, as the facts have it.
    fn was(&mut self, fact: &PathFact) -> Was {
        let path = Path::new(&fact.path);
        let (state, unkept) = match (fact.kind, &fact.digest) {
            (None, _) => (State::Absent, None),
            (Some(EntryKind::File), Some(digest)) => match disk::look(path) {
                Ok(Entry::File { file, size, mode }) => {
                    let unkept = self.content(file, size, Some(digest)).err();
                    (file_state(digest.clone(), Some(size), Some(mode)), unkept)
                }
                // Something else by now: the runtime will say so.
                Ok(_) | Err(_) => (
                    file_state(digest.clone(), None, None),
                    Some(Unkept::Unreadable),
                ),
            },
            (Some(EntryKind::Symlink), digest) => match disk::look(path) {
                Ok(Entry::Symlink { target }) if digest.as_ref() == Some(&Digest::of(&target)) => {
                    special(disk::link(target))
                }
                Ok(_) | Err(_) => (State::Other, Some(Unkept::Unreadable)),
            },
            (Some(EntryKind::File), None) => (State::Other, Some(Unkept::Unreadable)),
            (Some(EntryKind::Directory | EntryKind::Other), _) => {
                (State::Other, Some(Unkept::Special))
            }
        };
        let path = fact.path.clone();
        Was {
            path,
            state,
            unkept,
        }
    }

    /// Keeps a file's content, and answers its digest. Where the digest is known, another content
    /// is none.
    fn content(
        &mut self,
        file: std::fs::File,
        size: u64,
        known: Option<&Digest>,
    ) -> Result<Digest, Unkept> {
        if size > self.left.file || size > self.left.bytes || self.left.files == 0 {
            return Err(Unkept::TooLarge);
        }
        self.left.bytes -= size;
        self.left.files -= 1;
        if let Some(digest) = known
            && self.blobs.has(digest, Some(size))
        {
            return Ok(digest.clone());
        }
        match self.blobs.keep(file, size) {
            Ok(Some((digest, _))) if known.is_none_or(|known| *known == digest) => Ok(digest),
            Ok(_) => Err(Unkept::Unreadable),
            Err(error) => {
                tracing::warn!(%error, "what an action replaces cannot be kept");
                Err(Unkept::Unreadable)
            }
        }
    }

    /// A folder with all that is in it, the innermost first, or not at all.
    fn folder(&mut self, fact: &PathFact) {
        let path = Path::new(&fact.path);
        let mut entries = Vec::new();
        let (state, unkept) = match disk::look(path) {
            Ok(Entry::Directory { folder, mode }) => {
                let state = State::Directory { mode: Some(mode) };
                match self.below(&folder, &fact.path, 1, &mut entries) {
                    Ok(()) => (state, None),
                    Err(unkept) => (state, Some(unkept)),
                }
            }
            Ok(_) | Err(_) => (State::Directory { mode: None }, Some(Unkept::Unreadable)),
        };
        if unkept.is_none() {
            for (path, found) in entries {
                let (state, unkept) = self.found(&path, found);
                self.earlier.push(Earlier::Entry(Was {
                    path,
                    state,
                    unkept,
                }));
            }
        }
        let path = fact.path.clone();
        self.earlier.push(Earlier::Entry(Was {
            path,
            state,
            unkept,
        }));
    }

    /// All that is in a folder, without its contents: first it is seen whether it is too much.
    fn below(
        &self,
        folder: &std::os::fd::OwnedFd,
        path: &str,
        depth: usize,
        entries: &mut Vec<(String, Found)>,
    ) -> Result<(), Unkept> {
        if depth > MAX_DEPTH {
            return Err(Unkept::TooLarge);
        }
        for name in disk::list(folder).map_err(|_| Unkept::Unreadable)? {
            let entry = disk::at(folder, &name).map_err(|_| Unkept::Unreadable)?;
            let name = name.to_str().ok_or(Unkept::Special)?;
            let path = format!("{path}/{name}");
            let found = match entry {
                Entry::Absent => continue,
                Entry::File { size, .. } => Found::File(size),
                Entry::Symlink { target } => Found::Link(target),
                Entry::Directory { folder, mode } => {
                    self.below(&folder, &path, depth + 1, entries)?;
                    Found::Folder(mode)
                }
                Entry::Other => return Err(Unkept::Special),
            };
            entries.push((path, found));
            let bytes: u64 = entries.iter().map(|(_, found)| found.size()).sum();
            if entries.len() > self.left.files || bytes > self.left.bytes {
                return Err(Unkept::TooLarge);
            }
        }
        Ok(())
    }

    fn found(&mut self, path: &str, found: Found) -> (State, Option<Unkept>) {
        match found {
            Found::Folder(mode) => (State::Directory { mode: Some(mode) }, None),
            Found::Link(target) => special(disk::link(target)),
            Found::File(_) => match disk::look(Path::new(path)) {
                Ok(Entry::File { file, size, mode }) => match self.content(file, size, None) {
                    Ok(digest) => (file_state(digest, Some(size), Some(mode)), None),
                    Err(unkept) => (State::Other, Some(unkept)),
                },
                Ok(_) | Err(_) => (State::Other, Some(Unkept::Unreadable)),
            },
        }
    }
}

enum Found {
    File(u64),
    Link(Vec<u8>),
    Folder(Permissions),
}

impl Found {
    fn size(&self) -> u64 {
        match self {
            Self::File(size) => *size,
            Self::Link(_) | Self::Folder(_) => 0,
        }
    }
}

fn special(state: State) -> (State, Option<Unkept>) {
    let unkept = (state == State::Other).then_some(Unkept::Special);
    (state, unkept)
}

pub(super) fn file_state(digest: Digest, size: Option<u64>, mode: Option<Permissions>) -> State {
    State::File { digest, size, mode }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        file: 10,
        bytes: 25,
        files: 4,
    };

    struct Scene {
        folder: tempfile::TempDir,
        blobs: Blobs,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("d")).unwrap();
            let blobs = Blobs::new(&folder.path().join("data"), 1000);
            Self { folder, blobs }
        }

        fn path(&self, name: &str) -> String {
            let real = self.folder.path().canonicalize().unwrap().join(name);
            real.to_str().unwrap().to_owned()
        }

        fn put(&self, name: &str, content: &str) {
            std::fs::write(self.path(name), content).unwrap();
        }

        fn before(
            &self,
            action: ActionName,
            facts: &[PathFact],
        ) -> Vec<(String, State, Option<Unkept>)> {
            let facts = Facts {
                paths: facts.to_vec(),
                ..Facts::default()
            };
            let top = self.path("");
            let short = |path: String| path.replace(&top, "");
            let earlier = before(&self.blobs, LIMITS, action, &facts).into_iter();
            earlier
                .map(|earlier| match earlier {
                    Earlier::Missing(path) => (short(path), State::Absent, None),
                    Earlier::Entry(was) | Earlier::Move { to: was, .. } => {
                        (short(was.path), without_mode(was.state), was.unkept)
                    }
                })
                .collect()
        }

        fn fact(
            &self,
            name: &str,
            access: Access,
            kind: Option<EntryKind>,
            content: Option<&str>,
        ) -> PathFact {
            PathFact {
                path: self.path(name),
                access,
                kind,
                digest: content.map(|content| Digest::of(content.as_bytes())),
            }
        }

        fn delete(&self) -> Vec<(String, State, Option<Unkept>)> {
            let fact = self.fact("d", Access::Delete, Some(EntryKind::Directory), None);
            self.before(ActionName::FsDelete, &[fact])
        }
    }

    fn without_mode(state: State) -> State {
        match state {
            State::File { digest, .. } => file_state(digest, None, None),
            State::Directory { .. } => State::Directory { mode: None },
            other => other,
        }
    }

    fn file(content: &str) -> State {
        file_state(Digest::of(content.as_bytes()), None, None)
    }

    #[test]
    fn a_folder_is_kept_from_the_inside_out_or_not_at_all() {
        let scene = Scene::new();
        std::fs::create_dir(scene.path("d/e")).unwrap();
        scene.put("d/e/f", "f");
        std::os::unix::fs::symlink("x", scene.path("d/l")).unwrap();
        let folder = || State::Directory { mode: None };
        let target = "x".to_owned();
        assert_eq!(
            scene.delete(),
            [
                ("d/e/f".to_owned(), file("f"), None),
                ("d/e".to_owned(), folder(), None),
                ("d/l".to_owned(), State::Symlink { target }, None),
                ("d".to_owned(), folder(), None),
            ]
        );
        assert!(scene.blobs.has(&Digest::of(b"f"), Some(1)));

        let whole = |unkept| [("d".to_owned(), folder(), Some(unkept))];
        for name in ["d/1", "d/2"] {
            scene.put(name, "x");
        }
        assert_eq!(scene.delete(), whole(Unkept::TooLarge), "too many");
        std::fs::remove_file(scene.path("d/2")).unwrap();
        scene.put("d/1", &"x".repeat(30));
        assert_eq!(scene.delete(), whole(Unkept::TooLarge), "too much");
        std::fs::remove_file(scene.path("d/1")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(scene.path("d/s")).unwrap();
        assert_eq!(scene.delete(), whole(Unkept::Special));
    }

    #[test]
    fn a_large_file_is_noted_and_what_is_not_as_the_facts_say_is_not_kept() {
        let scene = Scene::new();
        scene.put("large", "more than ten bytes");
        scene.put("other", "other");
        let fact =
            |name, content| scene.fact(name, Access::Write, Some(EntryKind::File), Some(content));
        assert_eq!(
            scene.before(
                ActionName::FsPatch,
                &[
                    fact("large", "more than ten bytes"),
                    fact("other", "seen"),
                    fact("gone", "g")
                ]
            ),
            [
                (
                    "large".to_owned(),
                    file("more than ten bytes"),
                    Some(Unkept::TooLarge)
                ),
                ("other".to_owned(), file("seen"), Some(Unkept::Unreadable)),
                ("gone".to_owned(), file("g"), Some(Unkept::Unreadable)),
            ]
        );
        assert!(!scene.blobs.has(&Digest::of(b"seen"), None));
    }

    #[test]
    fn folders_that_will_be_made_are_noted_once_and_what_is_read_is_not() {
        let scene = Scene::new();
        let new = |name| scene.fact(name, Access::Write, None, None);
        let read = scene.fact("d", Access::Read, Some(EntryKind::Directory), None);
        assert_eq!(
            scene.before(ActionName::FsPatch, &[new("a/b/1"), new("a/2"), read]),
            ["a", "a/b", "a/b/1", "a/2"].map(|path| (path.to_owned(), State::Absent, None))
        );
    }
}
