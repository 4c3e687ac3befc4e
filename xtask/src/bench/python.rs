//! The peer that PyPI has. It wants a Python newer than many systems have, so one is looked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::cache::Places;
use crate::run;

/// What is installed.
const PACKAGE: &str = "openhands-agent-server==1.58.0";

/// Prints where this Python is, where it is new enough.
const NEW_ENOUGH: &str =
    "import sys; assert sys.version_info >= (3, 12); print(sys.executable); print(sys.base_prefix)";

/// A Python, and the packages it needs.
#[derive(Debug)]
pub(crate) struct Python {
    /// Its program.
    pub(crate) program: PathBuf,
    /// The folder that it was installed to.
    pub(crate) prefix: PathBuf,
    /// The packages.
    pub(crate) site: PathBuf,
}

impl Python {
    pub(crate) fn version(&self) -> String {
        let version = run::output(Command::new(&self.program).arg("--version"));
        version.map_or_else(|_| "not there".to_owned(), |text| text.trim().to_owned())
    }
}

/// The packages by name and version, for who reads the figures.
pub(crate) fn shown() -> String {
    PACKAGE.replace("==", " ")
}

/// Installs the peer once, into the cache.
pub(crate) fn install(places: &Places) -> anyhow::Result<Python> {
    let (program, prefix) = find()?;
    let folder = places.cache.join("peers-python");
    let site = folder.join("site");
    // Written last, so that what was interrupted is done again.
    let done = folder.join("installed");
    let wanted = format!("{PACKAGE} for {}", program.display());
    if std::fs::read_to_string(&done).ok().as_ref() != Some(&wanted) {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        run::run(
            run::program(&program, &folder)
                .args(["-m", "pip", "install", "--quiet", "--prefer-binary"])
                .arg("--target")
                .arg(&site)
                .arg(PACKAGE),
            "Is the package index reachable?",
        )?;
        std::fs::write(done, wanted)?;
    }
    Ok(Python {
        program,
        prefix,
        site,
    })
}

/// A Python that is new enough: on the PATH, or one that pyenv keeps.
fn find() -> anyhow::Result<(PathBuf, PathBuf)> {
    let named = ["python3", "python3.14", "python3.13", "python3.12"].map(PathBuf::from);
    for program in named.into_iter().chain(kept()) {
        let mut command = Command::new(&program);
        let command = command.args(["-c", NEW_ENOUGH]);
        let Ok(output) = command.stderr(std::process::Stdio::null()).output() else {
            continue;
        };
        if !output.status.success() {
            continue;
        }
        let text = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
        if let [program, prefix] = text.lines().map(Path::new).collect::<Vec<_>>()[..] {
            return Ok((program.canonicalize()?, prefix.to_owned()));
        }
    }
    bail!("Python 3.12 or newer is not there.")
}

fn kept() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = std::env::home_dir().map(|home| home.join(".pyenv"));
    let Some(versions) = root.or(home).map(|root| root.join("versions")) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let mut programs: Vec<PathBuf> = entries
        .map(|entry| entry.path().join("bin/python3"))
        .collect();
    // The newest first, as far as names say.
    programs.sort();
    programs.reverse();
    programs
}
