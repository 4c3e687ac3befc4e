//! What is protected in a folder that an editor is to move or delete. Who does that moves or deletes
//! what is in it, and what is moved may be protected by where it comes to.

use std::path::{Path, PathBuf};

use protocol::facts::{EntryKind, PathFact};
use protocol::protected::{Reach, protected};
use protocol::{ActionName, ErrorKind, Facts, Failure};

/// How many are named. Beyond that nobody could decide about them.
const MOST: usize = 256;

/// Adds what is protected in the folder, as it is and as it would be, so that it is decided on by its
/// own name.
pub(crate) async fn add(action: &str, workspace: &str, facts: &mut Facts) -> Result<(), Failure> {
    let takes_all = matches!(
        ActionName::parse(action),
        Some(ActionName::FsMove | ActionName::FsDelete)
    );
    let is_folder = |path: &PathFact| path.kind == Some(EntryKind::Directory);
    if !takes_all || !facts.paths.first().is_some_and(is_folder) {
        return Ok(());
    }
    let (places, workspace) = (facts.paths.clone(), PathBuf::from(workspace));
    // It may be a large one.
    let found = tokio::task::spawn_blocking(move || find(&places, &workspace));
    let found = found.await;
    let found = found.map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()))?;
    facts.paths.extend(found?);
    Ok(())
}

/// What is protected below the first of these places, under its name in each of them.
fn find(places: &[PathFact], workspace: &Path) -> Result<Vec<PathFact>, Failure> {
    let Some(folder) = places.first() else {
        return Ok(Vec::new());
    };
    let unreadable = |at: &Path, why: std::io::Error| {
        let at = at.display();
        Failure::new(
            ErrorKind::Io,
            format!(
                "What is in {at} cannot be seen ({why}), and something there may be protected."
            ),
        )
    };
    let folder = Path::new(&folder.path);
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let at = folder.join(&below);
        let entries = std::fs::read_dir(&at).map_err(|why| unreadable(&at, why))?;
        for entry in entries {
            let entry = entry.map_err(|why| unreadable(&at, why))?;
            let below = below.join(entry.file_name());
            let mut is_whole = false;
            for place in places {
                let path = Path::new(&place.path).join(&below);
                let inside = path.strip_prefix(workspace).unwrap_or(&path);
                let names = inside.iter().map(std::ffi::OsStr::as_encoded_bytes);
                let Some(protection) = protected(names) else {
                    continue;
                };
                is_whole |= protection.reach == Reach::Tree;
                found.push(PathFact {
                    path: path.to_string_lossy().into_owned(),
                    access: place.access,
                    kind: None,
                    digest: None,
                });
            }
            if found.len() > MOST {
                return Err(Failure::new(
                    ErrorKind::TooLarge,
                    format!(
                        "More than {MOST} things in {} are protected. Take a folder further down.",
                        folder.display()
                    ),
                ));
            }
            let kind = entry.file_type().map_err(|why| unreadable(&at, why))?;
            if kind.is_dir() && !is_whole {
                left.push(below);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use protocol::facts::Access;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn who_moves_or_deletes_a_folder_is_decided_on_by_what_is_protected_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["p/workflows", "p/src", "d/.ward", "d/nest/.git/hooks"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["p/workflows/ci.yml", "p/src/a.rs", "d/ward.toml", "file"] {
            std::fs::write(root.join(path), "").unwrap();
        }
        // What is behind a link stays where it is.
        std::os::unix::fs::symlink("../d", root.join("p/src/link")).unwrap();
        let workspace = root.to_str().unwrap();
        let told = async |action: &str, params: serde_json::Value| {
            let mut facts = crate::facts::of(action, &params, workspace, "vscode").unwrap();
            let asked = facts.paths.len();
            add(action, workspace, &mut facts).await.unwrap();
            let found = facts.paths.split_off(asked).into_iter();
            let below = |path: &str| path.strip_prefix(workspace).unwrap()[1..].to_owned();
            let found = found.map(|fact| (below(&fact.path), fact.access));
            found.collect::<Vec<_>>()
        };
        let all = |paths: &[&str], access: Access| {
            let paths = paths.iter().map(|path| ((*path).to_owned(), access));
            paths.collect::<Vec<_>>()
        };
        let to_github = told("fs.move", json!({"from": "p", "to": ".github"})).await;
        assert_eq!(to_github, all(&[".github/workflows"], Access::Write));
        assert_eq!(told("fs.move", json!({"from": "p", "to": "q"})).await, []);
        let inside = ["d/.ward", "d/nest/.git", "d/nest/.git/hooks", "d/ward.toml"];
        let deleted = told("fs.delete", json!({"path": "d", "recursive": true})).await;
        assert_eq!(deleted, all(&inside, Access::Delete));
        assert_eq!(told("fs.delete", json!({"path": "file"})).await, []);
        let moved = told("fs.move", json!({"from": "d", "to": "e"})).await;
        let mut both = all(&inside, Access::Delete);
        both.extend(all(
            &["e/.ward", "e/nest/.git", "e/nest/.git/hooks", "e/ward.toml"],
            Access::Write,
        ));
        assert_eq!(moved, both);
    }
}
