//! What the agent does, as it happens: what is called, what it prints, what came of it.

use std::collections::HashMap;

use protocol::action::fs::{EditResult, EntriesResult, PatchResult, ReadResult, SearchResult};
use protocol::action::terminal::RunResult;
use protocol::method::OutputStream;
use protocol::sandbox::{Limit, SandboxReport, StoppedAccess};
use protocol::session::{ToolCalled, ToolOutput, ToolProgress};
use protocol::{ActionName, Encoding};
use serde_json::Value;

use super::text::{Span, clip, wrap};
use crate::console::printable;
use crate::paint::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, diff, paint};

/// How many lines of what a call prints are shown as they come, and how many of its last then.
const SHOWN: usize = 30;
const LAST: usize = 5;
/// How much of a change is shown.
const CHANGED: usize = 40;
const WRITTEN: usize = 10;

/// The calls that are under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    running: HashMap<String, Call>,
    /// Whose output was shown last: another's is told apart by its name.
    last: Option<String>,
}

#[derive(Debug)]
struct Call {
    /// What it is, fit for a terminal.
    title: String,
    /// Left out for one of Ward's own tools, such as another agent.
    action: Option<ActionName>,
    action_id: Option<String>,
    arguments: Value,
    /// The line of output that is not complete.
    partial: String,
    shown: usize,
    /// Lines beyond what is shown: how many, and the last of them.
    hidden: usize,
    kept: Vec<String>,
}

impl Calls {
    /// Whether anything is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Forgets what is under way: nothing more comes of it.
    pub(crate) fn clear(&mut self) {
        self.running.clear();
        self.last = None;
    }

    /// Something is called.
    pub(crate) fn called(&mut self, called: &ToolCalled, columns: usize) -> Vec<String> {
        let name = printable(called.action.as_deref().unwrap_or(&called.name));
        let about = about(&called.arguments);
        let action = called.action.as_deref().and_then(ActionName::parse);
        let runs = action == Some(ActionName::TerminalRun);
        let (mark, about_style) = match runs {
            true => (Span::new(CYAN, "$ "), BOLD),
            false => (Span::new(BOLD, &format!("{name} ")), PLAIN),
        };
        let title = format!("{}{about}", mark.text);
        let head = [Span::new(CYAN, "● "), mark, Span::new(about_style, &about)];
        let call = Call {
            title,
            action,
            action_id: called.action_id.clone(),
            arguments: called.arguments.clone(),
            partial: String::new(),
            shown: 0,
            hidden: 0,
            kept: Vec::new(),
        };
        self.running.insert(called.call_id.clone(), call);
        self.last = Some(called.call_id.clone());
        wrap(&head, columns, 4)
    }

    /// A call prints.
    pub(crate) fn progress(&mut self, progress: &ToolProgress) -> Vec<String> {
        let Some(call) = self.running.get_mut(&progress.call_id) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        if self.last.as_ref() != Some(&progress.call_id) {
            lines.push(paint(DIM, &format!("  ┌ {}", clip(&call.title, 70))));
            self.last = Some(progress.call_id.clone());
        }
        match (progress.stream, progress.encoding) {
            (OutputStream::Dropped, _) => {
                call.line("… what else it prints is not shown", &mut lines);
            }
            (_, Encoding::Utf8) => {
                for piece in progress.data.split_inclusive('\n') {
                    call.partial.push_str(piece.trim_end_matches('\n'));
                    if piece.ends_with('\n') {
                        let line = std::mem::take(&mut call.partial);
                        call.line(&clean(&line), &mut lines);
                    }
                }
            }
            (_, Encoding::Base64) => call.line("… bytes that are no text", &mut lines),
        }
        lines
    }

    /// What is under way, in rows that change.
    pub(crate) fn partial(&self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for call in self.running.values() {
            let line = clean(&call.partial);
            if call.hidden > 0 {
                let last = call.kept.last().map_or("", String::as_str);
                let told = format!("  │ … {} more lines: {last}", call.hidden);
                rows.push(paint(DIM, &clip(&told, columns)));
            } else if !line.is_empty() {
                rows.push(paint(DIM, &clip(&format!("  │ {line}"), columns)));
            }
        }
        rows
    }

