//! Which files there are, and their text, before anything is made of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use policy::{Mistake, Weight};
use protocol::Digest;
use sha2::{Digest as _, Sha256};

use super::folder::{Folder, Refusal};
use super::stamp::Seen;
use super::trust::Trusted;

/// The most files that one side may have.
const MOST_FILES: usize = 256;
/// What they may hold together, in bytes; the last one may go beyond.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A file that was read.
#[derive(Debug)]
pub(super) struct Text {
    /// From its folder down.
    name: PathBuf,
    /// As people are told it.
    pub(super) shown: String,
    /// What it is called where it does not say.
    pub(super) stem: String,
    pub(super) text: String,
}

/// What one side holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<Text>,
    pub(super) roles: Vec<Text>,
    pub(super) rules: Vec<Text>,
    /// What is not used, and why.
    pub(super) mistakes: Vec<Mistake>,
    /// The same, of rules.
    pub(super) refused: Vec<Mistake>,
    pub(super) seen: Seen,
    bytes: usize,
}

/// The person's own.
pub(super) fn own(folder: &Folder) -> Found {
    let mut found = Found::default();
    found.rules_in(folder, "rules.toml");
    found.skills_in(folder, "skills");
    found.roles_in(folder, "roles");
    found
}

/// A workspace's.
pub(super) fn workspace(folder: &Folder) -> Found {
    let mut found = Found::default();
    found.rules_in(folder, "ward.toml");
    if found.seen.add(folder, Path::new(".ward")) {
        found.skills_in(folder, ".ward/skills");
        found.roles_in(folder, ".ward/roles");
    }
    if found.seen.add(folder, Path::new(".claude")) {
        found.skills_in(folder, ".claude/skills");
        found.roles_in(folder, ".claude/agents");
    }
    found
}

impl Found {
    fn skills_in(&mut self, folder: &Folder, name: &str) {
        for (name, stem) in self.names(folder, name) {
            self.seen.add(folder, &name);
            let file = name.join("SKILL.md");
            match self.text(folder, file, stem) {
                Ok(text) => self.skills.extend(text),
                Err(mistake) => self.mistakes.push(mistake),
            }
        }
    }

    fn roles_in(&mut self, folder: &Folder, name: &str) {
        for (name, _) in self.names(folder, name) {
            if name.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let stem = name.file_stem().map(OsStr::to_string_lossy);
            let stem = stem.unwrap_or_default().into_owned();
            match self.text(folder, name, stem) {
                Ok(text) => self.roles.extend(text),
                Err(mistake) => self.mistakes.push(mistake),
            }
        }
    }

    fn rules_in(&mut self, folder: &Folder, name: &str) {
        match self.text(folder, name.into(), name.to_owned()) {
            Ok(text) => self.rules.extend(text),
            Err(mistake) => self.refused.push(mistake),
        }
    }

    fn text(
        &mut self,
        folder: &Folder,
        name: PathBuf,
        stem: String,
    ) -> Result<Option<Text>, Mistake> {
        // First, so that what changes while it is read is noticed.
        self.seen.add(folder, &name);
        let shown = folder.path(&name).to_string_lossy().into_owned();
        match folder.text(&name) {
            Ok(Some(_)) if self.files().count() == MOST_FILES || self.bytes > MOST_BYTES => {
                Err(mistake(shown, &Refusal::Together))
            }
            Ok(Some(text)) => {
                self.bytes += text.len();
                Ok(Some(Text {
                    name,
                    shown,
                    stem,
                    text,
                }))
            }
            Ok(None) => Ok(None),
            Err(refusal) => Err(mistake(shown, &refusal)),
        }
    }

    /// What is in a folder: each path, and its last name.
    fn names(&mut self, folder: &Folder, name: &str) -> Vec<(PathBuf, String)> {
        let name = Path::new(name);
        self.seen.add(folder, name);
        let shown = |path: &Path| folder.path(path).to_string_lossy().into_owned();
        let names = match folder.names(name) {
            Ok(names) => names,
            Err(refusal) => {
                self.mistakes.push(mistake(shown(name), &refusal));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for own in names {
            let path = name.join(&own);
            match own.into_string() {
                Ok(own) => found.push((path, own)),
                Err(_) => self.mistakes.push(mistake(shown(&path), &Refusal::Text)),
            }
        }
        found
    }

    fn files(&self) -> impl Iterator<Item = &Text> {
        self.skills.iter().chain(&self.roles).chain(&self.rules)
    }

    /// Over every name and every byte, and what was not used.
    pub(super) fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        for file in self.files() {
            add(file.name.as_os_str().as_encoded_bytes());
            add(file.text.as_bytes());
        }
        for mistake in self.mistakes.iter().chain(&self.refused) {
            add(b"mistake");
            add(mistake.to_string().as_bytes());
        }
        Digest::from_hash(&hash.finalize().into())
    }

    /// What a person could trust; [`None`] where nothing is there.
    pub(super) fn trusted(&self) -> Option<Trusted> {
        let files = self.files().map(|file| {
            let name = file.name.to_string_lossy().into_owned();
            (name, Digest::of(file.text.as_bytes()))
        });
        let trusted = Trusted {
            digest: self.digest(),
            files: files.collect(),
            allows: Vec::new(),
        };
        (!trusted.files.is_empty()).then_some(trusted)
    }
}

fn mistake(file: String, refusal: &Refusal) -> Mistake {
    Mistake {
        file,
        line: 1,
        weight: Weight::Error,
        what: refusal.to_string(),
        hint: refusal.hint().to_owned(),
    }
}
