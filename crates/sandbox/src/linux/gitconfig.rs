//! A repository's settings with only what is known to run nothing.
//!
//! Git reads its settings in many ways of writing, and new settings that run programs come with
//! each release. So nothing is looked for: what is not known to be harmless, or not written as git
//! itself writes it, is left out.

/// Settings that git writes or people set, and that run nothing. A `*` stands for any name between.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.abbrev",
    "core.compression",
    "core.looseCompression",
    "core.bigfilethreshold",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.untrackedcache",
    "core.splitindex",
    "core.commentchar",
    "core.longpaths",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.relativeworktrees",
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "init.defaultbranch",
    "remote.*.url",
    "remote.*.fetch",
    "remote.*.push",
    "remote.*.tagopt",
    "remote.*.prune",
    "remote.*.promisor",
    "remote.*.partialclonefilter",
    "remote.pushdefault",
    "branch.*.remote",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.*.pushremote",
    "branch.*.description",
    "branch.*.vscode-merge-base",
    "branch.autosetuprebase",
    "branch.autosetupmerge",
    "submodule.*.url",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.active",
    "submodule.recurse",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "pull.rebase",
    "pull.ff",
    "fetch.prune",
    "fetch.parallel",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renames",
    "rebase.autosquash",
    "rebase.autostash",
    "rerere.enabled",
    "diff.algorithm",
    "diff.renames",
    "diff.colormoved",
    "log.date",
    "log.decorate",
    "status.showuntrackedfiles",
    "color.ui",
    "gc.auto",
    "gc.autodetach",
    "gc.pruneexpire",
    "maintenance.auto",
    "pack.threads",
    "pack.windowmemory",
    "feature.manyfiles",
    "index.version",
    "index.threads",
    "commit.gpgsign",
    "tag.gpgsign",
    "advice.detachedhead",
    "lfs.repositoryformatversion",
];

/// What git also writes in a submodule's own settings: where its files are.
const HARMLESS_IN_SUBMODULES: &str = "core.worktree";

/// Whose settings they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// A repository with its files around it, or a bare one.
    Repository,
    /// A submodule, whose files are elsewhere in the workspace.
    Submodule,
}

/// The settings as they may stay, and the names of what was left out; none where all may stay.
pub(crate) fn cleaned(text: &str, of: Of) -> Option<(String, Vec<String>)> {
    let (mut kept, mut left_out) = (String::new(), Vec::new());
    // The section's name, and what stands between it and a setting's.
    let mut section: Option<(String, Option<String>)> = None;
    // A value that goes on in the next line, which is then not what it looks like.
    let mut goes_on = false;
    for line in text.lines() {
        let went_on = std::mem::replace(&mut goes_on, line.ends_with('\\'));
        if !went_on && !goes_on && is_plain(line, &mut section, of) {
            kept.push_str(line);
            kept.push('\n');
        } else {
            left_out.push(told(line, section.as_ref()));
        }
    }
    (!left_out.is_empty()).then_some((kept, left_out))
}

/// Whether a line is written as git writes it, and says something harmless.
fn is_plain(line: &str, section: &mut Option<(String, Option<String>)>, of: Of) -> bool {
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
        return true;
    }
    if trimmed.starts_with('[') {
        *section = heading(trimmed);
        return section.is_some();
    }
    let Some((key, value)) = trimmed.split_once('=') else {
        return false;
    };
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
    let Some((name, between)) = section else {
        return false;
    };
    let full = match between {
        Some(_) => format!("{name}.*.{key}"),
        None => format!("{name}.{key}"),
    };
    let known = HARMLESS
        .iter()
        .any(|harmless| harmless.eq_ignore_ascii_case(&full))
        || of == Of::Submodule && full == HARMLESS_IN_SUBMODULES;
    known && is_plain_value(&key, value)
}

/// `[section]` or `[section "name"]`, alone on its line.
fn heading(line: &str) -> Option<(String, Option<String>)> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, between) = match inner.split_once(' ') {
        None => (inner, None),
        Some((name, quoted)) => {
            let between = quoted.strip_prefix('"')?.strip_suffix('"')?;
            (name, Some(between))
        }
    };
    let word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let plain = between.is_none_or(|text| !text.contains(['"', '\\', '[', ']']));
    (word && plain).then(|| (name.to_ascii_lowercase(), between.map(str::to_owned)))
}

/// A value without quoting, and for an address one that names no program.
fn is_plain_value(key: &str, value: &str) -> bool {
    let plain = !value.contains(['"', '\\', '\0']) && !value.chars().any(char::is_control);
    let address = matches!(key, "url" | "remote" | "pushremote" | "pushdefault");
    plain && !(address && (value.contains("::") || value.starts_with('-')))
}

fn told(line: &str, section: Option<&(String, Option<String>)>) -> String {
    let key = line
        .trim()
        .split(['=', ' ', '\t'])
        .next()
        .unwrap_or_default();
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match section {
        Some((name, _)) if !key.is_empty() && word(key) => {
            format!("{name}.{}", key.to_ascii_lowercase())
        }
        _ => "a line that git would not write".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_git_makes_them_are_left_alone() {
        let made = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                    [remote \"origin\"]\n\turl = https://example.com/x\n\t\
                    fetch = +refs/heads/*:refs/remotes/origin/*\n\
                    [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert_eq!(cleaned(made, Of::Repository), None);
    }

    #[test]
    fn what_could_run_a_program_is_left_out_however_it_is_written() {
        for (text, kept) in [
            (
                "[core]\n\tfsmonitor = ./x\n\tbare = false\n",
                "[core]\n\tbare = false\n",
            ),
            ("[CORE]\nHooksPath=x\n", "[CORE]\n"),
            ("[core] hooksPath = x\n", ""),
            ("[x][core]fsmonitor = x\n", ""),
            ("\u{feff}[core]\n\tfsmonitor = x\n", ""),
            ("[core]\n\tx = a\\\n[foo]\n\tfsmonitor = x\n", "[core]\n"),
            ("[filter \"a]b\"]\n\tclean = x\n", ""),
            ("[diff]\n\texternal = \\\n  ./x\n", "[diff]\n"),
            ("[alias]\n\tst = !x\n", "[alias]\n"),
            ("[include]\n\tpath = ../x\n", "[include]\n"),
            ("[core]\n\tsshCommand\n", "[core]\n"),
            ("[remote \"o\"]\n\turl = ext::sh -c x\n", "[remote \"o\"]\n"),
            (
                "[remote \"o\"]\n\turl = --upload-pack=x\n",
                "[remote \"o\"]\n",
            ),
            ("[extensions]\n\tworktreeConfig = true\n", "[extensions]\n"),
            (
                "[protocol \"ext\"]\n\tallow = always\n",
                "[protocol \"ext\"]\n",
            ),
        ] {
            assert_eq!(
                cleaned(text, Of::Repository)
                    .map(|(kept, _)| kept)
                    .as_deref(),
                Some(kept),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_was_left_out_is_named() {
        let (_, names) = cleaned("[core]\n\tfsmonitor = x\n[x][y]\n", Of::Repository).unwrap();
        assert_eq!(names, ["core.fsmonitor", "a line that git would not write"]);
    }

    #[test]
    fn a_submodule_may_say_where_its_files_are() {
        let text = "[core]\n\tworktree = ../../../sub\n";
        assert_eq!(cleaned(text, Of::Submodule), None);
        assert!(cleaned(text, Of::Repository).is_some());
    }
}
