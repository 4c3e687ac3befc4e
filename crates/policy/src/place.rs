//! Where an action happens: the folders that relative patterns and paths are measured from.

use std::path::{Component, Path, PathBuf};

/// The folders that give relative patterns their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The workspace's real path.
    pub workspace: &'a str,
    /// The person's home folder, for patterns that begin with `~/`; without it such a pattern
    /// may or may not fit.
    pub home: Option<&'a str>,
    /// Ward's own folders, by their real paths: rules, roles, tokens, the store.
    pub own: &'a [&'a str],
}

/// The names of an absolute path, with `.` and `..` worked out as text. Symbolic links are the
/// runtime's business: paths in facts come resolved.
pub(crate) fn names(path: &str) -> Vec<&str> {
    let mut names = Vec::with_capacity(8);
    let mut rest = Some(path);
    while let Some(path) = rest {
        // Names are short: to look at each byte is quicker than what `split` does.
        let end = path.bytes().position(|byte| byte == b'/');
        let name = match end {
            Some(end) => path.get(..end).unwrap_or_default(),
            None => path,
        };
        rest = end.and_then(|end| path.get(end + 1..));
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names
}

/// A path without `.` and `..`, worked out as text, whatever links there are.
#[must_use]
pub fn by_words(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// A path as written in a command, from the root: from the folder the command runs in.
#[must_use]
pub fn from_root(cwd: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    }
}

/// The same, with `.` and `..` worked out as text.
pub(crate) fn absolute(cwd: &str, path: &str) -> String {
    format!("/{}", names(&from_root(cwd, path)).join("/"))
}

/// Whether the way to this goes through what a process has open or where it is: where that leads
/// depends on who goes there.
pub(crate) fn is_through_process(path: &str) -> bool {
    let mut so_far = Vec::with_capacity(8);
    path.split('/').any(|name| {
        match name {
            "" | "." => {}
            ".." => drop(so_far.pop()),
            name => so_far.push(name),
        }
        matches!(
            so_far.as_slice(),
            [
                "proc",
                _,
                "cwd" | "exe" | "fd" | "map_files" | "root" | "task",
                ..
            ] | ["dev", "fd" | "stderr" | "stdin" | "stdout", ..]
        )
    })
}

/// Whether a path has been followed to its end: one with `..` in it has not, since what that leaves
/// may be a link.
pub(crate) fn is_resolved(path: &str) -> bool {
    !path.split('/').any(|name| name == "..")
}

/// A path and where it lies, worked out once for all patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    text: String,
    names: Vec<String>,
    workspace: Lies,
    home: Lies,
    /// Ward's own folder that it is in, or else one that is in it.
    own: Option<(Lies, String)>,
}

/// How a path lies to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    /// In it: its names below begin here.
    Inside(usize),
    /// Above it.
    Above,
    /// Neither.
    Elsewhere,
    /// Nobody said where the folder is.
    Unknown,
}

/// What a path pattern is measured from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Workspace,
    Root,
    Home,
}

/// How a path lies to the folder that a pattern is measured from.
pub(crate) enum Below<'s> {
    Names(&'s [String]),
    Above,
    Elsewhere,
    Unknown,
}

