//! Sets aside what a command made that would run by itself, before the next action.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use protocol::sandbox::SetAside;

use super::gitconfig::{self, Of};
use super::layers::{Off, on};
use super::scan::{Carrier, Found};
use crate::aside::{Aside, Spot};

/// What in the root alone carries authority; deeper down it is another project's and says nothing
/// to Ward.
const ROOT_ONLY: &[&str] = &["agents.md", "ward.toml", ".ward", ".mcp.json", ".cursor"];

/// Sets aside what is new or changed in `after` and would run by itself, but for what was granted.
pub(crate) fn sweep(
    root: &Path,
    before: &Found,
    after: &Found,
    aside: &Aside,
    granted: impl Fn(&Path) -> bool,
) -> Vec<SetAside> {
    let mut set_aside = Vec::new();
    if !on(Off::Sweep) {
        return set_aside;
    }
    let mut keep = |path: &Path, done: std::io::Result<Option<SetAside>>| match done {
        Ok(taken) => set_aside.extend(taken),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "could not set aside what a command made");
        }
    };
    for (path, target) in &before.links {
        if after.links.get(path) != Some(target) && !granted(path) {
            keep(path, put_link_back(root, path, target, aside));
        }
    }
    for (path, found) in &after.carriers {
        let known = before.carriers.get(path);
        if known != Some(found) && !before.links.contains_key(path) && !granted(path) {
            keep(path, take(root, path, found.0, known.is_some(), aside));
        }
    }
    set_aside
}

/// A protected link is where it was, leading where it led; what stood in its place is kept.
fn put_link_back(
    root: &Path,
    path: &Path,
    target: &Path,
    aside: &Aside,
) -> std::io::Result<Option<SetAside>> {
    let spot = Spot::find(root, path)?;
    let taken = if path.symlink_metadata().is_ok() {
        Some(aside.take(&spot, "it stood in the place of a protected link")?)
    } else {
        None
    };
    spot.link_to(target)?;
    Ok(taken)
}

fn take(
    root: &Path,
    path: &Path,
    carrier: Carrier,
    was_there: bool,
    aside: &Aside,
) -> std::io::Result<Option<SetAside>> {
    let spot = Spot::find(root, path)?;
    let reason = match carrier {
        Carrier::Hook => is_live_hook(path).then_some("git would run it as a hook"),
        Carrier::LinkedPart => Some("git would find its hooks or settings behind it"),
        Carrier::CommonFolder => {
            (!is_worktrees_own(&spot, path)?).then_some("git would find its settings behind it")
        }
        // A new one only leads to what is looked at anyway.
        Carrier::GitLink => was_there.then_some("git would find another repository behind it"),
        Carrier::Named => reason(root, path),
        Carrier::GitConfig => return take_settings(&spot, path, aside),
    };
    reason.map(|reason| aside.take(&spot, reason)).transpose()
}

fn take_settings(spot: &Spot, path: &Path, aside: &Aside) -> std::io::Result<Option<SetAside>> {
    // What is no plain file of at most a megabyte is never git's own doing.
    let Some(bytes) = spot.read()? else {
        return aside
            .take(spot, "git would take its settings from it")
            .map(Some);
    };
    let of = if path.to_string_lossy().contains("/.git/modules/") {
        Of::Submodule
    } else {
        Of::Repository
    };
    let Some((text, names)) = gitconfig::cleaned(&String::from_utf8_lossy(&bytes), of) else {
        return Ok(None);
    };
    let reason = format!("git might run what it names: {}", names.join(", "));
    aside.take_lines(spot, &text, &reason).map(Some)
}

/// Git runs what is executable and has a hook's plain name.
fn is_live_hook(path: &Path) -> bool {
    let sample = path.extension().is_some_and(|ending| ending == "sample");
    let executable = path
        .symlink_metadata()
        .is_ok_and(|m| m.is_symlink() || (m.is_file() && m.permissions().mode() & 0o111 != 0));
    executable && !sample
}

/// `git worktree add` makes one in `.git/worktrees/NAME` that leads back to `.git`.
fn is_worktrees_own(spot: &Spot, path: &Path) -> std::io::Result<bool> {
    let place: Vec<_> = path.iter().rev().skip(2).take(2).collect();
    let in_worktrees = place == ["worktrees", ".git"];
    let leads_back = spot
        .read()?
        .is_some_and(|text| text.trim_ascii() == b"../..");
    Ok(in_worktrees && leads_back)
}

/// Why a path with a protected name is set aside; none where it does no harm where it is.
fn reason(root: &Path, path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let in_root = path.parent() == Some(root);
    if ROOT_ONLY.contains(&name.as_str()) {
        return in_root.then_some("it would say what agents may do");
    }
    let holds = |names: &[&str]| {
        names
            .iter()
            .any(|name| path.join(name).symlink_metadata().is_ok())
    };
    let is_link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
    match name.as_str() {
        ".envrc" => Some("the shell would run it on entering the folder"),
        // `hg init` makes none of them.
        "hgrc" | "hgrc-not-shared" => Some("Mercurial would run what it names"),
        ".vscode" => (is_link || holds(&["tasks.json", "settings.json", "launch.json"]))
            .then_some("an editor would run its tasks"),
        ".idea" | ".zed" | ".fleet" | ".devcontainer" | ".devcontainer.json" => {
            Some("an editor would run its tasks")
        }
        ".exrc" | ".vimrc" | ".nvimrc" | ".nvim.lua" | ".dir-locals.el" => {
            Some("an editor would run it")
        }
        ".claude" => (in_root || is_link || holds(&["settings.json", "settings.local.json"]))
            .then_some("it would make an agent run programs"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::scan::Scanner;

    #[test]
    fn a_worktree_that_git_adds_is_left_alone() {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        let mut scanner = Scanner::new(root);
        let before = scanner.look();
        let worktree = root.join(".git/worktrees/one");
        std::fs::create_dir_all(&worktree).unwrap();
        std::fs::write(worktree.join("HEAD"), "ref: refs/heads/one\n").unwrap();
        std::fs::write(worktree.join("commondir"), "../..\n").unwrap();
        let after = scanner.look();
        let taken = sweep(root, &before, &after, &Aside::new(state.path()), |_| false);
        assert_eq!(taken, []);
        let elsewhere = worktree.join("commondir");
        std::fs::write(&elsewhere, "../../../evil\n").unwrap();
        let taken = sweep(
            root,
            &after,
            &scanner.look(),
            &Aside::new(state.path()),
            |_| false,
        );
        assert_eq!(taken.len(), 1);
        assert!(!elsewhere.exists());
    }
}
