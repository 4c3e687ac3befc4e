//! Where Ward keeps its things: the XDG folders, and what they are where they are not set.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;

/// Settings that a person writes.
pub(crate) fn config() -> anyhow::Result<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

/// The store.
pub(crate) fn data() -> anyhow::Result<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// What rooms need while they are open, and what the sandbox set aside.
pub(crate) fn state() -> anyhow::Result<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// Those that no workspace may hold beside the state folder.
pub(crate) fn own() -> anyhow::Result<Vec<PathBuf>> {
    Ok(vec![config()?, data()?])
}

fn folder(variable: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    choose(std::env::var_os(variable), std::env::home_dir(), below_home).with_context(|| {
        format!("Ward does not know where its files belong: neither {variable} nor HOME is set. Set HOME to your home folder.")
    })
}

/// A relative path in an XDG variable is ignored, as its specification says.
fn choose(xdg: Option<OsString>, home: Option<PathBuf>, below_home: &str) -> Option<PathBuf> {
    let base = xdg.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(home?.join(below_home)))?.join("ward"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_xdg_folder_wins_if_it_is_absolute_and_home_serves_otherwise() {
        let home = || Some(PathBuf::from("/home/ada"));
        let chosen = |xdg: Option<&str>, home| choose(xdg.map(OsString::from), home, ".config");
        assert_eq!(chosen(Some("/x"), home()), Some("/x/ward".into()));
        let below = Some(PathBuf::from("/home/ada/.config/ward"));
        assert_eq!(chosen(Some("x"), home()), below);
        assert_eq!(chosen(None, home()), below);
        assert_eq!(chosen(None, None), None);
    }
}
