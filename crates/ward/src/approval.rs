//! A question to a person, as it is shown in a terminal, and the person's answer.

use std::io::Write;

use protocol::Digest;
use protocol::approval::{AnswerParams, AnswerScope, Approval, Choice, Resolved, Subject};

use crate::client::Client;
use crate::console::printable;
use crate::paint::{BOLD, diff, paint};

/// An answer to the question of this digest.
pub(crate) fn answer(
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

/// Sends the answer.
pub(crate) async fn respond(
    client: &Client,
    approval: &Approval,
    params: &AnswerParams,
) -> anyhow::Result<Resolved> {
    client
        .post(&format!("/approvals/{}", approval.id), params)
        .await
}

/// What would happen, in a few words.
pub(crate) fn headline(approval: &Approval) -> String {
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

/// The whole of it: what would happen, who asks, why, what would answer it for longer.
pub(crate) fn show(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    writeln!(out, "{}", paint(BOLD, &headline(approval)))?;
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
    show_what(out, approval)
}

/// What would happen and why it asks, where it is plain who does.
pub(crate) fn show_what(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    let mut row = |name: &str, text: &str| writeln!(out, "  {name:<10} {}", printable(text));
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
        writeln!(out, "    {}", diff(line))?;
    }
    Ok(())
}

/// How it was closed.
pub(crate) fn told(out: &mut impl Write, resolved: &Resolved) -> std::io::Result<()> {
    let how = serde_json::json!(resolved.resolution);
    writeln!(out, "{}.", how.as_str().unwrap_or("closed"))?;
    for pattern in &resolved.grants {
        writeln!(out, "  granted  {}", printable(pattern))?;
    }
    Ok(())
}
