//! A real ipykernel in a real room: what cells show, what stops them, and what they cannot reach.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose functions are not marked as such"
)]

mod ends;
mod escapes;
mod outputs;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() -> std::process::ExitCode {
    sandbox::enter_if_holder();
    let mut trials = Vec::new();
    trials.extend(outputs::trials());
    trials.extend(ends::trials());
    trials.extend(escapes::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The tests of a module, each with an event loop of its own.
#[macro_export]
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::trial(concat!(module_path!(), "::", stringify!($name)), || Box::pin($name())),)*]
        }
    };
}

type Test = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn trial(name: &str, test: fn() -> Test) -> Trial {
    let name = name.trim_start_matches("kernels::");
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(test());
        Ok(())
    })
}