    /// Something came of a call. The lines, and the action's id where it changed files.
    pub(crate) fn output(&mut self, output: &ToolOutput) -> (Vec<String>, Option<String>) {
        let mut lines = Vec::new();
        let call = self.running.remove(&output.call_id);
        let title = call.as_ref().map(|call| call.title.clone());
        if self.last.as_ref() != Some(&output.call_id) || call.is_none() {
            let title = title.unwrap_or_else(|| printable(&output.name));
            lines.push(paint(DIM, &format!("  ┌ {}", clip(&title, 70))));
        }
        self.last = None;
        let Some(mut call) = call else {
            return (lines, None);
        };
        call.end(&mut lines);
        let took = took(output.duration_ms);
        if !output.ok {
            let kind = output.kind.map(|kind| serde_json::json!(kind));
            let kind = kind.as_ref().and_then(Value::as_str).unwrap_or("failed");
            let mut words = output.output.lines().map(clean);
            let first = words.next().unwrap_or_default();
            lines.push(paint(RED, &format!("  ╰ {kind}: {first}")));
            lines.extend(words.take(CHANGED).map(|line| format!("    {line}")));
            return (lines, None);
        }
        let came = call.came(output, &mut lines);
        let style = match came.good {
            true => DIM,
            false => RED,
        };
        lines.push(paint(style, &format!("  ╰ {}{took}", came.words)));
        lines.extend(came.after);
        let changes = matches!(
            call.action,
            Some(
                ActionName::FsWrite
                    | ActionName::FsEdit
                    | ActionName::FsPatch
                    | ActionName::FsMkdir
                    | ActionName::FsMove
                    | ActionName::FsDelete
            )
        );
        (lines, call.action_id.filter(|_| changes))
    }
}

/// What came of a call, for the line below it.
struct Came {
    good: bool,
    words: String,
    after: Vec<String>,
}

impl Came {
    fn good(words: String) -> Self {
        Self {
            good: true,
            words,
            after: Vec::new(),
        }
    }
}

impl Call {
    fn line(&mut self, line: &str, lines: &mut Vec<String>) {
        if self.shown < SHOWN {
            self.shown += 1;
            lines.push(bar(line));
            return;
        }
        self.hidden += 1;
        if self.kept.len() == LAST {
            self.kept.remove(0);
        }
        self.kept.push(line.to_owned());
    }

    /// Nothing more is printed.
    fn end(&mut self, lines: &mut Vec<String>) {
        let last = clean(&std::mem::take(&mut self.partial));
        if !last.is_empty() {
            self.line(&last, lines);
        }
        let between = self.hidden - self.kept.len();
        if between > 0 {
            let told = format!("… {between} lines are not shown");
            lines.push(paint(DIM, &format!("  │ {told}")));
        }
        lines.extend(self.kept.drain(..).map(|line| bar(&line)));
    }

    fn came(&self, output: &ToolOutput, lines: &mut Vec<String>) -> Came {
        let text = output.output.as_str();
        match self.action {
            Some(ActionName::TerminalRun) => {
                if let Ok(ran) = serde_json::from_str::<RunResult>(text) {
                    return self.ran(&ran, lines);
                }
            }
            Some(ActionName::FsRead) => {
                if let Ok(read) = serde_json::from_str::<ReadResult>(text) {
                    let count = read.content.lines().count();
                    let more = if read.truncated { " and more" } else { "" };
                    return Came::good(format!("{}{more}", number(count, "line", "lines")));
                }
            }
            Some(ActionName::FsList | ActionName::FsGlob) => {
                if let Ok(found) = serde_json::from_str::<EntriesResult>(text) {
                    return Came::good(number(found.entries.len(), "entry", "entries"));
                }
            }
            Some(ActionName::FsSearch) => {
                if let Ok(found) = serde_json::from_str::<SearchResult>(text) {
                    return Came::good(number(found.matches.len(), "match", "matches"));
                }
            }
            Some(ActionName::FsWrite) => {
                let written = self.arguments.get("content").and_then(Value::as_str);
                let added = written.unwrap_or_default().lines();
                let added: Vec<String> = added.map(|line| format!("+{line}")).collect();
                change(added.iter().map(String::as_str), WRITTEN, lines);
                let created = serde_json::from_str::<Value>(text)
                    .ok()
                    .and_then(|result| result.get("created")?.as_bool());
                return Came::good(match created {
                    Some(true) => "created".to_owned(),
                    _ => "replaced".to_owned(),
                });
            }
            Some(ActionName::FsEdit) => {
                if let Ok(edited) = serde_json::from_str::<EditResult>(text) {
                    let hunks = edited.diff.lines();
                    let hunks =
                        hunks.filter(|line| !line.starts_with("---") && !line.starts_with("+++"));
                    change(hunks, CHANGED, lines);
                    return Came::good("changed".to_owned());
                }
            }
            Some(ActionName::FsPatch) => {
                let patch = self.arguments.get("patch").and_then(Value::as_str);
                change(patch.unwrap_or_default().lines(), CHANGED, lines);
                if let Ok(patched) = serde_json::from_str::<PatchResult>(text) {
                    return Came::good(number(patched.files.len(), "file", "files"));
                }
            }
            Some(_) => {}
            // One of Ward's own tools, such as another agent: its words are the result.
            None => {
                for line in text.lines().take(WRITTEN) {
                    lines.push(bar(&clean(line)));
                }
            }
        }
        Came::good("done".to_owned())
    }

