//! Finds, at any depth of a workspace, what is protected and what would run by itself.
//!
//! Folders that have not changed since the last look are not read again: the kernel moves a
//! folder's change time whenever an entry comes or goes, and no user can set it back. A look at an
//! unchanged tree costs one `statx` a folder.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use protocol::protected::{Reach, protected};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags};

use super::message::Protected;

/// What a path is to the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carrier {
    /// A file in a repository's `hooks` folder.
    Hook,
    /// A repository's settings.
    GitConfig,
    /// Anything else that the table protects as a tree.
    Named,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What a command may not change: path, and whether only its place is held.
    pub(crate) protected: BTreeMap<PathBuf, bool>,
    /// What would run by itself.
    pub(crate) carriers: BTreeMap<PathBuf, Carrier>,
    /// Sockets that somebody listens on, or once did.
    pub(crate) sockets: Vec<PathBuf>,
}

impl Found {
    /// As a command's init takes it: outer paths first.
    pub(crate) fn to_protect(&self) -> Vec<Protected> {
        self.protected
            .iter()
            .map(|(path, place_only)| Protected {
                path: path.clone(),
                place_only: *place_only,
            })
            .collect()
    }
}

/// A folder as it was at the last look.
#[derive(Debug)]
struct Folder {
    changed: (i64, u32, u64),
    below: Vec<Box<OsStr>>,
    found: Found,
}

/// Looks through a workspace, again and again.
#[derive(Debug)]
pub(crate) struct Scanner {
    root: PathBuf,
    folders: HashMap<PathBuf, Folder>,
}

impl Scanner {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            folders: HashMap::new(),
        }
    }

    /// What is there now.
    pub(crate) fn look(&mut self) -> Found {
        let mut found = Found::default();
        let mut kept = HashMap::with_capacity(self.folders.len());
        let mut waiting = vec![self.root.clone()];
        while let Some(path) = waiting.pop() {
            let Some(changed) = change_time(&path) else {
                continue;
            };
            let folder = match self.folders.remove(&path) {
                Some(folder) if folder.changed == changed => folder,
                _ => self.read(&path, changed),
            };
            waiting.extend(folder.below.iter().map(|name| path.join(&**name)));
            found
                .protected
                .extend(folder.found.protected.iter().map(|(p, k)| (p.clone(), *k)));
            found
                .carriers
                .extend(folder.found.carriers.iter().map(|(p, k)| (p.clone(), *k)));
            found.sockets.extend(folder.found.sockets.iter().cloned());
            kept.insert(path, folder);
        }
        self.folders = kept;
        found
    }

    fn read(&self, path: &Path, changed: (i64, u32, u64)) -> Folder {
        let mut folder = Folder {
            changed,
            below: Vec::new(),
            found: Found::default(),
        };
        let within = Within::of(path.strip_prefix(&self.root).unwrap_or(path));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(CWD, path, flags, Mode::empty()) else {
            return folder;
        };
        let mut buffer = Vec::with_capacity(16 * 1024);
        let mut entries = RawDir::new(fd, buffer.spare_capacity_mut());
        let mut bare = 0;
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            bare += u32::from(matches!(name.to_bytes(), b"HEAD" | b"objects" | b"refs"));
            self.enter(path, within, name, entry.file_type(), &mut folder);
        }
        if bare == 3 && within == Within::Tree {
            self.bare_repository(path, &mut folder);
        }
        folder
    }

    fn enter(&self, path: &Path, within: Within, name: &CStr, kind: FileType, folder: &mut Folder) {
        let name = OsStr::from_bytes(name.to_bytes());
        let full = path.join(name);
        if kind == FileType::Socket {
            folder.found.sockets.push(full);
            return;
        }
        if kind == FileType::Directory && within.leads_on(name) {
            folder.below.push(name.into());
        }
        if within == Within::Hooks {
            if kind != FileType::Directory {
                folder.found.carriers.insert(full, Carrier::Hook);
            }
            return;
        }
        if within == Within::Tree && !may_be_protected(name) {
            return;
        }
        let relative = full.strip_prefix(&self.root).unwrap_or(&full);
        let names = || {
            relative
                .components()
                .map(|component| component.as_os_str().as_bytes())
        };
        let Some(protection) = protected(names()) else {
            return;
        };
        // What lies below a protected folder is protected with it.
        let above = names().count().saturating_sub(1);
        if protected(names().take(above)).is_some_and(|p| p.reach == Reach::Tree) {
            return;
        }
        let place_only = protection.reach == Reach::Itself && kind == FileType::Directory;
        if kind == FileType::Symlink {
            // A link cannot be bound over; what it leads to is looked at by what follows it.
            folder.found.carriers.insert(full, Carrier::Named);
            return;
        }
        if within == Within::Git || within == Within::Modules {
            if name.eq_ignore_ascii_case("config") {
                folder
                    .found
                    .carriers
                    .insert(full.clone(), Carrier::GitConfig);
            }
        } else if protection.reach == Reach::Tree {
            folder.found.carriers.insert(full.clone(), Carrier::Named);
        }
        folder.found.protected.insert(full, place_only);
    }

    /// A folder with the shape of a repository is one to git, whatever its name.
    fn bare_repository(&self, path: &Path, folder: &mut Folder) {
        let config = path.join("config");
        if config.is_file() {
            folder.found.protected.insert(config.clone(), false);
            folder.found.carriers.insert(config, Carrier::GitConfig);
        }
        let hooks = path.join("hooks");
        if hooks.is_dir() {
            for entry in std::fs::read_dir(&hooks).into_iter().flatten().flatten() {
                folder.found.carriers.insert(entry.path(), Carrier::Hook);
            }
            folder.found.protected.insert(hooks, false);
        }
    }
}

