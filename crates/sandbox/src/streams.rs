//! The two sides of a command's standard streams.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::command::Stdio;

/// The two sides of a command's standard streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) theirs: Vec<OwnedFd>,
    pub(crate) stdin: Option<File>,
    pub(crate) stdout: Option<File>,
    pub(crate) stderr: Option<File>,
}

impl Streams {
    pub(crate) fn make(stdio: Stdio) -> std::io::Result<Self> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        match stdio {
            Stdio::Pty { .. } => Ok(Self::default()),
            Stdio::Inherit => {
                let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned();
                let theirs = vec![
                    copy(std::io::stdin().as_fd())?,
                    copy(std::io::stdout().as_fd())?,
                    copy(std::io::stderr().as_fd())?,
                ];
                Ok(Self {
                    theirs,
                    ..Self::default()
                })
            }
            Stdio::Piped { stdin } => {
                let (input, stdin) = if stdin {
                    let (read, write) = pipe()?;
                    (read, Some(File::from(write)))
                } else {
                    (OwnedFd::from(File::open("/dev/null")?), None)
                };
                let ((stdout, output), (stderr, error)) = (pipe()?, pipe()?);
                Ok(Self {
                    theirs: vec![input, output, error],
                    stdin,
                    stdout: Some(stdout.into()),
                    stderr: Some(stderr.into()),
                })
            }
        }
    }
}