    fn ran(&self, ran: &RunResult, lines: &mut Vec<String>) -> Came {
        // A short command may have ended before anything of it was told.
        if self.shown == 0 {
            let all = ran.stdout.lines().chain(ran.stderr.lines());
            lines.extend(all.take(SHOWN).map(|line| bar(&clean(line))));
        }
        let words = match (ran.timed_out, ran.exit_code, &ran.signal) {
            (true, ..) => "took too long and was ended".to_owned(),
            (false, Some(code), _) => format!("exit {code}"),
            (false, None, Some(signal)) => format!("ended by {}", printable(signal)),
            (false, None, None) => "ended".to_owned(),
        };
        Came {
            good: ran.exit_code == Some(0) && !ran.timed_out,
            words,
            after: held(&ran.sandbox),
        }
    }
}

/// What the sandbox stopped, set aside or kept apart.
fn held(report: &SandboxReport) -> Vec<String> {
    let mut told = Vec::new();
    for stopped in &report.stopped {
        let target = printable(&stopped.target);
        told.push(match stopped.access {
            StoppedAccess::Write => format!("stopped: write to {target}"),
            StoppedAccess::Connect => format!("stopped: connection to {target}"),
        });
    }
    for aside in &report.set_aside {
        let (path, id) = (printable(&aside.path), printable(&aside.id));
        told.push(format!(
            "set aside: {path}; `ward aside restore {id}` puts it back"
        ));
    }
    for path in &report.scratch {
        told.push(format!(
            "written to the session's own home folder, not to yours: {}",
            printable(path)
        ));
    }
    if report.limit == Some(Limit::Memory) {
        told.push("ended: it used more memory than its limit".to_owned());
    }
    let lines = told.iter();
    lines
        .map(|line| paint(YELLOW, &format!("  ▲ {line}")))
        .collect()
}

fn change<'a>(all: impl Iterator<Item = &'a str>, most: usize, lines: &mut Vec<String>) {
    let mut rest = 0;
    for (at, line) in all.enumerate() {
        if at < most {
            let bar = paint(DIM, "  │ ");
            lines.push(format!("{bar}{}", diff(&line.replace('\t', "    "))));
        } else {
            rest += 1;
        }
    }
    if rest > 0 {
        lines.push(paint(GREEN, &format!("  │ … and {rest} more lines")));
    }
}

fn bar(line: &str) -> String {
    format!("{}{line}", paint(DIM, "  │ "))
}

/// A line that a command printed: without its colours, as a terminal would leave it, and without
/// anything that a terminal would act on.
fn clean(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let line = line.rsplit('\r').next().unwrap_or_default();
    let plain = anstream::adapter::strip_str(line).to_string();
    printable(&plain.replace('\t', "    "))
}

/// What a call is about, in a line that is fit for a terminal.
fn about(arguments: &Value) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    if let (Some(from), Some(to)) = (text("from"), text("to")) {
        return format!("{} → {}", printable(from), printable(to));
    }
    if let Some(words) = arguments.get("argv").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return printable(&words.join(" "));
    }
    if let (Some(pattern), Some(path)) = (text("pattern"), text("path")) {
        return format!("{} in {}", printable(pattern), printable(path));
    }
    if let (Some(role), Some(task)) = (text("role"), text("task")) {
        return format!("{}: {}", printable(role), clip(&printable(task), 200));
    }
    let named = ["command", "path", "pattern", "role", "name", "terminal_id"];
    let named = named.iter().find_map(|name| text(name));
    printable(named.unwrap_or_default())
}

