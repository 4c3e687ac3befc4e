//! The arguments, and which sub-command they ask for.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    approvals, aside, chat, completions, doctor, exec, gate, grants, ledger, models, notebook,
    openapi, policy, roles, run, runtime, serve, tokens, trust, undo,
};
use crate::{console, log};

/// What Ward exits with where it failed itself, for `ward exec`: what `env`, `timeout` and others
/// that run a command also use, so that it is not taken for the command's own.
pub(crate) const WARD_FAILED: u8 = 125;

/// The gate between AI agents and the places where they act.
#[derive(Debug, Parser)]
#[command(
    name = "ward",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    long_about = "The gate between AI agents and the places where they act.\n\n\
        An agent asks for an action. Ward checks its role and your rules, asks you where it must, \
        and runs the action behind walls that the kernel holds: the workspace can be written, the \
        rest of the machine cannot, your keys cannot be read, and there is no network but the \
        hosts you allow. What was asked, decided, answered and done is in a ledger that nobody \
        can quietly change.",
    after_long_help = "Examples:\n  \
        ward chat                                 talk with an agent in this terminal\n  \
        ward exec -- npm test                     run one command in the sandbox\n  \
        ward exec --net github.com -- git fetch   … with one host that it may reach\n  \
        ward doctor                               what the sandbox can hold on this machine\n  \
        ward serve                                the gate on http://127.0.0.1:3000\n  \
        ward run \"read README.md\"                 one agent does one task\n  \
        ward tokens add --role backend            a token for an agent\n  \
        ward approvals watch                      answer what agents ask for\n  \
        ward ledger verify                        whether anybody changed the record\n\n\
        Settings are read from ~/.config/ward/settings.toml; `ward doctor` names the file in use."
)]
pub(crate) struct Cli {
    /// What to log to standard error: error, warn, info, debug or trace
    ///
    /// A level for all of Ward, or parts with their own: `info,sandbox=debug`. The default is
    /// `warn`.
    #[arg(long, global = true, env = "WARD_LOG", value_name = "LEVEL", value_parser = log::parse)]
    #[arg(hide_env_values = true, display_order = 900)]
    log: Option<log::Filter>,

    #[command(subcommand)]
    command: Command,
}

/// What Ward can be asked to do.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Chat(chat::Args),
    Run(run::Args),
    Exec(exec::Args),
    Runtime(runtime::Args),
    Gate(gate::Args),
    Approvals(approvals::Args),
    Grants(grants::Args),
    Ledger(ledger::Args),
    Undo(undo::Args),
    Models(models::Args),
    Notebook(notebook::Args),
    Roles(roles::Args),
    Policy(policy::Args),
    Trust(trust::Args),
    Tokens(tokens::Args),
    Aside(aside::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Openapi(openapi::Args),
}

/// The same with one sub-command alone. Describing every one takes longer, and more memory, than
/// reading the arguments of those that are started often.
#[derive(Debug, Parser)]
#[command(name = "ward", disable_help_subcommand = true)]
struct OneCli<C: Subcommand> {
    #[arg(long, global = true, env = "WARD_LOG", value_parser = log::parse)]
    log: Option<log::Filter>,

    #[command(subcommand)]
    command: C,
}

#[derive(Debug, Subcommand)]
enum OnlyExec {
    Exec(exec::Args),
}

#[derive(Debug, Subcommand)]
enum OnlyRuntime {
    Runtime(runtime::Args),
}

impl From<OnlyExec> for Command {
    fn from(OnlyExec::Exec(args): OnlyExec) -> Self {
        Self::Exec(args)
    }
}

impl From<OnlyRuntime> for Command {
    fn from(OnlyRuntime::Runtime(args): OnlyRuntime) -> Self {
        Self::Runtime(args)
    }
}

/// Reads the arguments. What is not plainly one of the few, mistakes and questions for help too, is
/// read by the parser that knows everything.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let quick = match arguments.get(1).and_then(|word| word.to_str()) {
        Some("exec") => parse_one::<OnlyExec>(arguments),
        Some("runtime") => parse_one::<OnlyRuntime>(arguments),
        _ => None,
    };
    quick.map_or_else(|| Cli::try_parse_from(arguments), Ok)
}

