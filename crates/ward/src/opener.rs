//! Opens the page in the person's browser.

use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::folders;

/// A browser that can be asked to open something.
#[derive(Debug)]
pub(crate) struct Opener {
    page: PathBuf,
}

impl Opener {
    /// Where a person sits in front of it: a terminal, and a screen beside it.
    pub(crate) fn find() -> anyhow::Result<Option<Self>> {
        let screen = ["DISPLAY", "WAYLAND_DISPLAY"];
        let screen = screen
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if !screen || !std::io::stdout().is_terminal() {
            return Ok(None);
        }
        let name = format!("open-{}.html", std::process::id());
        Ok(Some(Self {
            page: folders::state()?.join(name),
        }))
    }

    /// Opens a link that signs in. Every user of the machine can read the arguments of a program,
    /// so the browser gets a page that only its owner can read, and which leads there.
    pub(crate) fn open(&self, link: &str) {
        let opened = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&self.page)?;
            write!(
                file,
                "<!doctype html><meta charset=utf-8><title>Ward</title>\
                 <meta http-equiv=refresh content=\"0; url={link}\"><a href=\"{link}\">Ward</a>"
            )?;
            tokio::process::Command::new("xdg-open")
                .arg(&self.page)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map(drop)
        };
        if let Err(error) = opened() {
            tracing::info!(%error, "the browser could not be opened");
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        // Where it was never made there is nothing to take away.
        let _ = std::fs::remove_file(&self.page);
    }
}
