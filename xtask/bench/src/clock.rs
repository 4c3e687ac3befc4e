//! Times a command from where it runs: inside a sandbox the start of the sandbox is then not part
//! of it.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often; each time is a line, in nanoseconds
    #[arg(long, default_value_t = 1)]
    runs: usize,

    /// A line for the shell to be run before each, untimed
    #[arg(long)]
    before: Option<String>,

    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (program, arguments) = args.command.split_first().context("there is no command")?;
    for _ in 0..args.runs {
        if let Some(line) = &args.before {
            let status = Command::new("sh").arg("-c").arg(line).status()?;
            if !status.success() {
                bail!("`{line}` failed ({status})");
            }
        }
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        let started = Instant::now();
        // Its output goes through pipes: grep stops early where it sees /dev/null.
        let output = command.output()?;
        let took = started.elapsed();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "`{}` failed ({}): {}",
                program.display(),
                output.status,
                said.trim()
            );
        }
        println!("{}", took.as_nanos());
    }
    Ok(())
}
