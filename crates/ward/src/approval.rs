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
        (Subject::Again { widen, wanted }, _, _) => {
            let paths: Vec<&str> = widen.iter().map(|widen| widen.path.as_str()).collect();
            let made = match wanted.as_slice() {
                [] => String::new(),
                wanted => format!(", to make {}", wanted.join(", ")),
            };
            format!("run again, and write {}{made}", paths.join(", "))
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
    row("digest", approval.digest.as_str())?;
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
    show_about(out, approval, usize::MAX)
}

/// The most files that are listed while a person is asked; `ward approvals show` has all.
const MOST_FILES: usize = 8;

/// What would happen and why it asks, where it is plain who does.
pub(crate) fn show_what(out: &mut impl Write, approval: &Approval) -> std::io::Result<()> {
    show_about(out, approval, MOST_FILES)
}

fn show_about(out: &mut impl Write, approval: &Approval, files: usize) -> std::io::Result<()> {
    let mut row = |name: &str, text: &str| writeln!(out, "  {name:<10} {}", printable(text));
    if let Some(again) = &approval.again {
        row("again", &again.because)?;
    }
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
    let facts = &approval.facts;
    for file in facts.files.iter().take(files) {
        row("binds", &format!("{} ({})", file.path, file.digest))?;
    }
    let more = facts.files.len().saturating_sub(files);
    match (more, facts.more_files.is_some()) {
        (0, false) => {}
        (0, true) => row("binds", "and further files")?,
        (more, false) => row("binds", &format!("and {more} more"))?,
        (more, true) => row("binds", &format!("and {more} more, and further files"))?,
    }
    if !facts.unbound.is_empty() {
        let words = facts.unbound.join("  ");
        row(
            "not bound",
            &format!(
                "{words}: what they name is not known before it runs, and may change after your answer"
            ),
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

#[cfg(test)]
mod tests {
    use protocol::facts::FileFact;

    use super::*;

    #[test]
    fn a_question_says_what_it_binds_what_it_cannot_and_why_it_is_asked_again() {
        let mut approval: Approval = serde_json::from_value(serde_json::json!({
            "id": "a1", "digest": Digest::of(b"a"), "action_id": "b1", "subject": {"about": "action"},
            "action": "terminal.run", "params": {}, "facts": {}, "role": "dev", "actor": "agent:x",
            "mode": "full", "workspace": "/work", "questions": [], "asked_at": 0, "expires_at": 1,
            "rule": {"kind": "mode", "text": "full", "reason": "", "file": "built-in", "line": 1},
        }))
        .unwrap();
        approval.facts.files = (0..10)
            .map(|number| FileFact {
                path: format!("/work/{number}.sh"),
                digest: Digest::of(b"b"),
            })
            .collect();
        approval.again = Some(protocol::approval::AskedAgain {
            because: "A file has changed.".to_owned(),
            after: "a0".to_owned(),
        });
        approval.facts.unbound = vec!["$X".to_owned(), "PATH".to_owned()];
        let mut out = Vec::new();
        show(&mut out, &approval).unwrap();
        let all = String::from_utf8(out).unwrap();
        for told in [
            format!("  digest     {}\n", Digest::of(b"a")),
            format!("  binds      /work/9.sh ({})\n", Digest::of(b"b")),
            "  not bound  $X  PATH: ".to_owned(),
            "  again      A file has changed.\n".to_owned(),
        ] {
            assert!(all.contains(&told), "{all}");
        }
        let mut out = Vec::new();
        show_what(&mut out, &approval).unwrap();
        let short = String::from_utf8(out).unwrap();
        assert!(
            short.contains("/work/7.sh") && !short.contains("/work/8.sh"),
            "{short}"
        );
        assert!(short.contains("  binds      and 2 more\n"), "{short}");
    }
}