fn number(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How long it took, where that is worth a word.
fn took(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!(" · {milliseconds} ms"),
        1000..60_000 => format!(" · {}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!(
            " · {} min {} s",
            milliseconds / 60_000,
            milliseconds / 1000 % 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn called(action: &str, arguments: Value) -> ToolCalled {
        ToolCalled {
            call_id: "c1".to_owned(),
            name: action.replace('.', "_"),
            action: Some(action.to_owned()),
            action_id: Some("a1".to_owned()),
            child: None,
            arguments,
        }
    }

    fn printed(data: &str) -> ToolProgress {
        ToolProgress {
            call_id: "c1".to_owned(),
            stream: OutputStream::Stdout,
            data: data.to_owned(),
            encoding: Encoding::Utf8,
        }
    }

    fn came(name: &str, output: String) -> ToolOutput {
        ToolOutput {
            call_id: "c1".to_owned(),
            name: name.to_owned(),
            ok: true,
            output,
            kind: None,
            rest: None,
            duration_ms: 1234,
        }
    }

    fn plain(lines: &[String]) -> String {
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn a_command_is_shown_with_its_output_its_end_and_what_was_stopped() {
        let mut calls = Calls::default();
        let command = json!({"command": "make\nrm -rf \u{1b}[2J"});
        let mut lines = calls.called(&called("terminal.run", command), 80);
        lines.extend(calls.progress(&printed("\u{1b}[32mok\u{1b}[0m\n10%\r100%\r\nhalf")));
        lines.extend(calls.progress(&printed(" done\n\u{202e}evil\u{8}")));
        let result = json!({
            "exit_code": 2, "stdout": "", "stderr": "", "duration_ms": 1, "timed_out": false,
            "truncated": false,
            "sandbox": {"tier": "room", "stopped": [
                {"access": "write", "target": "/home/\u{1b}[31m/.bashrc"},
                {"access": "connect", "target": "example.com:443"},
            ]},
        });
        let (more, changed) = calls.output(&came("terminal_run", result.to_string()));
        lines.extend(more);
        assert_eq!(changed, None);
        insta::assert_snapshot!(plain(&lines));
    }

    #[test]
    fn long_output_is_shown_with_its_head_and_its_tail() {
        let mut calls = Calls::default();
        let mut lines = calls.called(&called("terminal.run", json!({"command": "seq 100"})), 80);
        let all: String = (1..=100).map(|number| format!("{number}\n")).collect();
        lines.extend(calls.progress(&printed(&all)));
        let partial = plain(&calls.partial(80));
        assert_eq!(partial, "  │ … 70 more lines: 100");
        let result = json!({
            "exit_code": 0, "stdout": all, "stderr": "", "duration_ms": 1, "timed_out": false,
            "truncated": false, "sandbox": {"tier": "room"},
        });
        lines.extend(calls.output(&came("terminal_run", result.to_string())).0);
        let lines = plain(&lines);
        assert!(
            lines.contains("  │ 30\n  │ … 65 lines are not shown\n  │ 96\n"),
            "{lines}"
        );
        assert!(lines.ends_with("  │ 100\n  ╰ exit 0 · 1.2 s"), "{lines}");
    }

    #[test]
    fn changes_to_files_are_shown_as_changes_and_can_be_undone() {
        let mut calls = Calls::default();
        let written = json!({"path": "a\u{1b}.txt", "content": "one\n\u{1b}[2Jtwo\n"});
        let mut lines = calls.called(&called("fs.write", written), 80);
        let result = json!({"digest": "x", "created": true}).to_string();
        let (more, changed) = calls.output(&came("fs_write", result));
        lines.extend(more);
        assert_eq!(changed.as_deref(), Some("a1"));
        insta::assert_snapshot!(plain(&lines));
    }

    #[test]
    fn what_was_denied_says_so() {
        let mut calls = Calls::default();
        let mut lines = calls.called(&called("fs.delete", json!({"path": "a"})), 80);
        let denied = ToolOutput {
            ok: false,
            output: "A person said no: not\u{1b}[2J today".to_owned(),
            kind: Some(protocol::ErrorKind::Denied),
            ..came("fs_delete", String::new())
        };
        lines.extend(calls.output(&denied).0);
        assert_eq!(
            plain(&lines),
            "● fs.delete a\n  ╰ denied: A person said no: not today"
        );
    }
}
