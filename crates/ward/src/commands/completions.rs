//! `ward completions`: what a shell needs to complete Ward's arguments.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward completions bash > ~/.local/share/bash-completion/completions/ward\n  \
    ward completions zsh > \"${fpath[1]}/_ward\"\n  \
    ward completions fish > ~/.config/fish/completions/ward.fish")]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::cli::Cli::command(),
        "ward",
        &mut script,
    );
    std::io::stdout()
        .lock()
        .write_all(&script)
        .context("The completions could not be written")?;
    Ok(ExitCode::SUCCESS)
}
