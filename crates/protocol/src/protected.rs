//! What agents may not change inside a workspace, whatever their skills: one table, by name.
//!
//! The file actions refuse to write, move or delete there; the sandbox makes the same paths
//! read-only. Reading is free. The names count at any depth, since a workspace holds nested
//! repositories and projects, and in any case (`.GIT` is `.git` on a disk that folds case).

/// Why a path is protected, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// The names that matched, such as `.git/hooks`. A `*` stands for one name or a part of it,
    /// a `**` for any number of names.
    pub pattern: &'static str,
    /// How much of it.
    pub reach: Reach,
    /// Why, as the end of a sentence that starts with the path.
    pub reason: &'static str,
}

impl Protection {
    /// Whether it says what agents may do. Nobody can let an agent change that; what merely runs
    /// by itself a person may open.
    #[must_use]
    pub fn carries_authority(&self) -> bool {
        self.reason == AUTHORITY
    }
}

/// How much of a protected path may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It may not be made, replaced, moved or deleted, but what is in it may change.
    Itself,
    /// It and everything in it.
    Tree,
}

const AUTHORITY: &str = "says what agents may do";
const GIT: &str = "makes git run programs";
const REPOSITORY: &str = "is a repository's own data";
const HG: &str = "makes Mercurial run programs";
const EDITOR: &str = "makes an editor run programs";
const SHELL: &str = "is run by the shell on entering the folder";
const HOOKS: &str = "makes git run programs on commit";
const CI: &str = "is run by a CI service";

const fn tree(pattern: &'static str, reason: &'static str) -> Protection {
    Protection {
        pattern,
        reach: Reach::Tree,
        reason,
    }
}

/// The table. Where several fit, the first is told.
pub const TABLE: &[Protection] = &[
    tree(".ward", AUTHORITY),
    tree("ward.toml", AUTHORITY),
    tree("AGENTS.md", AUTHORITY),
    tree(".claude", AUTHORITY),
    tree(".mcp.json", AUTHORITY),
    tree(".cursor", AUTHORITY),
    tree(".git/hooks", GIT),
    tree(".git/config", GIT),
    tree(".git/config.worktree", GIT),
    tree(".git/commondir", GIT),
    tree(".git/info", GIT),
    tree(".git/worktrees/*/config.worktree", GIT),
    tree(".git/worktrees/*/commondir", GIT),
    tree(".git/modules/**/hooks", GIT),
    tree(".git/modules/**/config", GIT),
    tree(".git/modules/**/config.worktree", GIT),
    tree(".git/modules/**/commondir", GIT),
    tree(".git/modules/**/info", GIT),
    Protection {
        pattern: ".git",
        reach: Reach::Itself,
        reason: REPOSITORY,
    },
    tree(".hg/hgrc", HG),
    tree(".hg/hgrc-not-shared", HG),
    tree(".envrc", SHELL),
    tree(".vscode", EDITOR),
    tree("*.code-workspace", EDITOR),
    tree(".idea", EDITOR),
    tree(".fleet", EDITOR),
    tree(".zed", EDITOR),
    tree(".devcontainer", EDITOR),
    tree(".devcontainer.json", EDITOR),
    tree(".exrc", EDITOR),
    tree(".vimrc", EDITOR),
    tree(".nvimrc", EDITOR),
    tree(".nvim.lua", EDITOR),
    tree(".dir-locals.el", EDITOR),
    tree(".husky", HOOKS),
    tree("lefthook.yml", HOOKS),
    tree(".lefthook.yml", HOOKS),
    tree(".pre-commit-config.yaml", HOOKS),
    tree(".github/workflows", CI),
    tree(".github/actions", CI),
    tree(".gitea/workflows", CI),
    tree(".forgejo/workflows", CI),
    tree(".gitlab-ci.yml", CI),
    tree(".circleci", CI),
    tree(".travis.yml", CI),
    tree(".buildkite", CI),
    tree(".cirrus.yml", CI),
    tree(".drone.yml", CI),
    tree(".woodpecker", CI),
    tree(".woodpecker.yml", CI),
    tree("appveyor.yml", CI),
    tree(".appveyor.yml", CI),
    tree("azure-pipelines.yml", CI),
    tree("bitbucket-pipelines.yml", CI),
    tree("Jenkinsfile", CI),
];

