//! `ward approvals`: what agents ask for, and the person's answers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use protocol::approval::{AnswerScope, Approval, Choice};
use serde::Deserialize;

use crate::approval::{answer, headline, respond, show, told};
use crate::client::{Client, encoded};
use crate::commands::{approvals_watch, run_async};
use crate::console::printable;
use crate::ids::{is_meant, short};
use crate::paint::{BOLD, CYAN, DIM, paint};

/// See and answer what agents ask for
///
/// An action that would cross the wall, or that a rule asks about, waits until a person answers;
/// after seven days, or after `expire_after` in [approvals] of the settings, no answer is a no.
/// Without a sub-command the open questions are listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward approvals\n  \
    ward approvals show 4f2a\n  \
    ward approvals allow 4f2a\n  \
    ward approvals allow 4f2a --scope workspace\n  \
    ward approvals deny 4f2a --reason \"use the test database\"\n  \
    ward approvals watch")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Where the store is kept [default: ~/.local/share/ward]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,

    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the open questions
    List,
    /// Show one question whole: what would happen, why it asks, what would answer it for longer
    Show {
        /// The question's id, or the beginning of it
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Say yes
    Allow {
        /// The question's id, or the beginning of it
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
        /// How far it goes: once, session or workspace; the last two make grants
        #[arg(long, value_parser = scope, default_value = "once")]
        scope: AnswerScope,
        /// A grant to make instead of those offered; may be given several times
        #[arg(long, value_name = "PATTERN")]
        pattern: Vec<String>,
        /// What the agent is told
        #[arg(long)]
        reason: Option<String>,
    },
    /// Say no
    Deny {
        /// The question's id, or the beginning of it
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
        /// What the agent is told
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show questions as they come, and answer them by a key
    ///
    /// A key counts a moment after the question is shown: what was typed before answers nothing. A
    /// yes for longer shows the grant first, which can be narrowed. Needs a terminal.
    Watch,
}

fn scope(word: &str) -> Result<AnswerScope, String> {
    match word {
        "once" => Ok(AnswerScope::Once),
        "session" => Ok(AnswerScope::Session),
        "workspace" => Ok(AnswerScope::Workspace),
        _ => Err("it is once, session or workspace".to_owned()),
    }
}

#[derive(Deserialize)]
struct Listed {
    approvals: Vec<Approval>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    run_async(async {
        let client = Client::open(args.data.as_deref(), "ward approvals").await?;
        let done = work(&client, args.what.unwrap_or(What::List), args.json).await;
        client.close().await;
        done
    })
}

async fn work(client: &Client, what: What, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = anstream::stdout().lock();
    match what {
        What::List => {
            let listed: Listed = client.get("/approvals").await?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&listed.approvals)?)?;
            } else if listed.approvals.is_empty() {
                writeln!(out, "Nothing waits for an answer.")?;
            }
            if !json {
                for approval in &listed.approvals {
                    line(&mut out, approval)?;
                }
            }
        }
        What::Show { id } => {
            let approval = find(client, &id).await?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&approval)?)?;
            } else {
                show(&mut out, &approval)?;
            }
        }
        What::Allow {
            id,
            scope,
            pattern,
            reason,
        } => {
            let approval = find(client, &id).await?;
            if scope == AnswerScope::Session && approval.session_id.is_none() {
                bail!(
                    "This action belongs to no session, so a yes cannot hold for one. Leave out --scope to allow it once, or allow it from now on with `--scope workspace`; an action is of a session where its request names one."
                );
            }
            let patterns = (!pattern.is_empty()).then_some(pattern);
            let params = answer(
                Choice::Allow,
                scope,
                approval.digest.clone(),
                reason,
                patterns,
            );
            told(&mut out, &respond(client, &approval, &params).await?)?;
            client.finish(&approval.action_id).await?;
        }
        What::Deny { id, reason } => {
            let approval = find(client, &id).await?;
            let scope = AnswerScope::Once;
            let params = answer(Choice::Deny, scope, approval.digest.clone(), reason, None);
            told(&mut out, &respond(client, &approval, &params).await?)?;
        }
        What::Watch => {
            drop(out);
            approvals_watch::watch(client).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The open question whose id begins so.
async fn find(client: &Client, id: &str) -> anyhow::Result<Approval> {
    let listed: Listed = client.get("/approvals").await?;
    let mut fits = listed
        .approvals
        .into_iter()
        .filter(|approval| is_meant(&approval.id, id));
    match (fits.next(), fits.next()) {
        (Some(approval), None) => Ok(approval),
        (Some(_), Some(_)) => {
            bail!("Several open questions begin with `{id}`. Write more of the id.")
        }
        // The server knows whether it was there and who answered it.
        (None, _) => client.get(&format!("/approvals/{}", encoded(id))).await,
    }
}

fn line(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    writeln!(
        out,
        "{}  {}  {}",
        paint(BOLD, &short(&approval.id)),
        paint(CYAN, &printable(&approval.role)),
        headline(approval),
    )?;
    writeln!(
        out,
        "          {}",
        paint(DIM, &printable(&approval.rule.to_string()))
    )
}
