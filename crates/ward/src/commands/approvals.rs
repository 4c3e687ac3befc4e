//! `ward approvals`: what agents ask for, and the person's answers.

use std::io::{BufRead as _, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use protocol::approval::{AnswerScope, Approval, Choice};
use serde::Deserialize;

use crate::approval::{answer, headline, respond, show, told};
use crate::client::{Client, encoded};
use crate::commands::run_async;
use crate::console::printable;
use crate::paint::{BOLD, CYAN, DIM, paint};

/// See and answer what agents ask for
///
/// An action that would cross the wall, or that a rule asks about, waits until a person answers.
/// Without a sub-command the open questions are listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ward approvals\n  \
    ward approvals show 4f2a\n  \
    ward approvals allow 4f2a --scope session\n  \
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
        id: String,
    },
    /// Say yes
    Allow {
        /// The question's id, or the beginning of it
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
        id: String,
        /// What the agent is told
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show questions as they come, and answer them by a key
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
            watch(client).await?;
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
        .filter(|approval| approval.id.starts_with(id));
    match (fits.next(), fits.next()) {
        (Some(approval), None) => Ok(approval),
        (Some(_), Some(_)) => {
            bail!("Several open questions begin with `{id}`. Write more of the id.")
        }
        // The server knows whether it was there and who answered it.
        (None, _) => client.get(&format!("/approvals/{}", encoded(id))).await,
    }
}

/// Shows what is open, then what comes, one question after the other.
async fn watch(client: &Client) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "`ward approvals watch` needs a terminal to be answered in. `ward approvals allow ID` answers without one."
        );
    }
    let mut events = client.follow("/approvals/events?front=true").await?;
    loop {
        // Whatever the events said, the list is what is open now.
        let listed: Listed = client.get("/approvals").await?;
        for approval in listed.approvals {
            question(client, &approval).await?;
        }
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", paint(DIM, "Waiting for questions; Ctrl-C ends."))?;
        drop(out);
        loop {
            match events.next().await? {
                Some(event) if event.kind == "permission.requested" => break,
                Some(_) => {}
                None => bail!("Ward has ended."),
            }
        }
    }
}

/// Shows one question and takes the answer.
async fn question(client: &Client, approval: &Approval) -> anyhow::Result<()> {
    {
        let mut out = anstream::stdout().lock();
        show(&mut out, approval)?;
        let session = if approval.session_id.is_some() {
            "  [s]ession"
        } else {
            ""
        };
        write!(out, "[a]llow once{session}  [w]orkspace  [d]eny  [l]ater: ")?;
        out.flush()?;
    }
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    })
    .await?
    .context("Standard input cannot be read")?;
    let (key, reason) = match line.trim().split_once(' ') {
        Some((key, reason)) => (key, Some(reason.trim().to_owned())),
        None => (line.trim(), None),
    };
    let (choice, scope) = match key {
        "a" => (Choice::Allow, AnswerScope::Once),
        "s" => (Choice::Allow, AnswerScope::Session),
        "w" => (Choice::Allow, AnswerScope::Workspace),
        "d" => (Choice::Deny, AnswerScope::Once),
        _ => return Ok(()),
    };
    let params = answer(choice, scope, approval.digest.clone(), reason, None);
    let mut out = anstream::stdout().lock();
    match respond(client, approval, &params).await {
        Ok(resolved) => told(&mut out, &resolved)?,
        Err(error) => writeln!(out, "{error:#}")?,
    }
    writeln!(out)?;
    Ok(())
}

fn line(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    let id: String = approval.id.chars().take(8).collect();
    writeln!(
        out,
        "{}  {}  {}",
        paint(BOLD, &id),
        paint(CYAN, &printable(&approval.role)),
        headline(approval),
    )?;
    writeln!(
        out,
        "          {}",
        paint(DIM, &printable(&approval.rule.to_string()))
    )
}
