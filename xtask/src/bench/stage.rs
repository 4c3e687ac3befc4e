//! The folder that everything is measured in, where an unprivileged user can reach it: copies of
//! the programs, a home, a workspace. It goes when the measuring is over.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::Subject;
use super::peers::{Peers, SERVERS};
use super::python::Python;
use crate::cache::Places;
use crate::run;

/// What all users see.
const SHARED: [&str; 5] = ["bin", "node_modules", "python3", "python-site", "kernel"];

/// Who runs what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Unprivileged,
    Root,
}

impl User {
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Unprivileged => "as an unprivileged user",
            Self::Root => "as root, for information",
        }
    }
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
    is_root: bool,
}

impl Stage {
    pub(crate) fn make(
        places: &Places,
        peers: &Peers,
        subject: Subject,
        profile: &str,
    ) -> anyhow::Result<Self> {
        let name = format!("ward-bench-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)
            .with_context(|| format!("{} could not be made", folder.display()))?;
        let is_root = folder.metadata()?.uid() == 0;
        let stage = Self { folder, is_root };
        fs::set_permissions(&stage.folder, PermissionsExt::from_mode(0o755))?;
        for name in ["bin", "users"] {
            fs::create_dir(stage.folder.join(name))?;
        }
        for name in subject.programs() {
            let to = stage.folder.join("bin").join(name);
            fs::copy(places.built(profile, name), to).with_context(|| (*name).to_owned())?;
        }
        for server in &peers.servers {
            let name = server.file_name().context("a server has no name")?;
            fs::copy(server, stage.folder.join(name))?;
        }
        take_over(&peers.node_modules, &stage.folder.join("node_modules"))?;
        if let Some(python) = &peers.python {
            stage.take_python(python)?;
        }
        if let Some(kernel) = &peers.kernel {
            kernel.take_over(&stage.folder)?;
        }
        println!("{}", stage.folder.display());
        Ok(stage)
    }

    /// Python may be somewhere that only its user can reach; it finds its own parts where it is.
    fn take_python(&self, python: &Python) -> anyhow::Result<()> {
        let Python {
            program,
            prefix,
            site,
        } = python;
        take_over(site, &self.folder.join("python-site"))?;
        let program = match program.strip_prefix(prefix) {
            Ok(below) if !prefix.starts_with("/usr") => {
                let home = self.folder.join("python");
                take_over(prefix, &home)?;
                home.join(below)
            }
            _ => program.clone(),
        };
        Ok(symlink(program, self.folder.join("python3"))?)
    }

    /// What measures as this user; none where it cannot be had.
    pub(crate) fn measure(&self, subject: Subject, user: User) -> anyhow::Result<Option<Command>> {
        let (id, name) = match user {
            User::Root if !self.is_root => return Ok(None),
            User::Root => (0, "root"),
            // One of its own, as the tests do it.
            User::Unprivileged => (1_000_000 + std::process::id(), "user"),
        };
        let own = self.folder.join("users").join(name);
        fs::create_dir_all(&own)?;
        for folder in ["home", "tmp", "work"] {
            fs::create_dir_all(own.join(folder))?;
        }
        for shared in SHARED.into_iter().chain(SERVERS) {
            if self.folder.join(shared).exists() {
                symlink(self.folder.join(shared), own.join(shared))?;
            }
        }
        let bench = self.folder.join("bin/bench");
        let mut command = if self.is_root && user == User::Unprivileged {
            for folder in ["home", "tmp", "work"] {
                chown(own.join(folder), Some(id), Some(id))?;
            }
            let mut command = run::program("setpriv", &own);
            command.args([format!("--reuid={id}"), format!("--regid={id}")]);
            command.args(["--clear-groups", "--"]).arg(bench);
            command
        } else {
            run::program(bench, &own)
        };
        command.arg(subject.word()).arg(own);
        Ok(Some(command))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Shows a tree under another name: by links where the disk is the same, else as a copy.
pub(crate) fn take_over(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            take_over(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
