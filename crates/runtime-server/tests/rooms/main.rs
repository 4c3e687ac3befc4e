//! The runtime from the outside, with real rooms: what a client asks, what it is told, and what is
//! running on the machine afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test whose functions are not marked as such"
)]

mod asking;
mod background;
mod ending;
mod gated;
mod listen;
mod once;
mod pty;
mod run;
mod sessions;
mod streaming;
mod support;
mod trusted;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    sandbox::enter_if_holder();
    let mut trials = Vec::new();
    trials.extend(run::trials());
    trials.extend(streaming::trials());
    trials.extend(background::trials());
    trials.extend(pty::trials());
    trials.extend(once::trials());
    trials.extend(ending::trials());
    trials.extend(gated::trials());
    trials.extend(trusted::trials());
    trials.extend(asking::trials());
    trials.extend(sessions::trials());
    trials.push(sessions::with_time_standing_still());
    trials.extend(listen::trials());
    trials.push(listen::with_time_standing_still());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The tests of a module, each with an event loop of its own.
#[macro_export]
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::trial(concat!(module_path!(), "::", stringify!($name)), $name()),)*]
        }
    };
}

fn trial(name: &str, test: impl Future<Output = ()> + Send + 'static) -> Trial {
    let name = name.trim_start_matches("rooms::");
    Trial::test(name, || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(test);
        Ok(())
    })
}
