//! `ward approvals`: what agents ask for, and the person's answers.

use std::io::{BufRead as _, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, bail};
use protocol::Digest;
use protocol::approval::{AnswerParams, AnswerScope, Approval, Choice, Resolved, Subject};
use serde::Deserialize;

use crate::client::Client;
use crate::commands::run_async;
use crate::console::printable;

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

fn answer(
    decision: Choice,
    scope: AnswerScope,
    digest: Digest,
    reason: Option<String>,
    patterns: Option<Vec<String>>,
) -> AnswerParams {
    AnswerParams {
        decision,
        scope,
        digest,
        reason,
        patterns,
        expires_at: None,
    }
}

async fn respond(
    client: &Client,
    approval: &Approval,
    params: &AnswerParams,
) -> anyhow::Result<Resolved> {
    client
        .post(&format!("/approvals/{}", approval.id), params)
        .await
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
        (None, _) => client.get(&format!("/approvals/{}", urlencode(id))).await,
    }
}

/// Ids have no characters that need it; whatever else is typed must not change the address.
fn urlencode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
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
        writeln!(
            out,
            "{}Waiting for questions; Ctrl-C ends.{}",
            DIM.render(),
            DIM.render_reset()
        )?;
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

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// What would happen, in a few words.
fn headline(approval: &Approval) -> String {
    let text = match (
        &approval.subject,
        &approval.facts.command,
        approval.facts.paths.first(),
    ) {
        (Subject::Host { host }, _, _) => format!("reach {host}"),
        (Subject::Again { widen }, _, _) => {
            let paths: Vec<&str> = widen.iter().map(|widen| widen.path.as_str()).collect();
            format!("run again, and write {}", paths.join(", "))
        }
        (Subject::Action, Some(command), _) => {
            let words = || command.argv.join(" ");
            format!("run {}", command.line.clone().unwrap_or_else(words))
        }
        (Subject::Action, None, Some(path)) => format!("{} {}", approval.action, path.path),
        (Subject::Action, None, None) => approval.action.clone(),
    };
    printable(&text)
}

fn line(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    let id: String = approval.id.chars().take(8).collect();
    writeln!(
        out,
        "{}{id}{}  {}{}{}  {}",
        BOLD.render(),
        BOLD.render_reset(),
        CYAN.render(),
        printable(&approval.role),
        CYAN.render_reset(),
        headline(approval),
    )?;
    writeln!(
        out,
        "          {}{}{}",
        DIM.render(),
        printable(&approval.rule.to_string()),
        DIM.render_reset()
    )
}

fn show(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    writeln!(
        out,
        "{}{}{}",
        BOLD.render(),
        headline(approval),
        BOLD.render_reset()
    )?;
    let mut row = |name: &str, text: &str| writeln!(out, "  {name:<10} {}", printable(text));
    row("id", &approval.id)?;
    row(
        "who",
        &format!(
            "{} as {}, mode {}",
            approval.actor, approval.role, approval.mode
        ),
    )?;
    if let Some(session) = &approval.session_id {
        row("session", session)?;
    }
    row("where", &approval.workspace)?;
    row("why", &approval.rule.to_string())?;
    if let Some(command) = &approval.facts.command {
        row("in", &command.cwd)?;
        for (name, value) in &command.env {
            row("with", &format!("{name}={value}"))?;
        }
    }
    let asked = |name: &str| approval.params.get(name).map(ToString::to_string);
    if let (Subject::Host { .. }, Some(command)) = (
        &approval.subject,
        asked("command").or_else(|| asked("argv")),
    ) {
        row("for", &command)?;
    }
    if let Subject::Again { .. } = approval.subject {
        row(
            "note",
            "it ran already and was stopped there; what it did before may be done twice",
        )?;
    }
    for question in &approval.questions {
        row("asks", &question.touch)?;
        if let Some(pattern) = &question.pattern {
            row("  grant", pattern)?;
        }
        if let Some(wider) = &question.wider {
            row("  or", wider)?;
        }
    }
    for line in approval.preview.iter().flat_map(|preview| preview.lines()) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => CYAN,
            _ => Style::new(),
        };
        writeln!(
            out,
            "    {}{}{}",
            style.render(),
            printable(line),
            style.render_reset()
        )?;
    }
    Ok(())
}

fn told(out: &mut impl Write, resolved: &Resolved) -> std::io::Result<()> {
    let how = serde_json::json!(resolved.resolution);
    writeln!(out, "{}.", how.as_str().unwrap_or("closed"))?;
    for pattern in &resolved.grants {
        writeln!(out, "  granted  {}", printable(pattern))?;
    }
    Ok(())
}
