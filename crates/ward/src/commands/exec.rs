//! `ward exec`: one command in the sandbox. A person's own command: no agent, so no gate.
//!
//! Its start is timed against other sandboxes, so it does nothing it need not: no async runtime,
//! no logging unless asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use sandbox::proxy::HostList;
use sandbox::{Command, End, Net, Outcome, Room, RoomOptions, SandboxError, Stdio, Wall};

use crate::cli::WARD_FAILED;
use crate::commands::exec_report;
use crate::duration::Span;
use crate::parent::Parent;
use crate::size::ByteSize;
use crate::{console, folders, settings, signals, workspace};

/// What a shell exits with where a program was found but cannot be run.
const NOT_EXECUTABLE: u8 = 126;
/// What a shell exits with where no program was found.
const NOT_FOUND: u8 = 127;

/// Run one command in the sandbox
///
/// The command sees the system, the toolchains and the workspace; it can write the workspace, a
/// private /tmp and a scratch home folder that is gone afterwards. It cannot read your keys, reach
/// the network (unless you name hosts) or leave anything running. Standard input, output and the
/// terminal pass through.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Exit codes:\n  \
    the command's own; 128+n where signal n ended it; 127 where it was not found, 126 where it\n  \
    cannot be executed; 125 where Ward itself failed, and then nothing has run.\n\n\
    Examples:\n  \
    ward exec -- cargo test\n  \
    ward exec --workspace ~/src/app --timeout 5m -- npm test\n  \
    ward exec --net github.com -- git fetch\n  \
    ward exec --memory 512M --pids 128 -- ./untrusted.sh")]
pub(crate) struct Args {
    /// The folder the command may write [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// How much memory it and all that it starts may use, such as 512M or 2G
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// How many processes and threads it may have at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pids: Option<u32>,

    /// When to end it, such as 500ms, 60s or 5m [default: never]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,

    /// Hosts it may reach by name, such as `github.com,db.example:5432`, or `none`
    ///
    /// A name without a port means the ports 80 and 443. The way is a proxy, which the usual
    /// variables name. `localhost` stays the command's own, unless a program is told to use the
    /// proxy for it: `curl --noproxy '' http://localhost:8080`.
    #[arg(long, value_name = "HOSTS", default_value = "none", value_parser = net)]
    net: Net,

    /// End when the process that started Ward does, however that ended
    #[arg(long)]
    until_parent_ends: bool,

    /// A folder of Ward's own, beside the usual ones, that the command may not reach
    #[arg(long, value_name = "DIR", hide = true)]
    own: Vec<PathBuf>,

    /// What stands behind Ward's words where it could not run the command, so that a program can tell
    /// that from a command that failed
    #[arg(long, value_name = "TEXT", hide = true)]
    mark: Option<String>,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Hosts as they are named on the command line.
pub(crate) fn net(text: &str) -> Result<Net, String> {
    if text == "none" {
        return Ok(Net::None);
    }
    HostList::parse(text)
        .map(Net::Hosts)
        .map_err(|error| error.to_string())
}

pub(crate) fn run(args: Args) -> ExitCode {
    let (timeout, mark) = (args.timeout, args.mark.clone());
    match execute(args) {
        Ok(outcome) => {
            for line in exec_report::lines(&outcome, timeout) {
                console::tell(&line);
            }
            code(outcome.end)
        }
        Err(error) => {
            let code = failure_code(&error);
            let is_unbegun = code == WARD_FAILED && !error.is::<Begun>();
            let mark = mark.filter(|_| is_unbegun);
            let mark = mark.map(|mark| format!(" [{mark}]")).unwrap_or_default();
            console::tell(&format!("{error:#}{mark}"));
            ExitCode::from(code)
        }
    }
}

fn execute(args: Args) -> anyhow::Result<Outcome> {
    let settings = settings::read()?;
    let workspace = workspace::find(args.workspace.as_deref())?;
    let cwd = std::env::current_dir()
        .ok()
        .filter(|here| here.starts_with(&workspace))
        .unwrap_or_else(|| workspace.clone());
    let mut limits = settings.limits;
    limits.memory = args.memory.map_or(limits.memory, |size| size.0);
    limits.pids = args.pids.unwrap_or(limits.pids);

    let parent = match args.until_parent_ends {
        true => Some(Parent::hold()?),
        false => None,
    };
    let mut own = folders::own()?;
    own.extend(args.own);
    let mut signals = signals::Signals::catch()?;
    let room = Room::open(RoomOptions {
        wall: Wall {
            workspace,
            net: args.net,
            limits,
        },
        state: folders::state()?,
        own,
        minimum: settings.minimum,
    })?;
    let running = room.spawn(Command {
        argv: args.command,
        cwd,
        env: Vec::new(),
        stdio: Stdio::Inherit,
        timeout: args.timeout.map(|span| span.0),
        widened: Vec::new(),
    })?;
    if let Some(parent) = parent {
        parent.end_with().map_err(|error| error.context(Begun))?;
    }
    Ok(running.wait_hearing(Some(&mut signals)))
}

/// That a command was begun before what failed did.
#[derive(Debug, thiserror::Error)]
#[error("The command was ended, because Ward could not be sure to end with who started it")]
struct Begun;

fn code(end: End) -> ExitCode {
    match end {
        // The kernel keeps eight bits of an exit code.
        End::Exited(code) => ExitCode::from((code & 0xff) as u8),
        End::Signalled(signal) => ExitCode::from(128u8.saturating_add((signal & 0x7f) as u8)),
    }
}

fn failure_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<SandboxError>() {
        Some(SandboxError::Exec {
            not_found: true, ..
        }) => NOT_FOUND,
        Some(SandboxError::Exec {
            not_found: false, ..
        }) => NOT_EXECUTABLE,
        _ => WARD_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_with_commas_between_and_none_is_none() {
        assert_eq!(net("none"), Ok(Net::None));
        let hosts = HostList::parse("a.org,b.org:8443").unwrap();
        assert_eq!(net("a.org, b.org:8443"), Ok(Net::Hosts(hosts)));
        for text in ["", ",", "a.org,"] {
            assert!(net(text).is_err(), "{text}");
        }
    }
}
