//! Running the built `ward` in a home folder of its own.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A home folder and a workspace that are gone after the test.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// The workspace, which is also where commands are started.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where `ward serve` keeps its store.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join(".local/share/ward")
    }

    /// Where settings, rules and tokens are.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join(".config/ward")
    }

    /// Writes the settings file.
    pub(crate) fn settings(&self, text: &str) {
        let folder = self.config();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("settings.toml"), text).unwrap();
    }

    /// `ward`, knowing nothing of the environment of whoever runs the test.
    pub(crate) fn ward(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ward"));
        command
            .env_clear()
            .envs(self.environment())
            .current_dir(self.workspace());
        command
    }

    /// All that `ward` knows of the environment.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", self.folder.path().to_owned()),
        ]
    }

    /// Arguments in; exit code, standard output and standard error out.
    pub(crate) fn transcript(&self, arguments: &[&str]) -> String {
        let output = self.ward().args(arguments).output().unwrap();
        transcript(arguments, &output, self.folder.path())
    }
}

fn transcript(arguments: &[&str], output: &Output, home: &Path) -> String {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace(home.to_str().unwrap(), "[HOME]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
    };
    format!(
        "$ ward {}\n{}\n── stdout ──\n{}── stderr ──\n{}",
        arguments.join(" "),
        output.status,
        text(&output.stdout),
        text(&output.stderr),
    )
}