/// Where in a repository a folder lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Not in a repository's own folder.
    Tree,
    /// `.git` itself.
    Git,
    /// `.git/modules` and below.
    Modules,
    /// A `hooks` folder.
    Hooks,
}

impl Within {
    fn of(relative: &Path) -> Self {
        let mut names = relative
            .iter()
            .skip_while(|name| !name.eq_ignore_ascii_case(".git"))
            .skip(1);
        if !relative
            .iter()
            .any(|name| name.eq_ignore_ascii_case(".git"))
        {
            return Self::Tree;
        }
        match (names.next(), relative.file_name()) {
            (None, _) => Self::Git,
            (_, Some(last)) if last.eq_ignore_ascii_case("hooks") => Self::Hooks,
            _ => Self::Modules,
        }
    }

    /// Whether a folder of this name is worth entering.
    fn leads_on(self, name: &OsStr) -> bool {
        let is = |names: &[&str]| names.iter().any(|n| name.eq_ignore_ascii_case(n));
        match self {
            Self::Tree => true,
            Self::Git => is(&["hooks", "modules", "worktrees"]),
            Self::Modules => !is(&["objects", "refs", "logs", "lfs", "info", "branches"]),
            Self::Hooks => false,
        }
    }
}

/// A quick look at a name before the table is asked: most names are plain.
fn may_be_protected(name: &OsStr) -> bool {
    const PLAIN: &[&str] = &[
        "ward.toml",
        "agents.md",
        "lefthook.yml",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "jenkinsfile",
        "workflows",
        "actions",
    ];
    let bytes = name.as_bytes();
    bytes.first() == Some(&b'.')
        || PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain))
        || bytes.ends_with(b".code-workspace")
        || bytes.to_ascii_lowercase().ends_with(b".code-workspace")
}

/// When a folder's entries last changed, and which folder it is; none where it is no folder.
fn change_time(path: &Path) -> Option<(i64, u32, u64)> {
    let wanted = StatxFlags::CTIME | StatxFlags::TYPE | StatxFlags::INO;
    let stat = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let is_dir = FileType::from_raw_mode(u32::from(stat.stx_mode)).is_dir();
    is_dir.then_some((stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec, stat.stx_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in paths {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    fn protected_in(root: &Path, found: &Found) -> Vec<(String, bool)> {
        let name = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        found
            .protected
            .iter()
            .map(|(path, place)| (name(path), *place))
            .collect()
    }

    #[test]
    fn what_is_protected_is_found_at_any_depth() {
        let folder = tree(&[
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/info/exclude",
            ".git/objects/ab/cd",
            ".git/refs/heads/config",
            "a/b/.git/config",
            "a/AGENTS.md",
            ".github/workflows/ci.yml",
            "src/main.rs",
            ".vscode/tasks.json",
        ]);
        let found = Scanner::new(folder.path()).look();
        let expected = [
            (".git", true),
            (".git/config", false),
            (".git/hooks", false),
            (".git/info", false),
            (".github/workflows", false),
            (".vscode", false),
            ("a/AGENTS.md", false),
            ("a/b/.git", true),
            ("a/b/.git/config", false),
        ];
        assert_eq!(
            protected_in(folder.path(), &found),
            expected.map(|(path, place)| (path.to_owned(), place))
        );
        assert_eq!(
            found
                .carriers
                .get(&folder.path().join(".git/hooks/pre-commit")),
            Some(&Carrier::Hook)
        );
    }

    #[test]
    fn what_comes_and_goes_is_seen_at_the_next_look() {
        let folder = tree(&["src/main.rs"]);
        let mut scanner = Scanner::new(folder.path());
        assert_eq!(scanner.look(), Found::default());
        let deep = folder.path().join("src/x/.git/hooks");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("post-checkout"), "").unwrap();
        let found = scanner.look();
        assert!(found.carriers.contains_key(&deep.join("post-checkout")));
        std::fs::remove_dir_all(folder.path().join("src/x")).unwrap();
        assert_eq!(scanner.look(), Found::default());
    }

    #[test]
    fn a_folder_with_the_shape_of_a_repository_is_one() {
        let folder = tree(&[
            "x/HEAD",
            "x/objects/a",
            "x/refs/a",
            "x/config",
            "x/hooks/update",
        ]);
        let found = Scanner::new(folder.path()).look();
        let expected = [("x/config", false), ("x/hooks", false)];
        let expected = expected.map(|(path, place)| (path.to_owned(), place));
        assert_eq!(protected_in(folder.path(), &found), expected);
        assert_eq!(found.carriers.len(), 2);
    }
}
