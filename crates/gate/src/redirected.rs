//! Where the files really are that a command's shell opens: a redirection names a path as text, and
//! a symbolic link may lead it elsewhere.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use policy::command::{Line, Way};
use policy::place::from_root;
use protocol::Facts;
use protocol::facts::{Access, PathFact};

/// The most links that the kernel follows on the way to a file.
const MOST_LINKS: usize = 40;

/// What a command touches besides what is written, because links lead there; [`None`] where they
/// do not. From where on that cannot be known, the path is as written: with `..` in it, or through
/// what a process has open. The policy takes neither for a place.
#[must_use]
pub fn redirected(facts: &Facts, workspace: &str) -> Option<Facts> {
    let command = facts.command.as_ref()?;
    // What opens no file has neither of these in it.
    if !command.argv.iter().any(|word| word.contains(['<', '>'])) {
        return None;
    }
    let line = Line::of(command, workspace);
    let elsewhere: Vec<PathFact> = line
        .redirections
        .into_iter()
        .filter_map(|redirection| {
            let seen = redirection.path?;
            let written = from_root(&command.cwd, &redirection.shown);
            let real = leads_to(Path::new(&written))?;
            let path = real.to_string_lossy().into_owned();
            let access = match redirection.way {
                Way::Read => Access::Read,
                Way::Write => Access::Write,
            };
            (path != seen).then_some(PathFact {
                path,
                access,
                kind: None,
                digest: None,
            })
        })
        .collect();
    if elsewhere.is_empty() {
        return None;
    }
    let mut facts = facts.clone();
    facts.paths.extend(elsewhere);
    Some(facts)
}

/// Where these folders really are, as the policy is told of them, also where they are not there yet.
#[must_use]
pub fn real_folders(folders: &[PathBuf]) -> Arc<[String]> {
    let real = |folder: &PathBuf| leads_to(folder).unwrap_or_else(|| folder.clone());
    let real = folders.iter().map(real);
    real.map(|folder| folder.to_string_lossy().into_owned())
        .collect()
}

/// The file that is opened by this name, or made, as the kernel finds it: name by name, each link
/// where it stands. What each process finds elsewhere is not followed, nor is `..` of what is no
/// folder. None where too many links stand in the way to be opened at all.
fn leads_to(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut links = 0;
    let mut left: Vec<OsString> = names(path);
    while let Some(name) = left.pop() {
        if name == ".." {
            if is_each_ones_own(&real) || !real.is_dir() {
                real.push(name);
                real.extend(left.iter().rev());
                return Some(real);
            }
            real.pop();
            continue;
        }
        real.push(name);
        if is_each_ones_own(&real) {
            continue;
        }
        if let Ok(target) = real.read_link() {
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            match target.is_absolute() {
                true => real = PathBuf::from("/"),
                false => drop(real.pop()),
            }
            left.extend(names(&target));
        }
    }
    Some(match is_each_ones_own(&real) {
        true => real,
        false => as_kept(&real),
    })
}

/// Whether another process may find something else there.
fn is_each_ones_own(path: &Path) -> bool {
    let places = [
        "/proc",
        "/dev/fd",
        "/dev/stderr",
        "/dev/stdin",
        "/dev/stdout",
    ];
    places.iter().any(|place| path.starts_with(place))
}

/// Its names, the first last.
fn names(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(named).collect()
}

/// Its names as the disk keeps them, where it takes others for the same: `.GIT` may be `.git`.
fn as_kept(path: &Path) -> PathBuf {
    if let Ok(kept) = path.canonicalize() {
        return kept;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => as_kept(folder).join(name),
        (Some(_) | None, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use protocol::facts::CommandFact;

    use super::*;

    fn paths(line: &str, cwd: &Path) -> Vec<(String, Access)> {
        let cwd = cwd.to_string_lossy().into_owned();
        let facts = Facts {
            command: Some(CommandFact {
                line: Some(line.to_owned()),
                argv: ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
                program: None,
                cwd: cwd.clone(),
                env: [].into(),
            }),
            ..Facts::default()
        };
        let facts = redirected(&facts, &cwd).unwrap_or_default();
        let paths = facts.paths.into_iter();
        paths.map(|fact| (fact.path, fact.access)).collect()
    }

    #[test]
    fn a_redirection_is_followed_through_links_also_to_what_is_not_there_yet() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().canonicalize().unwrap();
        let (work, out) = (root.join("work"), root.join("out"));
        for folder in [&work, &out] {
            fs::create_dir(folder).unwrap();
        }
        symlink(&out, work.join("folder")).unwrap();
        symlink("../out/new", work.join("dangling")).unwrap();
        symlink("loop", work.join("loop")).unwrap();
        let at = |name: &str| out.join(name).to_string_lossy().into_owned();
        assert_eq!(
            paths("a > folder/x && sh -c 'b < folder/y/z'", &work),
            [(at("x"), Access::Write), (at("y/z"), Access::Read)]
        );
        assert_eq!(paths("a >> dangling", &work), [(at("new"), Access::Write)]);
        for plain in ["a > x", "a > new/x", "a > /dev/stdout", "a > loop", "a"] {
            assert_eq!(paths(plain, &work), [], "{plain}");
        }
    }

    #[test]
    fn what_stands_above_a_link_is_above_what_it_leads_to() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().canonicalize().unwrap();
        let work = root.join("work");
        for folder in ["sub", ".git/refs", "deep/er"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        symlink(".git/refs", work.join("link")).unwrap();
        symlink("../link", work.join("sub/twice")).unwrap();
        symlink("deep/er/../../.git/config", work.join("file")).unwrap();
        let at = |name: &str| root.join(name).to_string_lossy().into_owned();
        for line in [
            "a > link/../config",
            "a > sub/../link/../config",
            "a > sub/twice/../config",
            "a > ../work/link/./../config",
            "a > file",
        ] {
            let config = [(at("work/.git/config"), Access::Write)];
            assert_eq!(paths(line, &work), config, "{line}");
        }
        for plain in [
            "a > ../x",
            "a > sub/../x",
            "a > deep/er/../../x",
            "a > sub/..",
        ] {
            assert_eq!(paths(plain, &work), [], "{plain}");
        }
        let inside = [(at("work/.git/x"), Access::Write)];
        assert_eq!(paths("a > ../x", &work.join("link")), inside);
        // Nobody knows what `new` will be.
        let new = [(at("work/new/../x"), Access::Write)];
        assert_eq!(paths("a > new/../x", &work), new);
    }

    #[test]
    fn what_a_process_has_open_is_not_followed() {
        let above = tempfile::tempdir().unwrap();
        let work = above.path().canonicalize().unwrap();
        for (name, target) in [
            ("cwd", "/proc/self/cwd"),
            ("up", "/proc/self/cwd/../x"),
            ("three", "/dev/fd/3"),
            ("out", "/dev/stdout"),
        ] {
            symlink(target, work.join(name)).unwrap();
        }
        for (line, path) in [
            ("a > cwd/.git/config", "/proc/self/cwd/.git/config"),
            ("a > cwd/../x", "/proc/self/cwd/../x"),
            ("a > up", "/proc/self/cwd/../x"),
            ("a > three", "/dev/fd/3"),
            ("a > out", "/dev/stdout"),
        ] {
            let told = [(path.to_owned(), Access::Write)];
            assert_eq!(paths(line, &work), told, "{line}");
        }
    }
}