impl Spot {
    /// A real, absolute path.
    #[must_use]
    pub fn new(path: &str, place: &Place<'_>) -> Self {
        let own = names(path);
        let lies = |folder: &str| {
            let folder = names(folder);
            if own.starts_with(&folder) {
                Lies::Inside(folder.len())
            } else if folder.starts_with(&own) {
                Lies::Above
            } else {
                Lies::Elsewhere
            }
        };
        Self {
            text: path.to_owned(),
            workspace: lies(place.workspace),
            home: place.home.map_or(Lies::Unknown, lies),
            own: {
                let near = place.own.iter().map(|folder| (lies(folder), folder));
                let near = near.filter(|(lies, _)| *lies != Lies::Elsewhere);
                let nearest = near.max_by_key(|(lies, _)| matches!(lies, Lies::Inside(_)));
                nearest.map(|(lies, folder)| (lies, (*folder).to_owned()))
            },
            names: own.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Its names below the workspace, where it is in it.
    pub(crate) fn in_workspace(&self) -> Option<&[String]> {
        match self.below(Base::Workspace) {
            Below::Names(names) => Some(names),
            Below::Above | Below::Elsewhere | Below::Unknown => None,
        }
    }

    /// The folder it is in.
    pub(crate) fn parent(&self, place: &Place<'_>) -> Option<Self> {
        let (_, names) = self.names.split_last()?;
        Some(Self::new(&format!("/{}", names.join("/")), place))
    }

    /// All of its names, from the root.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the workspace or the home folder is in it, or it is the home folder itself.
    pub(crate) fn is_above(&self) -> bool {
        let holds = |lies| match lies {
            Lies::Above => true,
            Lies::Inside(from) => from == self.names.len(),
            Lies::Elsewhere | Lies::Unknown => false,
        };
        holds(self.workspace) || holds(self.home)
    }

    /// The folder of Ward's own that it is in.
    pub(crate) fn wards_own(&self) -> Option<&str> {
        match &self.own {
            Some((Lies::Inside(_), folder)) => Some(folder),
            Some((Lies::Above | Lies::Elsewhere | Lies::Unknown, _)) | None => None,
        }
    }

    /// A folder of Ward's own that is in it.
    pub(crate) fn holds_wards_own(&self) -> Option<&str> {
        match &self.own {
            Some((Lies::Above, folder)) => Some(folder),
            Some((Lies::Inside(_) | Lies::Elsewhere | Lies::Unknown, _)) | None => None,
        }
    }

    pub(crate) fn below(&self, base: Base) -> Below<'_> {
        let lies = match base {
            Base::Workspace => self.workspace,
            Base::Root => Lies::Inside(0),
            Base::Home => self.home,
        };
        match lies {
            Lies::Inside(from) => Below::Names(&self.names[from..]),
            Lies::Above => Below::Above,
            Lies::Elsewhere => Below::Elsewhere,
            Lies::Unknown => Below::Unknown,
        }
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// The names of `path` below `folder`; none where it is elsewhere.
pub(crate) fn below<'p>(folder: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let folder = names(folder);
    let mut path = names(path);
    if !path.starts_with(&folder) {
        return None;
    }
    Some(path.split_off(folder.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_worked_out_and_cannot_climb_above_the_root() {
        assert_eq!(
            absolute("/project/src", "../../../../etc/./passwd"),
            "/etc/passwd"
        );
        assert_eq!(absolute("/project", "a//b/."), "/project/a/b");
        assert_eq!(absolute("/project", "/"), "/");
    }

    #[test]
    fn what_a_process_has_open_is_known_wherever_the_way_goes_on() {
        for path in [
            "/proc/self/cwd/.git/config",
            "/proc/self/root/../etc",
            "/proc/12/fd/3",
            "//proc/./self/../1/task/1/cwd",
            "/tmp/../proc/thread-self/root",
            "/dev/fd/../x",
            "/dev/stdin",
        ] {
            assert!(is_through_process(path), "{path}");
        }
        for path in [
            "/proc/self/status",
            "/proc/mounts",
            "/dev/null",
            "/a/proc/self/cwd",
        ] {
            assert!(!is_through_process(path), "{path}");
        }
    }

    #[test]
    fn a_folder_that_merely_begins_alike_is_elsewhere() {
        assert_eq!(below("/project", "/workshop/a"), None);
        assert_eq!(below("/project", "/project/../etc"), None);
        assert_eq!(below("/project", "/project/a/b"), Some(vec!["a", "b"]));
        assert_eq!(below("/project", "/project"), Some(vec![]));
    }
}
