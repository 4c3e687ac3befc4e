//! A kernel's own terminal: what it prints there is read, so that it never waits, and the end of it
//! is kept for when it dies. A Ctrl-C there is how it is interrupted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// How much of it is kept.
const KEPT: usize = 4096;
/// How long what a kernel that is gone has printed may take to be read.
const READ: Duration = Duration::from_secs(1);

/// A kernel's terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
    last: Arc<Mutex<VecDeque<u8>>>,
    /// Closed when all is read.
    reading: watch::Receiver<()>,
}

impl Terminal {
    /// Reads on in a thread of its own until the kernel is gone.
    pub(crate) fn watch(file: File) -> std::io::Result<Self> {
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let mut reader = file.try_clone()?;
        let kept = Arc::clone(&last);
        let (reads, reading) = watch::channel(());
        std::thread::Builder::new()
            .name("kernel-terminal".into())
            .spawn(move || {
                let mut bytes = [0; 4096];
                // The end of a terminal is an error; so is any other end of it.
                while let Ok(read @ 1..) = reader.read(&mut bytes) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend(&bytes[..read]);
                    let over = kept.len().saturating_sub(KEPT);
                    kept.drain(..over);
                }
                drop(reads);
            })?;
        Ok(Self {
            file,
            last,
            reading,
        })
    }

    /// Ctrl-C: the kernel, and what it runs in its own group, are interrupted.
    pub(crate) fn interrupt(&self) -> std::io::Result<()> {
        (&self.file).write_all(b"\x03")
    }

    /// The last lines that a kernel printed which is gone.
    pub(crate) async fn last_lines(&self) -> String {
        let mut reading = self.reading.clone();
        let _ = tokio::time::timeout(READ, reading.changed()).await;
        let kept = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let printable = |letter: &char| *letter == '\n' || !letter.is_control();
        let text: String = text.chars().filter(printable).collect();
        let lines: Vec<&str> = text.trim().lines().rev().take(6).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        lines.join("\n")
    }
}
