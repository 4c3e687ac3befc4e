//! `ward doctor`: what the sandbox can hold on this machine, and what would make it hold more.

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use protocol::sandbox::{LayerStatus, SandboxStatus, Tier};

use crate::folders;
use crate::settings::{self, Settings};
use crate::size::ByteSize;

/// Show what the sandbox can hold on this machine
///
/// Tries every layer of the sandbox and says which hold, which are missing and how to get them.
/// Exits with 1 where the machine cannot hold what the settings demand: commands are refused then.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "The tiers, strongest first:\n  \
    room   a root and namespaces of its own, Landlock, seccomp, limits\n  \
    walls  no namespaces: Landlock, seccomp, no new privileges, limits\n  \
    none   not held at all\n\n\
    Examples:\n  \
    ward doctor\n  \
    ward doctor --json | jq .tier")]
pub(crate) struct Args {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Report<'a> {
    version: &'static str,
    /// Whether commands would run.
    ok: bool,
    #[serde(flatten)]
    status: &'a SandboxStatus,
    settings: &'a std::path::Path,
    limits: Limits,
}

#[derive(serde::Serialize)]
struct Limits {
    memory: u64,
    pids: u32,
    tmp: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = settings::read()?;
    let status = sandbox::probe(settings.minimum, &folders::state()?);
    let enough = status.tier >= status.minimum;
    if args.json {
        print_json(&status, &settings, enough)
    } else {
        print_text(&mut anstream::stdout().lock(), &status, &settings, enough)
    }
    .context("The report could not be written")?;
    Ok(if enough {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_json(status: &SandboxStatus, settings: &Settings, ok: bool) -> anyhow::Result<()> {
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        ok,
        status,
        settings: &settings.file,
        limits: Limits {
            memory: settings.limits.memory,
            pids: settings.limits.pids,
            tmp: settings.limits.tmp,
        },
    };
    let mut text = serde_json::to_vec_pretty(&report)?;
    text.push(b'\n');
    std::io::stdout().lock().write_all(&text)?;
    Ok(())
}

const HOLDS: Style = AnsiColor::Green.on_default();
const MISSING: Style = AnsiColor::Yellow.on_default();
const REFUSED: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

fn print_text(
    out: &mut impl Write,
    status: &SandboxStatus,
    settings: &Settings,
    enough: bool,
) -> anyhow::Result<()> {
    let verdict = if enough { HOLDS } else { REFUSED };
    writeln!(
        out,
        "{STRONG}Sandbox{STRONG:#}  {verdict}{}{verdict:#}: {}",
        status.tier,
        meaning(status.tier)
    )?;
    if !enough {
        writeln!(
            out,
            "         {REFUSED}Commands are refused{REFUSED:#}: the settings demand at least `{}`.\n         \
             To accept less, set `minimum = \"{}\"` in [sandbox] of the settings.",
            status.minimum, status.tier
        )?;
    }
    writeln!(out)?;
    let width = status
        .layers
        .iter()
        .map(|layer| layer.name.len())
        .max()
        .unwrap_or(0);
    for layer in &status.layers {
        print_layer(out, layer, width)?;
    }
    writeln!(
        out,
        "\n{STRONG}Limits{STRONG:#}   memory {}, {} processes, /tmp {}",
        ByteSize(settings.limits.memory),
        settings.limits.pids,
        ByteSize(settings.limits.tmp)
    )?;
    writeln!(
        out,
        "{STRONG}Settings{STRONG:#} {}{FAINT}{}{FAINT:#}",
        settings.file.display(),
        if settings.found {
            ""
        } else {
            " (not there: the defaults hold)"
        }
    )?;
    Ok(())
}

fn print_layer(out: &mut impl Write, layer: &LayerStatus, width: usize) -> anyhow::Result<()> {
    let (style, mark) = if layer.available {
        (HOLDS, "holds  ")
    } else {
        (MISSING, "missing")
    };
    writeln!(
        out,
        "  {style}{mark}{style:#}  {:width$}  {}",
        layer.name, layer.detail
    )?;
    if let Some(hint) = &layer.hint {
        writeln!(out, "           {:width$}  {FAINT}{hint}{FAINT:#}", "")?;
    }
    Ok(())
}

fn meaning(tier: Tier) -> &'static str {
    match tier {
        Tier::Room => "every command gets a root and namespaces of its own",
        Tier::Walls => "no namespaces here; Landlock, seccomp and limits hold",
        Tier::None => "nothing holds a command on this machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_holds_what_is_missing_and_how_to_get_it() {
        let status = SandboxStatus {
            tier: Tier::Walls,
            minimum: Tier::Room,
            layers: vec![
                LayerStatus {
                    name: "landlock".into(),
                    available: true,
                    detail: "ABI 5".into(),
                    hint: None,
                },
                LayerStatus {
                    name: "user namespace".into(),
                    available: false,
                    detail: "the kernel refuses it".into(),
                    hint: Some("sysctl -w kernel.unprivileged_userns_clone=1".into()),
                },
            ],
        };
        let settings = Settings {
            file: "/home/ada/.config/ward/settings.toml".into(),
            found: false,
            minimum: Tier::Room,
            limits: sandbox::Limits {
                memory: 8 << 30,
                pids: 4096,
                tmp: 2 << 30,
            },
            providers: runner::provider::Settings::default(),
            models: runner::price::Models::default(),
            lease: broker::LEASE,
            expire_after: settings::EXPIRE_AFTER,
        };
        let mut plain = anstream::StripStream::new(Vec::new());
        print_text(&mut plain, &status, &settings, false).unwrap();
        insta::assert_snapshot!(String::from_utf8(plain.into_inner()).unwrap());
    }
}
