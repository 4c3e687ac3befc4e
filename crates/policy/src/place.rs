//! Where an action happens: the folders that relative patterns and paths are measured from.

/// The folders that give relative patterns their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The workspace's real path.
    pub workspace: &'a str,
    /// The person's home folder, for patterns that begin with `~/`; without it such a pattern
    /// may or may not fit.
    pub home: Option<&'a str>,
}

/// The names of an absolute path, with `.` and `..` worked out as text. Symbolic links are the
/// runtime's business: paths in facts come resolved.
pub(crate) fn names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

/// A path as written in a command, made absolute from the folder the command runs in.
pub(crate) fn absolute(cwd: &str, path: &str) -> String {
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    format!("/{}", names(&joined).join("/"))
}

impl Place<'_> {
    /// The names below the workspace, where the path is in it.
    pub(crate) fn inside<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        below(self.workspace, path)
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
            absolute("/work/src", "../../../../etc/./passwd"),
            "/etc/passwd"
        );
        assert_eq!(absolute("/work", "a//b/."), "/work/a/b");
        assert_eq!(absolute("/work", "/"), "/");
    }

    #[test]
    fn a_folder_that_merely_begins_alike_is_elsewhere() {
        assert_eq!(below("/work", "/workshop/a"), None);
        assert_eq!(below("/work", "/work/../etc"), None);
        assert_eq!(below("/work", "/work/a/b"), Some(vec!["a", "b"]));
        assert_eq!(below("/work", "/work"), Some(vec![]));
    }
}
