//! The folder that the measuring is done in.
//!
//! ```text
//! bin/            ward, ward-layers-off, bench: in release
//! server.mjs      the Node peer of the runtime server
//! agents.mjs      the Node peer of sessions
//! broker.mjs      the Node peer of the broker
//! notebook.mjs    the Node peers of a notebook's store
//! jupyter.py      the Python peer of a notebook's runtime
//! node_modules/   what npm has of the peers
//! python3         for the peer from PyPI, where there is one that is new enough
//! python-site/    that peer
//! kernel/         a Python environment with a Jupyter kernel
//! home/ tmp/      the user's
//! work/           the workspace
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Until the figures are worth writing down.
    Full,
    /// Only to see that everything works.
    Quick,
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
    effort: Effort,
}

impl Stage {
    pub(crate) fn new(folder: PathBuf, effort: Effort) -> Self {
        Self { folder, effort }
    }

    /// `full` where figures are wanted, a handful otherwise.
    pub(crate) fn rounds(&self, full: usize) -> usize {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => full.min(3),
        }
    }

    /// So often within a round, or a tenth of it.
    pub(crate) fn often(&self, full: usize) -> usize {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => full / 10,
        }
    }

    pub(crate) fn effort(&self) -> Effort {
        self.effort
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// A program, in the workspace, with an environment that is the same for every candidate.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            // Not where the home folder is: codex takes a home among temporary files for unsafe.
            .env("TMPDIR", self.path("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// One of our own programs.
    pub(crate) fn ours(&self, name: &str) -> Command {
        self.command(self.path("bin").join(name))
    }

    /// Ward's own runtime server.
    pub(crate) fn runtime(&self, binary: &str) -> Command {
        let mut command = self.ours(binary);
        command.args(["runtime", "--stdio"]);
        command
    }

    /// The gate with a data folder of its own.
    pub(crate) fn gate(&self, data: &Path) -> Command {
        let mut command = self.ours("ward");
        command.args(["gate", "--stdio", "--data"]).arg(data);
        command
    }

    /// The Node peer.
    pub(crate) fn node(&self) -> Command {
        let mut command = self.command("node");
        command.arg(self.path("server.mjs"));
        command
    }

    /// Codex's own program, without the Node script that npm starts it with.
    pub(crate) fn codex(&self) -> PathBuf {
        let machine = std::env::consts::ARCH;
        let short = if machine == "aarch64" { "arm64" } else { "x64" };
        self.path(&format!(
            "node_modules/@openai/codex-linux-{short}/vendor/{machine}-unknown-linux-musl/bin/codex"
        ))
    }

    /// An empty folder for what a measuring leaves behind.
    pub(crate) fn scratch(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.path("tmp").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// A file of the workspace that every request asks about.
    pub(crate) fn small_file(&self) -> anyhow::Result<&'static str> {
        std::fs::write(self.work().join("small"), "a small file\n")?;
        Ok("small")
    }
}

/// Runs a command that prepares something.
pub(crate) fn prepare(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{name}` could not be started"))?;
    if !output.status.success() {
        bail!(
            "`{name}` failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