fn parse_one<C: Subcommand + Into<Command>>(arguments: &[OsString]) -> Option<Cli> {
    let OneCli { log, command } = OneCli::<C>::try_parse_from(arguments).ok()?;
    Some(Cli {
        log,
        command: command.into(),
    })
}

/// Reads the arguments and runs what they ask for.
pub(crate) fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" that succeed. Where even this cannot be written there
            // is nobody left to tell.
            let _ = error.print();
            return match (error.exit_code(), asked_for_exec(&arguments)) {
                (0, _) => ExitCode::SUCCESS,
                (_, true) => ExitCode::from(WARD_FAILED),
                (_, false) => ExitCode::from(2),
            };
        }
    };
    match cli.command {
        // The one that is timed: it starts no logging unless that was asked for.
        Command::Exec(args) => {
            if let Some(filter) = cli.log {
                log::start(filter);
            }
            exec::run(args)
        }
        Command::Serve(args) => finish(cli.log, || serve::run(args)),
        Command::Chat(args) => finish(cli.log, || chat::run(args)),
        Command::Run(args) => finish(cli.log, || run::run(args)),
        Command::Models(args) => finish(cli.log, || models::run(args)),
        Command::Notebook(args) => finish(cli.log, || notebook::run(args)),
        Command::Runtime(args) => finish(cli.log, || runtime::run(args)),
        Command::Gate(args) => finish(cli.log, || gate::run(&args)),
        Command::Approvals(args) => finish(cli.log, || approvals::run(args)),
        Command::Grants(args) => finish(cli.log, || grants::run(args)),
        Command::Ledger(args) => finish(cli.log, || ledger::run(args)),
        Command::Undo(args) => finish(cli.log, || undo::run(args)),
        Command::Tokens(args) => finish(cli.log, || tokens::run(args)),
        Command::Roles(args) => finish(cli.log, || roles::run(&args)),
        Command::Policy(args) => finish(cli.log, || policy::run(args)),
        Command::Trust(args) => finish(cli.log, || trust::run(&args)),
        Command::Aside(args) => finish(cli.log, || aside::run(&args)),
        Command::Doctor(args) => finish(cli.log, || doctor::run(&args)),
        Command::Completions(args) => finish(cli.log, || completions::run(&args)),
        Command::Openapi(args) => finish(cli.log, || openapi::run(&args)),
    }
}

/// Runs a sub-command that has no exit code of its own.
fn finish(
    log: Option<log::Filter>,
    command: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> ExitCode {
    log::start(log.unwrap_or_default());
    match command() {
        Ok(code) => code,
        // Whoever read it had enough, as `head` has: that is no failure.
        Err(error) if console::is_unread(&error) => ExitCode::SUCCESS,
        Err(error) => {
            console::tell(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether these arguments, which could not be read, were meant for `ward exec`, whose exit codes
/// are the command's.
fn asked_for_exec(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .skip(1)
        .take_while(|word| *word != "--")
        .any(|word| word == "exec")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent_with_themselves() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_started_often_is_read_alike_by_both_parsers() {
        let lines = [
            "ward exec true",
            "ward exec -- sh -c x",
            "ward exec --log debug --memory 1G --pids 9 --timeout 5s --net a.org -- x --help",
            "ward exec --workspace / ls --version",
            "ward exec",
            "ward exec --help",
            "ward exec --pids 0 x",
            "ward exec --no-such-flag x",
            "ward --log debug exec x",
            "ward doctor",
            "ward runtime --stdio",
            "ward runtime --gated --stdio --own /x --workspace /y",
            "ward runtime --log info --listen 127.0.0.1:0 --allow-remote --token t",
            "ward runtime",
            "ward runtime --help",
            "ward runtime --gated --listen 127.0.0.1:0",
            "ward runtime --stdio --listen 127.0.0.1:0",
            "ward runtime --stdio --no-such-flag",
        ];
        for line in lines {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let told = |read: Result<Cli, clap::Error>| match read {
                Ok(cli) => format!("{cli:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(
                told(parse(&words)),
                told(Cli::try_parse_from(&words)),
                "{line}"
            );
        }
    }
}