/// Folders of a repository whose names are free: a branch may well be called `config`.
const FREE_NAMES: &[&[u8]] = &[b"refs", b"logs", b"objects"];

/// Whether the path with these components, from the workspace down, is protected.
///
/// The components are names: no `.`, no `..`, no separators. A folder that merely holds a
/// protected path is not protected; who moves or deletes one has to ask for what is in it.
pub fn protected<'a>(components: impl IntoIterator<Item = &'a [u8]>) -> Option<Protection> {
    let names: Vec<&[u8]> = components.into_iter().collect();
    TABLE
        .iter()
        .find(|protection| {
            let pattern = Some(protection.pattern);
            (0..names.len()).any(|start| fits(pattern, &names[start..], protection.reach))
        })
        .copied()
}

/// Whether `names` begins with `pattern`; for [`Reach::Itself`] it has to end with it as well.
fn fits(pattern: Option<&str>, names: &[&[u8]], reach: Reach) -> bool {
    let Some(pattern) = pattern else {
        return match reach {
            Reach::Itself => names.is_empty(),
            Reach::Tree => true,
        };
    };
    let (first, rest) = match pattern.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (pattern, None),
    };
    if first == "**" {
        let free = |name: &&[u8]| {
            FREE_NAMES
                .iter()
                .any(|free| name.eq_ignore_ascii_case(free))
        };
        let end = names.iter().position(free).unwrap_or(names.len());
        return (0..=end).any(|skip| fits(rest, &names[skip..], reach));
    }
    let Some((name, names_rest)) = names.split_first() else {
        return false;
    };
    fits_name(first.as_bytes(), name) && fits(rest, names_rest, reach)
}

fn fits_name(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.strip_prefix(b"*") {
        Some(ending) => {
            name.len() >= ending.len()
                && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
        }
        None => name.eq_ignore_ascii_case(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern_of(path: &str) -> Option<&'static str> {
        protected(path.split('/').map(str::as_bytes)).map(|protection| protection.pattern)
    }

    #[test]
    fn what_carries_authority_or_runs_by_itself_is_protected_at_any_depth_and_in_any_case() {
        for (path, pattern) in [
            (".git/hooks", ".git/hooks"),
            (".git/hooks/pre-commit", ".git/hooks"),
            ("vendor/lib/.git/hooks/pre-commit", ".git/hooks"),
            (".GIT/Config", ".git/config"),
            (".git/info/attributes", ".git/info"),
            (".git/commondir", ".git/commondir"),
            (
                ".git/worktrees/one/config.worktree",
                ".git/worktrees/*/config.worktree",
            ),
            (
                ".git/modules/libs/a/hooks/post-checkout",
                ".git/modules/**/hooks",
            ),
            (".git/modules/a/modules/b/config", ".git/modules/**/config"),
            (".git", ".git"),
            ("nested/.git", ".git"),
            (".ward/roles/dev.md", ".ward"),
            ("ward.toml", "ward.toml"),
            ("sub/agents.MD", "AGENTS.md"),
            (".claude/settings.json", ".claude"),
            (".envrc", ".envrc"),
            (".vscode/tasks.json", ".vscode"),
            ("a/b/my.code-workspace", "*.code-workspace"),
            (".github/workflows/ci.yml", ".github/workflows"),
        ] {
            assert_eq!(pattern_of(path), Some(pattern), "{path}");
        }
    }

    #[test]
    fn what_only_looks_alike_is_free() {
        for path in [
            "src/main.rs",
            ".github",
            ".github/CODEOWNERS",
            ".gitignore",
            ".git/HEAD",
            ".git/refs/heads/config",
            ".git/modules/a/refs/heads/hooks",
            ".git/logs/refs/heads/info",
            "git/hooks/pre-commit",
            "hooks/pre-commit",
            "config",
            "ward.toml.md",
            "docs/AGENTS.md.txt",
        ] {
            assert_eq!(pattern_of(path), None, "{path}");
        }
    }

    #[test]
    fn a_path_without_components_is_free() {
        assert_eq!(protected([]), None);
    }
}
