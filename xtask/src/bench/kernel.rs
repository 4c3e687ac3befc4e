//! The Jupyter kernel that cells are measured on, and the client of Python's own beside it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::stage::take_over;
use crate::cache::Places;
use crate::{needs, run};

/// The file that says how the kernel is started.
const SPEC: &str = "share/jupyter/kernels/python3/kernel.json";

/// An environment with a kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    folder: PathBuf,
    /// The Python that it was made of.
    program: PathBuf,
    prefix: PathBuf,
}

impl Kernel {
    /// The one that the tests have.
    pub(crate) fn install(places: &Places) -> anyhow::Result<Self> {
        needs::kernel(places)?;
        let folder = needs::kernel_folder(places);
        let python = folder.join("bin/python3");
        let prefix = said(&python, "import sys; print(sys.base_prefix)")?;
        Ok(Self {
            program: python.canonicalize()?,
            prefix: PathBuf::from(prefix).canonicalize()?,
            folder,
        })
    }

    pub(crate) fn version(&self) -> String {
        let line = "import platform; print('Python', platform.python_version())";
        said(&self.program, line).unwrap_or_else(|_| "no Python".to_owned())
    }

    /// The version of a package.
    pub(crate) fn package(&self, name: &str) -> String {
        let line = format!("import importlib.metadata as it; print(it.version('{name}'))");
        said(&self.folder.join("bin/python3"), &line).unwrap_or_else(|_| "not there".to_owned())
    }

    /// Shows it below `stage` as `kernel`, with its Python where that may be somewhere that only its
    /// user can reach.
    pub(crate) fn take_over(&self, stage: &Path) -> anyhow::Result<()> {
        let to = stage.join("kernel");
        take_over(&self.folder, &to)?;
        let below = match self.program.strip_prefix(&self.prefix) {
            Ok(below) if !self.prefix.starts_with("/usr") => below,
            _ => return Ok(()),
        };
        let home = stage.join("kernel-python");
        take_over(&self.prefix, &home)?;
        let python = to.join("bin/python3");
        fs::remove_file(&python)?;
        symlink(home.join(below), python)?;
        let text = fs::read_to_string(self.folder.join("pyvenv.cfg"))?;
        let from = self.prefix.to_str().context("a path is not UTF-8")?;
        let shown = home.to_str().context("a path is not UTF-8")?;
        replace(&to.join("pyvenv.cfg"), &text.replace(from, shown))?;
        // It was built to be somewhere else, and finds its library only if it is told.
        let text = fs::read_to_string(self.folder.join(SPEC)).context("it has no kernel")?;
        let mut spec: Value = serde_json::from_str(&text)?;
        spec["env"]["LD_LIBRARY_PATH"] = json!(home.join("lib"));
        replace(&to.join(SPEC), &spec.to_string())
    }
}

/// Writes a file anew: what is there may be the very file of the cache.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::remove_file(file)?;
    Ok(fs::write(file, text)?)
}

fn said(python: &Path, line: &str) -> anyhow::Result<String> {
    let text = run::output(Command::new(python).args(["-c", line]))?;
    Ok(text.trim().to_owned())
}
