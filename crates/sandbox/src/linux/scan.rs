//! Finds, at any depth of a workspace, what is protected and what would run by itself.
//!
//! Folders that have not changed since the last look are not read again: the kernel moves a
//! folder's change time whenever an entry comes or goes, and no user can set it back. A look at an
//! unchanged tree costs one `statx` a folder, and one for each thing that would run by itself.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use protocol::protected::{Reach, protected};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags};

use super::message::Protected;

/// What a path is to the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// A file in a repository's `hooks` folder.
    Hook,
    /// A repository's settings, the whole repository's or a worktree's.
    GitConfig,
    /// Says where the other half of a repository is.
    CommonFolder,
    /// `.git` as a file: says where the repository is.
    GitLink,
    /// A link in the place of something of a repository's own.
    LinkedPart,
    /// Anything else that the table protects as a tree.
    Named,
}

/// Which file it is and when it was last changed, in a way that no user can set back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: u64,
    changed: (i64, u32),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What a command may not change: path, and whether only its place is held.
    pub(crate) protected: BTreeMap<PathBuf, bool>,
    /// What would run by itself.
    pub(crate) carriers: BTreeMap<PathBuf, (Carrier, Identity)>,
    /// Protected names that are links, which no mount can hold: where they lead.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
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

    fn add(&mut self, other: &Self) {
        self.protected.extend(
            other
                .protected
                .iter()
                .map(|(path, place)| (path.clone(), *place)),
        );
        self.links.extend(
            other
                .links
                .iter()
                .map(|(path, target)| (path.clone(), target.clone())),
        );
        self.sockets.extend(other.sockets.iter().cloned());
        self.add_carriers(
            other
                .carriers
                .iter()
                .map(|(path, (carrier, _))| (path, *carrier)),
        );
    }

    /// Notes carriers as they are now: a change of a file does not show in its folder.
    fn add_carriers<'a>(&mut self, carriers: impl Iterator<Item = (&'a PathBuf, Carrier)>) {
        for (path, carrier) in carriers {
            if let Some((identity, _)) = identity(path) {
                self.carriers.insert(path.clone(), (carrier, identity));
            }
        }
    }
}

/// A folder as it was at the last look.
#[derive(Debug)]
struct Folder {
    identity: Identity,
    below: Vec<Box<OsStr>>,
    found: Found,
    /// Whether git would take it for a repository.
    repository: bool,
    /// Files that are hooks where the folder above is a repository.
    hooks: Vec<PathBuf>,
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
        let mut kept: HashMap<PathBuf, Folder> = HashMap::with_capacity(self.folders.len());
        let mut waiting = vec![self.root.clone()];
        while let Some(path) = waiting.pop() {
            let Some((identity, FileType::Directory)) = identity(&path) else {
                continue;
            };
            let folder = match self.folders.remove(&path) {
                Some(folder) if folder.identity == identity => folder,
                _ => self.read(&path, identity),
            };
            waiting.extend(folder.below.iter().map(|name| path.join(&**name)));
            found.add(&folder.found);
            kept.insert(path, folder);
        }
        // Which folder is a repository is known only now.
        for (path, folder) in &kept {
            let above = path.parent().and_then(|above| kept.get(above));
            if above.is_some_and(|above| above.repository) {
                found.add_carriers(folder.hooks.iter().map(|hook| (hook, Carrier::Hook)));
            }
        }
        self.folders = kept;
        found
    }

    fn read(&self, path: &Path, identity: Identity) -> Folder {
        let mut entries = Entries::default();
        let mut folder = Folder {
            identity,
            below: Vec::new(),
            found: Found::default(),
            repository: false,
            hooks: Vec::new(),
        };
        let in_hooks = path
            .file_name()
            .is_some_and(|name| name.eq_ignore_ascii_case("hooks"));
        for (name, kind) in listed(path) {
            entries.note(&name);
            match kind {
                FileType::Socket => folder.found.sockets.push(path.join(&*name)),
                FileType::Directory => folder.below.push(name.clone()),
                // Git's examples are never run, and every new repository has a dozen.
                _ if in_hooks && !name.as_bytes().ends_with(b".sample") => {
                    folder.hooks.push(path.join(&*name));
                }
                _ => {}
            }
            self.protect(&path.join(&*name), kind, &mut folder.found);
        }
        folder.repository = entries.is_repository(path);
        if folder.repository {
            repository(path, &mut folder.found);
        }
        folder
    }

    /// Notes a path that the table protects.
    fn protect(&self, path: &Path, kind: FileType, found: &mut Found) {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        let names = || {
            relative
                .components()
                .map(|component| component.as_os_str().as_bytes())
        };
        if !may_be_protected(relative) {
            return;
        }
        let Some(protection) = protected(names()) else {
            return;
        };
        // What lies below a protected folder is protected with it.
        let above = names().count().saturating_sub(1);
        if protected(names().take(above)).is_some_and(|p| p.reach == Reach::Tree) {
            return;
        }
        let git = relative
            .iter()
            .any(|name| name.eq_ignore_ascii_case(".git"));
        if kind == FileType::Symlink {
            if let Ok(target) = std::fs::read_link(path) {
                found.links.insert(path.to_owned(), target);
            }
        } else {
            let place_only = protection.reach == Reach::Itself && kind == FileType::Directory;
            found.protected.insert(path.to_owned(), place_only);
        }
        let carrier = match (git, protection.reach, kind) {
            (true, Reach::Itself, FileType::Directory) => return,
            (true, Reach::Itself, _) => Carrier::GitLink,
            // A repository's own parts are looked at as such.
            (true, Reach::Tree, _) => return,
            (false, _, _) => Carrier::Named,
        };
        found
            .carriers
            .insert(path.to_owned(), (carrier, Identity::default()));
    }
}

