//! `ward roles`: who agents can be here, what each may do, and what is wrong with their files.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use gate::files::Files;
use policy::Role;
use serde::Serialize;

use super::policy_files::{self, is_error};
use crate::console::printable;
use crate::workspace;

/// List the roles, or check their files
///
/// Roles are Markdown files: Ward's own, those in ~/.config/ward/roles, and those in .ward/roles
/// and .claude/agents of the workspace, which cannot be used until the workspace is trusted
/// (`ward trust`).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward roles list\n  \
    ward roles check --workspace ~/src/app")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show every role and what it may do
    List {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
        /// The folder whose roles count as well [default: the current one]
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Show every mistake in role, skill and rule files
    Check {
        /// The folder whose files are checked as well [default: the current one]
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::List { json, workspace } => {
            let files = policy_files::read(&workspace::find(workspace.as_deref())?)?;
            if *json {
                list_json(&files)
            } else {
                list(&files)
            }
        }
        What::Check { workspace } => check(&policy_files::read(&workspace::find(
            workspace.as_deref(),
        )?)?),
    }
}

fn list(files: &Files) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for role in files.roles.iter() {
        let skills: Vec<String> = role
            .skills
            .iter()
            .map(|skill| skill.pattern.to_string())
            .collect();
        let skills = match skills.is_empty() {
            true => "nothing".to_owned(),
            false => skills.join(", "),
        };
        let origin = &role.origin;
        let title = format!("{}  {}", role.name, printable(&role.description));
        writeln!(out, "{}", title.trim_end())?;
        writeln!(out, "  mode   {}", role.mode)?;
        writeln!(out, "  may    {}", printable(&skills))?;
        writeln!(
            out,
            "  from   {} ({})",
            printable(&origin.file),
            origin.source.as_str()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    description: &'a str,
    model: Option<&'a str>,
    provider: Option<&'a str>,
    mode: policy::Mode,
    skills: Vec<&'a str>,
    limits: &'a policy::role::Limits,
    origin: &'a policy::Origin,
}

impl<'a> From<&'a Role> for Listed<'a> {
    fn from(role: &'a Role) -> Self {
        Self {
            name: role.name.as_str(),
            description: &role.description,
            model: role.model.as_deref(),
            provider: role.provider.as_deref(),
            mode: role.mode,
            skills: role
                .skills
                .iter()
                .map(|skill| skill.pattern.as_str())
                .collect(),
            limits: &role.limits,
            origin: &role.origin,
        }
    }
}

fn list_json(files: &Files) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let roles: Vec<Listed<'_>> = files.roles.iter().map(Listed::from).collect();
    serde_json::to_writer_pretty(&mut out, &roles)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

fn check(files: &Files) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mistakes = &files.mistakes;
    for mistake in mistakes {
        let weight = if is_error(mistake) { "error" } else { "note" };
        writeln!(out, "{weight}: {}", printable(&mistake.to_string()))?;
    }
    let errors = mistakes.iter().filter(|mistake| is_error(mistake)).count();
    let roles = files.roles.iter().count();
    // A rule that denies may be among those that could not be read.
    let stops = !files.refused().is_empty();
    let until = match errors {
        _ if stops => "nothing is decided here: every action is refused",
        1 => "its file is not used",
        _ => "their files are not used",
    };
    match errors {
        0 => writeln!(out, "{roles} roles can be read.")?,
        1 => writeln!(out, "1 mistake has to be put right; until then {until}.")?,
        errors => writeln!(
            out,
            "{errors} mistakes have to be put right; until then {until}."
        )?,
    }
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
