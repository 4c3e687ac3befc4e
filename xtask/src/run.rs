//! Running programs: what they are called, where, and what to do when they fail.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// A program in a folder of the checkout.
pub(crate) fn program(name: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder);
    command
}

/// The cargo that runs this. It is not told what cargo told this program about itself: build scripts
/// that look at it would run again each time a build is started from here or by hand.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = program(
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        folder,
    );
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it to its end; `advice` is what to do where it fails.
pub(crate) fn run(command: &mut Command, advice: &str) -> anyhow::Result<()> {
    println!("$ {}", line(command));
    let status = command
        .status()
        .with_context(|| format!("`{}` could not be started", command.get_program().display()))?;
    if !status.success() {
        bail!("`{}` failed ({status}). {advice}", line(command));
    }
    Ok(())
}

/// Whether it runs and succeeds; what it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What it prints.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{}` could not be started", command.get_program().display()))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(command), output.status);
    }
    String::from_utf8(output.stdout).context("its output is not text")
}

/// Whether a program of this name is on the PATH.
pub(crate) fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![
        program
            .file_name()
            .unwrap_or(program.as_os_str())
            .display()
            .to_string(),
    ];
    words.extend(command.get_args().map(|word| word.display().to_string()));
    words.join(" ")
}
