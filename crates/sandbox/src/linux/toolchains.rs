//! What of the user's home folder a command may read: toolchains, part by part, never their
//! credentials.

use std::path::{Path, PathBuf};

/// How a part of the home folder appears in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// To be read and executed.
    Tools,
    /// A package cache: what is there can be read, what is added stays in the session's home.
    Cache,
    /// A settings file, left out where it holds a secret.
    Settings,
}

/// Every part that is looked for, relative to the home folder.
const PARTS: &[(&str, Part)] = &[
    // Rust
    (".rustup/toolchains", Part::Tools),
    (".rustup/settings.toml", Part::Settings),
    (".rustup/update-hashes", Part::Tools),
    (".cargo/bin", Part::Tools),
    (".cargo/config.toml", Part::Settings),
    (".cargo/config", Part::Settings),
    (".cargo/registry", Part::Cache),
    (".cargo/git", Part::Cache),
    // Node
    (".nvm", Part::Tools),
    (".fnm", Part::Tools),
    (".local/share/fnm", Part::Tools),
    (".volta/bin", Part::Tools),
    (".volta/tools", Part::Tools),
    (".npm-global", Part::Tools),
    (".yarn/bin", Part::Tools),
    (".local/share/pnpm", Part::Tools),
    (".bun/bin", Part::Tools),
    (".deno/bin", Part::Tools),
    // Python
    (".pyenv", Part::Tools),
    (".local/share/uv", Part::Tools),
    (".local/pipx/venvs", Part::Tools),
    (".local/share/pipx/venvs", Part::Tools),
    (".local/lib", Part::Tools),
    ("miniconda3", Part::Tools),
    ("anaconda3", Part::Tools),
    // Go
    ("go/bin", Part::Tools),
    ("go/pkg", Part::Cache),
    ("sdk", Part::Tools),
    // JVM
    (".sdkman/candidates", Part::Tools),
    (".sdkman/bin", Part::Tools),
    // others
    (".rbenv", Part::Tools),
    (".asdf", Part::Tools),
    (".local/share/mise", Part::Tools),
    (".ghcup", Part::Tools),
    (".opam", Part::Tools),
    (".dotnet", Part::Tools),
    (".juliaup", Part::Tools),
    (".elan", Part::Tools),
    (".zig", Part::Tools),
    (".nix-profile", Part::Tools),
    (".local/state/nix", Part::Tools),
    (".local/bin", Part::Tools),
    ("bin", Part::Tools),
];

/// Words that mark a settings file as holding a secret.
const SECRETS: &[&str] = &["token", "password", "secret", "_auth", "credential"];

/// The parts that are there, with their real paths. A part that is a symbolic link is taken only
/// where it leads to somewhere that is visible anyway: a link to elsewhere would widen the wall.
pub(crate) fn found(home: &Path) -> Vec<(PathBuf, Part)> {
    PARTS
        .iter()
        .map(|(part, kind)| (home.join(part), *kind))
        .filter(|(path, kind)| {
            let Ok(metadata) = path.symlink_metadata() else {
                return false;
            };
            match kind {
                Part::Tools | Part::Cache => metadata.is_dir(),
                Part::Settings => metadata.is_file() && !holds_secret(path),
            }
        })
        .collect()
}

fn holds_secret(path: &Path) -> bool {
    // What cannot be read as text is not a settings file.
    std::fs::read_to_string(path).map_or(true, |text| {
        let text = text.to_ascii_lowercase();
        SECRETS.iter().any(|word| text.contains(word))
    })
}

/// Name and address for commits, from the user's git settings: the one thing of them that is
/// needed inside, and no secret.
pub(crate) fn git_identity(home: &Path) -> Option<String> {
    let mut lines = String::new();
    for settings in [home.join(".config/git/config"), home.join(".gitconfig")] {
        let Ok(text) = std::fs::read_to_string(settings) else {
            continue;
        };
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = name.trim().to_ascii_lowercase();
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if section == "user" && matches!(key.as_str(), "name" | "email") {
                lines.push_str(&format!("\t{key} = {value}\n"));
            }
        }
    }
    (!lines.is_empty()).then(|| format!("[user]\n{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_are_found_and_their_credentials_are_not() {
        let home = tempfile::tempdir().unwrap();
        let make = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        make(".cargo/bin/cargo", "");
        make(".cargo/credentials.toml", "token = 'x'");
        make(".cargo/config.toml", "[registry]\ntoken = 'x'");
        make(".rustup/toolchains/stable/bin/rustc", "");
        make(".rustup/settings.toml", "version = '12'");
        make(".ssh/id_ed25519", "key");
        let names: Vec<_> = found(home.path())
            .into_iter()
            .map(|(path, _)| path.strip_prefix(home.path()).unwrap().to_owned())
            .collect();
        let expected = [".rustup/toolchains", ".rustup/settings.toml", ".cargo/bin"];
        assert_eq!(names, expected.map(PathBuf::from));
    }

    #[test]
    fn only_the_name_and_the_address_are_taken_from_the_git_settings() {
        let home = tempfile::tempdir().unwrap();
        let text = "[core]\n\thooksPath = /evil\n[user]\n\tname = A B\n\temail = a@b.c\n\tsigningkey = K\n[credential]\n\thelper = store\n";
        std::fs::write(home.path().join(".gitconfig"), text).unwrap();
        let identity = git_identity(home.path());
        assert_eq!(
            identity.as_deref(),
            Some("[user]\n\tname = A B\n\temail = a@b.c\n")
        );
    }
}
