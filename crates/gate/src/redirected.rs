//! Where the files really are that a command's shell opens: a redirection names a path as text, and
//! a symbolic link may lead it elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use policy::command::{Line, Way};
use protocol::Facts;
use protocol::facts::{Access, PathFact};

/// The most links that the kernel follows on the way to a file.
const MOST_LINKS: usize = 40;

/// What a command touches besides what is written, because links lead there; [`None`] where they
/// do not.
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
            let written = redirection.path?;
            let real = leads_to(Path::new(&written), MOST_LINKS)?;
            let path = real.to_string_lossy().into_owned();
            let access = match redirection.way {
                Way::Read => Access::Read,
                Way::Write => Access::Write,
            };
            (path != written).then_some(PathFact {
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
    let real = |folder: &PathBuf| leads_to(folder, MOST_LINKS).unwrap_or_else(|| folder.clone());
    let real = folders.iter().map(real);
    real.map(|folder| folder.to_string_lossy().into_owned())
        .collect()
}

/// The file that is opened by this name, or made; none for what is no place on a disk.
fn leads_to(path: &Path, links: usize) -> Option<PathBuf> {
    if links == 0 || path.starts_with("/dev") || path.starts_with("/proc") {
        return None;
    }
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let (folder, name) = (path.parent()?, path.file_name()?);
    match path.read_link() {
        // A link to nothing: writing through it makes what it names.
        Ok(target) => leads_to(&folder.join(target), links - 1),
        Err(_) => Some(leads_to(folder, links - 1)?.join(name)),
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
}