/// What in a folder shows that git would take it for a repository.
#[derive(Debug, Default)]
struct Entries {
    head: bool,
    objects: bool,
    refs: bool,
    common: bool,
}

impl Entries {
    fn note(&mut self, name: &OsStr) {
        match name.as_bytes() {
            b"HEAD" => self.head = true,
            b"objects" => self.objects = true,
            b"refs" => self.refs = true,
            b"commondir" => self.common = true,
            _ => {}
        }
    }

    fn is_repository(&self, path: &Path) -> bool {
        let named = path
            .file_name()
            .is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        named || self.head && (self.common || self.objects && self.refs)
    }
}

/// Notes what of a repository makes git run programs, whatever the repository's name.
fn repository(path: &Path, found: &mut Found) {
    for name in ["config", "config.worktree", "commondir", "hooks"] {
        let part = path.join(name);
        let Some((_, kind)) = identity(&part) else {
            continue;
        };
        let carrier = match (name, kind) {
            (_, FileType::Symlink) => Carrier::LinkedPart,
            ("hooks", _) => {
                found.protected.insert(part, false);
                continue;
            }
            ("commondir", _) => Carrier::CommonFolder,
            _ => Carrier::GitConfig,
        };
        if kind != FileType::Symlink {
            found.protected.insert(part.clone(), false);
        }
        found.carriers.insert(part, (carrier, Identity::default()));
    }
}

/// A quick look at the names before the table is asked: most are plain.
fn may_be_protected(relative: &Path) -> bool {
    const PLAIN: &[&str] = &[
        "ward.toml",
        "agents.md",
        "lefthook.yml",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "jenkinsfile",
    ];
    let Some(name) = relative.file_name() else {
        return false;
    };
    let hidden = |name: &OsStr| name.as_bytes().first() == Some(&b'.');
    relative.iter().any(hidden)
        || PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain))
        || name
            .as_bytes()
            .to_ascii_lowercase()
            .ends_with(b".code-workspace")
}

/// The entries of a folder. One that its owner may not list is made listable first: git does not
/// need to list a folder to run a hook in it.
fn listed(path: &Path) -> Vec<(Box<OsStr>, FileType)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(CWD, path, flags, Mode::empty());
    let opened = open().or_else(|error| {
        if error == rustix::io::Errno::ACCESS {
            make_listable(path)?;
        }
        open()
    });
    let Ok(fd) = opened else { return Vec::new() };
    let mut buffer = Vec::with_capacity(16 * 1024);
    let mut entries = RawDir::new(fd, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(Ok(entry)) = entries.next() {
        let name: &CStr = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            let name: Box<OsStr> = OsStr::from_bytes(name.to_bytes()).into();
            // Some filesystems do not say in a folder what its entries are.
            let kind = match entry.file_type() {
                FileType::Unknown => identity(&path.join(&*name)).map(|(_, kind)| kind),
                kind => Some(kind),
            };
            found.extend(kind.map(|kind| (name, kind)));
        }
    }
    found
}

fn make_listable(path: &Path) -> rustix::io::Result<()> {
    // Through a descriptor, so that a link in its place is not followed.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode & 0o777);
    let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    rustix::fs::chmod(itself, mode | Mode::RUSR | Mode::XUSR)
}

/// Which file is at a path, and what kind; a link is told as one.
fn identity(path: &Path) -> Option<(Identity, FileType)> {
    let wanted = StatxFlags::CTIME | StatxFlags::TYPE | StatxFlags::INO;
    let stat = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let changed = (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec);
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    Some((
        Identity {
            inode: stat.stx_ino,
            changed,
        },
        kind,
    ))
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

    fn carriers_in(root: &Path, found: &Found) -> Vec<(String, Carrier)> {
        let name = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        found
            .carriers
            .iter()
            .map(|(path, (carrier, _))| (name(path), *carrier))
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
        let expected = [
            (".git/config", Carrier::GitConfig),
            (".git/hooks/pre-commit", Carrier::Hook),
            (".github/workflows", Carrier::Named),
            (".vscode", Carrier::Named),
            ("a/AGENTS.md", Carrier::Named),
            ("a/b/.git/config", Carrier::GitConfig),
        ];
        let expected = expected.map(|(path, carrier)| (path.to_owned(), carrier));
        assert_eq!(carriers_in(folder.path(), &found), expected);
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
    fn a_file_that_was_changed_or_replaced_is_another_one() {
        let folder = tree(&[".git/config"]);
        let mut scanner = Scanner::new(folder.path());
        let before = scanner.look();
        assert_eq!(before, scanner.look());
        let config = folder.path().join(".git/config");
        std::fs::write(folder.path().join("new"), "x").unwrap();
        std::fs::rename(folder.path().join("new"), &config).unwrap();
        assert_ne!(
            before.carriers.get(&config),
            scanner.look().carriers.get(&config)
        );
    }

    #[test]
    fn a_folder_with_the_shape_of_a_repository_is_one_wherever_it_lies() {
        let folder = tree(&[
            "x/HEAD",
            "x/objects/a",
            "x/refs/a",
            "x/config",
            "x/hooks/update",
            ".git/objects/half/HEAD",
            ".git/objects/half/commondir",
        ]);
        let found = Scanner::new(folder.path()).look();
        let expected = [
            (".git/objects/half/commondir", Carrier::CommonFolder),
            ("x/config", Carrier::GitConfig),
            ("x/hooks/update", Carrier::Hook),
        ];
        let expected = expected.map(|(path, carrier)| (path.to_owned(), carrier));
        assert_eq!(carriers_in(folder.path(), &found), expected);
    }
}
