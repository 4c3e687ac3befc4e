//! Signals that end things: they end the confined command first, then Ward, so that nothing is
//! left behind.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use sandbox::{Interrupt, Interrupts};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// The signals, from now on caught instead of ending this process: the first asks the command to
/// end, the second does not.
///
/// What a person types at a terminal (Ctrl-C, Ctrl-\) the terminal gives to the command as well,
/// which may have its own use for it: that one is left to the command.
pub(crate) struct Signals {
    caught: SignalDelivery<UnixStream, WithOrigin>,
    asked: bool,
}

impl Signals {
    /// Catches them. Before a command is started, so that none falls into the gap.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        let catch =
            |(read, write)| SignalDelivery::with_pipe(read, write, WithOrigin::default(), signals);
        let caught = UnixStream::pair().and_then(catch);
        Ok(Self {
            caught: caught.context("Ward could not prepare for signals")?,
            asked: false,
        })
    }
}

impl Interrupts for Signals {
    fn heard(&self) -> BorrowedFd<'_> {
        self.caught.get_read().as_fd()
    }

    fn next(&mut self) -> Option<Interrupt> {
        let typed = |cause, signal| cause == Cause::Kernel && signal != SIGHUP;
        let sent = self.caught.pending();
        let sent = sent.filter(|origin| !typed(origin.cause, origin.signal));
        if sent.count() == 0 {
            return None;
        }
        let again = std::mem::replace(&mut self.asked, true);
        Some(if again {
            Interrupt::Kill
        } else {
            Interrupt::Ask
        })
    }
}
