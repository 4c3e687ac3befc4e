//! From parameters to a command: the words, the folder, the environment, and the facts of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::facts::CommandFact;
use protocol::wall::{Widen, WidenAccess};
use protocol::{ErrorKind, Facts, Failure, Mode};
use sandbox::{Stdio, WidenedAccess, Widening};

use crate::context::Context;

/// Shells to read a command line, the best first.
const SHELLS: &[&str] = &["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// What was asked to run, in whichever of the two ways.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) command: Option<&'a str>,
    pub(crate) argv: Option<&'a [String]>,
    pub(crate) cwd: Option<&'a str>,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) otherwise: Otherwise,
}

/// What runs where nothing was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Nothing: it has to be named.
    Refuse,
    /// An interactive shell.
    Shell,
}

/// A command that can be started.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) fact: CommandFact,
    cwd: PathBuf,
    widened: Vec<Widening>,
}

/// Works out what would run. Blocks for a few system calls.
pub(crate) fn resolve(context: &Context, asked: Asked<'_>) -> Result<Resolved, Failure> {
    let (line, argv) = words(asked)?;
    if let Some(name) = asked
        .env
        .keys()
        .find(|name| name.is_empty() || name.contains(['=', '\0']))
    {
        return Err(Failure::new(
            ErrorKind::InvalidParams,
            format!(
                "`{name}` cannot be the name of an environment variable: it is empty or holds `=` or a NUL byte."
            ),
        ));
    }
    let cwd = context.grounds.working_folder(asked.cwd.unwrap_or("."))?;
    let path = asked.env.get("PATH").map(OsString::from);
    let program = find_program(&argv[0], &cwd, path.or_else(|| std::env::var_os("PATH")));
    let fact = CommandFact {
        line,
        argv,
        program: program.map(|path| path.to_string_lossy().into_owned()),
        cwd: cwd.to_string_lossy().into_owned(),
        env: asked.env.clone(),
    };
    let mut widened = Vec::new();
    if let Some(permit) = context.grounds.permit() {
        permit.refuse_other_command(&fact)?;
        if permit.mode() == Mode::Sandbox {
            widened = permit.wall().widen.iter().map(widening).collect();
        }
    }
    Ok(Resolved { fact, cwd, widened })
}

impl Resolved {
    pub(crate) fn facts(self) -> Facts {
        Facts {
            command: Some(self.fact),
            ..Facts::default()
        }
    }

    /// What a person would have typed.
    pub(crate) fn shown(&self) -> String {
        match &self.fact.line {
            Some(line) => line.clone(),
            None => self.fact.argv.join(" "),
        }
    }

    pub(crate) fn command(&self, stdio: Stdio, timeout_ms: Option<u64>) -> sandbox::Command {
        sandbox::Command {
            argv: self.fact.argv.iter().map(OsString::from).collect(),
            cwd: self.cwd.clone(),
            env: self
                .fact
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            stdio,
            timeout: timeout_ms.map(std::time::Duration::from_millis),
            widened: self.widened.clone(),
        }
    }
}

fn widening(asked: &Widen) -> Widening {
    Widening {
        path: PathBuf::from(&asked.path),
        access: match asked.access {
            WidenAccess::Read => WidenedAccess::Read,
            WidenAccess::Write => WidenedAccess::Write,
        },
    }
}

fn words(asked: Asked<'_>) -> Result<(Option<String>, Vec<String>), Failure> {
    let refuse = |sentence: &str| Err(Failure::new(ErrorKind::InvalidParams, sentence));
    match (asked.command, asked.argv, asked.otherwise) {
        (Some(_), Some(_), _) => {
            refuse("Give `command` (a line for the shell) or `argv` (the words), not both.")
        }
        (None, None, Otherwise::Refuse) => {
            refuse("Say what to run: `command` (a line for the shell) or `argv` (the words).")
        }
        (None, None, Otherwise::Shell) => Ok((None, vec![shell(), "-i".into()])),
        (Some(line), None, _) if line.trim().is_empty() => {
            refuse("`command` is empty. Give a line for the shell.")
        }
        (Some(line), None, _) => Ok((
            Some(line.to_owned()),
            vec![shell(), "-c".into(), line.to_owned()],
        )),
        (None, Some(argv), _) if argv.first().is_none_or(String::is_empty) => {
            refuse("`argv` has no program. Give its name as the first word.")
        }
        (None, Some(argv), _) => Ok((None, argv.to_vec())),
    }
}

fn shell() -> String {
    let found = SHELLS.iter().find(|shell| Path::new(shell).exists());
    (*found.unwrap_or(&"/bin/sh")).to_owned()
}

/// The real path of the program that these words would start.
fn find_program(word: &str, cwd: &Path, path: Option<OsString>) -> Option<PathBuf> {
    if word.contains('/') {
        return executable(&cwd.join(word));
    }
    std::env::split_paths(path.as_deref().unwrap_or(OsStr::new("/usr/bin:/bin")))
        .find_map(|folder| executable(&cwd.join(folder).join(word)))
}

fn executable(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let metadata = real.metadata().ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(real)
}
