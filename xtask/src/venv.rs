//! Packages of PyPI, each in an environment of its own in the cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::Places;
use crate::{needs, run};

/// Where an environment with these packages is.
pub(crate) fn folder(places: &Places, packages: &[&str]) -> PathBuf {
    let name = packages.first().copied().unwrap_or("python");
    places.cache.join(name.replace("==", "-"))
}

/// An environment with these packages, as pip takes them; the first names it. Its `bin` is answered.
pub(crate) fn install(places: &Places, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = folder(places, packages);
    let bin = folder.join("bin");
    // Written last, so that what was interrupted is done again.
    let done = folder.join("installed");
    let wanted = packages.join(" ");
    let works = run::succeeds(Command::new(bin.join("python")).args(["-c", ""]));
    if works && fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(bin);
    }
    let _ = fs::remove_dir_all(&folder);
    // Debian has it without what makes environments.
    if !run::succeeds(Command::new("python3").args(["-c", "import ensurepip"])) {
        needs::install_packages(&["python3-venv"])?;
    }
    run::run(
        run::program("python3", &places.root)
            .args(["-m", "venv"])
            .arg(&folder),
        "Python 3.10 or newer is needed, with its venv module.",
    )?;
    run::run(
        Command::new(bin.join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(packages),
        "Is PyPI reachable?",
    )?;
    fs::write(done, wanted)?;
    Ok(bin)
}
