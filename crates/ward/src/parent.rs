//! The process that started this one, and ending with it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};

/// How long what runs has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The process that started this one. By a descriptor: its number can be another's once it has ended.
pub(crate) struct Parent(OwnedFd);

impl Parent {
    /// Takes hold of it.
    pub(crate) fn hold() -> anyhow::Result<Self> {
        let Some(parent) = getppid() else {
            bail!(
                "The process that started Ward cannot be seen from here, so Ward cannot end with it."
            );
        };
        let held = pidfd_open(parent, PidfdFlags::empty())
            .context("Ward cannot end with the process that started it")?;
        // It may have ended just before, and left its number to another.
        if getppid() != Some(parent) {
            bail!("The process that started Ward has ended.");
        }
        Ok(Self(held))
    }

    /// Sends this process the signals that end what it runs, once the parent has ended: the first
    /// asks, the second does not.
    pub(crate) fn end_with(self) -> anyhow::Result<()> {
        std::thread::Builder::new()
            .name("parent".into())
            .spawn(move || {
                while let Err(Errno::INTR) = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None)
                {
                }
                for _ in 0..2 {
                    // A process can always signal itself.
                    let _ = kill_process(getpid(), Signal::TERM);
                    std::thread::sleep(GRACE);
                }
            })
            .map(drop)
            .context("Ward could not start its threads")
    }
}
