//! Signals that end things: they end the confined command first, then Ward, so that nothing is
//! left behind.

use std::thread;

use anyhow::Context as _;
use sandbox::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// The signals, from now on caught instead of ending this process.
pub(crate) struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    /// Catches them. Before a command is started, so that none falls into the gap.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        SignalsInfo::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
            .map(Self)
            .context("Ward could not prepare for signals")
    }

    /// Ends the command when one arrives: the first asks, the second does not.
    ///
    /// What a person types at a terminal (Ctrl-C, Ctrl-\) the terminal gives to the command as
    /// well, which may have its own use for it: that one is left to the command.
    pub(crate) fn pass_on_to(mut self, stopper: Stopper) -> anyhow::Result<()> {
        let watch = move || {
            let mut asked = false;
            for origin in self.0.forever() {
                let typed = origin.cause == Cause::Kernel && origin.signal != SIGHUP;
                match (typed, asked) {
                    (true, _) => {}
                    (false, false) => stopper.stop(),
                    (false, true) => stopper.kill(),
                }
                asked |= !typed;
            }
        };
        thread::Builder::new()
            .name("signals".into())
            .stack_size(64 * 1024)
            .spawn(watch)
            .context("Ward could not watch for signals")?;
        Ok(())
    }
}
