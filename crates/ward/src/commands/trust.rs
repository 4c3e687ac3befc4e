//! `ward trust`: shows what a workspace's roles and rules would allow, and remembers that the
//! person has said yes to exactly that.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use gate::files::{Files, Trust, Trusted};
use policy::{Source, Verdict};

use super::policy_files::sound;
use crate::console::printable;
use crate::folders;

/// Trust what a workspace's roles and rules allow
///
/// The roles, skills and allow rules that a workspace brings along (ward.toml, .ward, .claude/agents
/// and .claude/skills) count only once you have trusted them, and no longer when any of them
/// changes. Its deny and ask rules always count. Nothing in a workspace beats a rule of your own
/// that denies or asks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward trust                  show what this folder would allow, and ask\n  \
    ward trust ~/src/app --yes  trust it as it is\n  \
    ward trust --list\n  \
    ward trust --revoke ~/src/app")]
pub(crate) struct Args {
    /// The workspace [default: the current folder]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Show the workspaces that you have trusted
    #[arg(long, conflicts_with_all = ["folder", "yes", "revoke"])]
    list: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = folders::config()?;
    if args.list {
        return list(&config);
    }
    if args.revoke {
        return revoke(&config, args.folder.as_deref());
    }
    let workspace = real(args.folder.as_deref())?;
    let files = Files::read_as_trusted(&config, &workspace)?;
    let trust = Trust::read(&config)?;
    let mut out = std::io::stdout().lock();
    let shown = printable(&workspace.to_string_lossy());
    let Some(found) = &files.found else {
        sound(&files)?;
        writeln!(
            out,
            "{shown} has no roles and no rules: there is nothing to trust."
        )?;
        return Ok(ExitCode::SUCCESS);
    };
    sound(&files).with_context(|| format!("{shown} cannot be trusted before this is put right"))?;
    let before = trust.of(&workspace);
    if before.is_some_and(|before| before.digest == found.digest) {
        writeln!(out, "{shown} is trusted as it is.")?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&mut out, &shown, &files, found, before)?;
    out.flush()?;
    if !args.yes && !agreed()? {
        writeln!(
            out,
            "Nothing has changed: its deny and ask count, nothing else."
        )?;
        return Ok(ExitCode::FAILURE);
    }
    Trust::add(&config, &workspace, found.clone())?;
    writeln!(out, "{shown} is trusted, until one of these files changes.")?;
    Ok(ExitCode::SUCCESS)
}

fn show(
    out: &mut impl std::io::Write,
    shown: &str,
    files: &Files,
    found: &Trusted,
    before: Option<&Trusted>,
) -> anyhow::Result<()> {
    let had = |line: &String| before.is_none_or(|before| before.allows.contains(line));
    match found.allows.as_slice() {
        [] => writeln!(
            out,
            "{shown} would allow nothing that is not allowed anyway."
        )?,
        lines => {
            writeln!(out, "{shown} would allow:")?;
            for line in lines {
                let mark = if had(line) { "" } else { "new" };
                writeln!(out, "  {mark:<8}{}", printable(line))?;
            }
        }
    }
    let gone = before.iter().flat_map(|before| &before.allows);
    for line in gone.filter(|line| !found.allows.contains(line)) {
        writeln!(out, "  {:<8}{}", "gone", printable(line))?;
    }
    writeln!(out, "It is written in:")?;
    for (name, digest) in &found.files {
        let mark = match before.map(|before| before.files.get(name)) {
            None => "",
            Some(None) => "new",
            Some(Some(old)) if old == digest => "",
            Some(Some(_)) => "changed",
        };
        writeln!(out, "  {mark:<8}{}", printable(name))?;
    }
    let built_in = policy::builtin::roles();
    let replaces = |role: &&policy::Role| {
        role.origin.source == Source::Trusted && built_in.get(role.name.as_str()).is_ok()
    };
    for role in files.roles.iter().filter(replaces) {
        writeln!(out, "Its role {} takes the place of Ward's own.", role.name)?;
    }
    let restricts = files
        .rules
        .iter()
        .filter(|rule| rule.origin.source == Source::Trusted && rule.verdict != Verdict::Allow);
    match restricts.count() {
        0 => {}
        1 => writeln!(
            out,
            "It has 1 rule that denies or asks, which counts already."
        )?,
        many => writeln!(
            out,
            "It has {many} rules that deny or ask, which count already."
        )?,
    }
    for mistake in &files.mistakes {
        writeln!(out, "Mistake: {}", printable(&mistake.to_string()))?;
    }
    Ok(())
}

/// Asks the person in front; nobody there is not yes.
fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "Nobody can be asked here, so nothing is trusted. Run `ward trust` in a terminal, or look at the files and add --yes."
        );
    }
    let mut err = std::io::stderr().lock();
    write!(err, "Trust it? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

fn list(config: &Path) -> anyhow::Result<ExitCode> {
    let trust = Trust::read(config)?;
    let mut out = std::io::stdout().lock();
    if trust.iter().next().is_none() {
        writeln!(out, "No workspace is trusted.")?;
    }
    for (path, trusted) in trust.iter() {
        let state = match Files::read(config, Path::new(path), &trust) {
            Ok(files) => match files.found {
                Some(found) if found.digest == trusted.digest => "trusted",
                Some(_) | None => "changed",
            },
            Err(_) => "gone",
        };
        writeln!(out, "{state:<8}{}", printable(path))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(config: &Path, folder: Option<&Path>) -> anyhow::Result<ExitCode> {
    // One that is gone can be forgotten too.
    let workspace = match (real(folder), folder) {
        (Ok(workspace), _) => workspace,
        (Err(_), Some(folder)) => std::path::absolute(folder)?,
        (Err(error), None) => return Err(error),
    };
    let was_there = Trust::revoke(config, &workspace)?;
    let shown = printable(&workspace.to_string_lossy());
    let mut out = std::io::stdout().lock();
    match was_there {
        true => writeln!(out, "{shown} is no longer trusted.")?,
        false => writeln!(out, "{shown} was not trusted.")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The real path, under which it is remembered.
fn real(folder: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = folder.unwrap_or(Path::new("."));
    let told = || format!("`{}` cannot be trusted", folder.display());
    let real = folder.canonicalize().with_context(told)?;
    if !real.is_dir() {
        bail!("{}: it is no folder.", told());
    }
    Ok(real)
}
