//! Every chore of the project, so that there are no scripts to keep: `cargo xtask serve`,
//! `cargo xtask test`, `cargo xtask ui`, `cargo xtask wasm`, `cargo xtask vsix`, `cargo xtask bench`.
//!
//! What a chore needs beyond Rust, Node and a C compiler it gets itself, and keeps outside the
//! checkout (see [`cache`]).
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore speaks to the person who runs it"
)]

mod bench;
mod cache;
mod needs;
mod package;
mod run;
mod schemathesis;
mod serve;
mod steps;
mod test;
mod tools;
mod ui;
mod venv;
mod vsix;
mod wasm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Ward's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Build what is missing and start Ward on 127.0.0.1:3000
    Serve(serve::Args),
    /// Install what the tests need, then check the format, the lints and run every test
    Test(test::Args),
    /// Build the page, which the next build of Ward takes in
    Ui(ui::Args),
    /// Build what the page shares with Ward, for wasm32, into its npm package
    Wasm(wasm::Args),
    /// Package the VS Code extension
    Vsix(vsix::Args),
    /// Measure Ward beside its peers
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Serve(args) => serve::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::Ui(args) => ui::run(&args),
        Chore::Wasm(args) => wasm::run(&args),
        Chore::Vsix(args) => vsix::run(&args),
        Chore::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
