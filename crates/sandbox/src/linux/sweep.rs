//! Sets aside what a command made that would run by itself, before the next action.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::sandbox::SetAside;

use super::layers::{Off, on};
use super::scan::{Carrier, Found};
use crate::aside::{Aside, Spot};

/// Settings that make git run a program: whole names, then sections with any name below them.
const RUNS: &[&str] = &[
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
    "core.editor",
    "core.pager",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "core.attributesfile",
    "core.worktree",
    "sequence.editor",
    "diff.external",
    "credential.helper",
    "gpg.program",
    "include.path",
    "uploadpack.packobjectshook",
    "interactive.difffilter",
    "web.browser",
    "init.templatedir",
    "commit.template",
];

/// Sections whose settings of these names run a program, whatever stands between.
const RUNS_IN: &[(&str, &[&str])] = &[
    ("filter", &["clean", "smudge", "process"]),
    ("diff", &["command", "textconv"]),
    ("merge", &["driver"]),
    ("difftool", &["cmd", "path"]),
    ("mergetool", &["cmd", "path"]),
    ("alias", &[]),
    ("pager", &[]),
    ("credential", &["helper"]),
    ("gpg", &["program"]),
    ("includeif", &["path"]),
    ("hook", &["command"]),
    ("remote", &["uploadpack", "receivepack", "vcs", "proxy"]),
    ("submodule", &["update"]),
    ("browser", &["cmd", "path"]),
    ("man", &["cmd", "path"]),
    ("trailer", &["command", "cmd"]),
    ("url", &["insteadof", "pushinsteadof"]),
];

/// What in the root alone carries authority; deeper down it is another project's and says nothing
/// to Ward.
const ROOT_ONLY: &[&str] = &["agents.md", "ward.toml", ".ward", ".mcp.json", ".cursor"];

/// Sets aside what is new in `after` and would run by itself.
pub(crate) fn sweep(root: &Path, before: &Found, after: &Found, aside: &Aside) -> Vec<SetAside> {
    let mut set_aside = Vec::new();
    if !on(Off::Sweep) {
        return set_aside;
    }
    for (path, carrier) in new_carriers(root, before, after) {
        let Ok(spot) = Spot::find(root, &path) else {
            continue;
        };
        let done = match carrier {
            Carrier::Hook => {
                is_live_hook(&path).then(|| aside.take(&spot, "git would run it as a hook"))
            }
            Carrier::GitConfig => cleaned(&spot).map(|(text, names)| {
                aside.take_lines(&spot, &text, &format!("git would run what {names} names"))
            }),
            Carrier::Named => reason(root, &path).map(|reason| aside.take(&spot, reason)),
        };
        match done {
            Some(Ok(one)) => set_aside.push(one),
            Some(Err(error)) => {
                tracing::warn!(path = %path.display(), %error, "could not set aside what a command made");
            }
            None => {}
        }
    }
    set_aside
}

fn new_carriers(root: &Path, before: &Found, after: &Found) -> BTreeMap<PathBuf, Carrier> {
    after
        .carriers
        .iter()
        .filter(|(path, _)| !before.carriers.contains_key(*path) && path.starts_with(root))
        .map(|(path, carrier)| (path.clone(), *carrier))
        .collect()
}

/// Git runs what is executable and has a hook's plain name.
fn is_live_hook(path: &Path) -> bool {
    let sample = path.extension().is_some_and(|ending| ending == "sample");
    let executable = path
        .symlink_metadata()
        .is_ok_and(|m| m.is_symlink() || (m.is_file() && m.permissions().mode() & 0o111 != 0));
    executable && !sample
}

/// Why a path with a protected name is set aside; none where it does no harm where it is.
fn reason(root: &Path, path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let in_root = path.parent() == Some(root);
    if ROOT_ONLY.contains(&name.as_str()) {
        return in_root.then_some("it would say what agents may do");
    }
    match name.as_str() {
        ".envrc" => Some("the shell would run it on entering the folder"),
        ".vscode" => {
            let live = ["tasks.json", "settings.json", "launch.json"]
                .iter()
                .any(|f| path.join(f).exists());
            live.then_some("an editor would run its tasks")
        }
        ".idea" | ".zed" | ".fleet" | ".devcontainer" | ".devcontainer.json" => {
            Some("an editor would run its tasks")
        }
        ".exrc" | ".vimrc" | ".nvimrc" | ".nvim.lua" | ".dir-locals.el" => {
            Some("an editor would run it")
        }
        ".claude" => {
            let live = ["settings.json", "settings.local.json"]
                .iter()
                .any(|f| path.join(f).exists());
            (in_root || live).then_some("it would make an agent run programs")
        }
        _ => None,
    }
}

/// The settings without what would run a program, and the names of what was taken out; none where
/// there is nothing to take out.
fn cleaned(spot: &Spot) -> Option<(String, String)> {
    match spot.read().ok()? {
        Some(bytes) => clean(&String::from_utf8_lossy(&bytes)),
        // A link or a file of megabytes is never git's own doing.
        None => Some((String::new(), "the settings".into())),
    }
}

fn clean(text: &str) -> Option<(String, String)> {
    let (mut kept, mut names) = (String::new(), Vec::new());
    let mut section = String::new();
    let mut taking = false;
    for line in text.split_inclusive('\n') {
        // A value that goes on in the next line goes with its first line.
        let goes_on = line.trim_end_matches(['\n', '\r']).ends_with('\\');
        if taking {
            taking = goes_on;
            continue;
        }
        let mut rest = line.trim();
        if rest.starts_with('[') {
            let Some(end) = section_end(rest) else {
                names.push("an unreadable line".to_owned());
                continue;
            };
            section = section_name(&rest[1..end]);
            rest = rest[end + 1..].trim();
        }
        let key = rest
            .split(['=', ' ', '\t', ';', '#'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if !key.is_empty() && runs(&section, &key) {
            names.push(format!("{section}.{key}"));
            taking = goes_on;
            continue;
        }
        kept.push_str(line);
    }
    (!names.is_empty()).then(|| (kept, names.join(", ")))
}

/// Where `[section "name"]` ends: a bracket in the quoted name does not end it.
fn section_end(line: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in line.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

fn section_name(inner: &str) -> String {
    inner
        .split(['"', '.', ' ', '\t'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

fn runs(section: &str, key: &str) -> bool {
    RUNS.contains(&format!("{section}.{key}").as_str())
        || RUNS_IN
            .iter()
            .any(|(s, keys)| *s == section && (keys.is_empty() || keys.contains(&key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_git_makes_them_are_left_alone() {
        let made = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";
        assert_eq!(clean(made), None);
    }

    #[test]
    fn what_would_run_a_program_is_taken_out_however_it_is_written() {
        for (text, kept) in [
            (
                "[core]\n\tfsmonitor = ./x\n\tbare = false\n",
                "[core]\n\tbare = false\n",
            ),
            ("[CORE]\nHooksPath=x\n", "[CORE]\n"),
            ("[core] hooksPath = x\n", ""),
            ("[filter \"a]b\"]\n\tclean = x\n", "[filter \"a]b\"]\n"),
            (
                "[diff]\n\texternal = \\\n  ./x\n\tcolor = auto\n",
                "[diff]\n\tcolor = auto\n",
            ),
            ("[alias]\n\tst = !x\n", "[alias]\n"),
            ("[include]\n\tpath = ../x\n", "[include]\n"),
            ("[core]\n\tsshCommand\n", "[core]\n"),
        ] {
            assert_eq!(
                clean(text).map(|(kept, _)| kept).as_deref(),
                Some(kept),
                "{text:?}"
            );
        }
    }
}
