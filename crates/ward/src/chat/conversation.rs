//! A session's events as lines: what was said, thought and done, in the order it happened.

use std::time::Instant;

use protocol::Mode;
use protocol::session::{
    Changed, Completed, Origin, Received, SessionEvent, SessionInfo, Started, StopReason,
};

use super::calls::Calls;
use super::markdown::Markdown;
use super::text::{Span, flow, wrap};
use crate::console::printable;
use crate::paint::{BOLD, CYAN, DIM, ITALIC, RED, YELLOW, paint};

/// A conversation, as far as it was told.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    markdown: Markdown,
    /// The line of thinking that is not complete.
    thought: String,
    calls: Calls,
    last: Block,
    /// Whether the last line was empty.
    blank: bool,
    /// Since when the agent is at work.
    pub(crate) since: Option<Instant>,
    /// Whether it failed, and goes on when it is told nothing.
    pub(crate) failed: bool,
    /// The file actions that can be undone, the latest last.
    pub(crate) changed: Vec<String>,
    pub(crate) role: String,
    pub(crate) model: String,
    pub(crate) mode: Option<Mode>,
}

/// What was shown last: other things keep their distance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Block {
    #[default]
    Nothing,
    Words,
    Thought,
    Call,
    Note,
}

impl Conversation {
    /// Of a session that nothing was told of yet.
    pub(crate) fn of(session: &SessionInfo) -> Self {
        Self {
            role: session.role.clone(),
            model: session.model.clone(),
            mode: Some(session.mode),
            ..Self::default()
        }
    }

    /// What happened, in lines.
    pub(crate) fn event(&mut self, event: &SessionEvent, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        match event {
            SessionEvent::Text(delta) => {
                self.end_thought(columns, &mut lines);
                if !delta.text.trim().is_empty() || self.last == Block::Words {
                    self.begin(Block::Words, &mut lines);
                    let rows = self.markdown.push(&delta.text, columns);
                    self.put(rows, &mut lines);
                }
                return lines;
            }
            SessionEvent::Reasoning(delta) => {
                self.begin(Block::Thought, &mut lines);
                for piece in delta.text.split_inclusive('\n') {
                    self.thought.push_str(piece.trim_end_matches('\n'));
                    if piece.ends_with('\n') {
                        let rows = thought(&std::mem::take(&mut self.thought), columns);
                        self.put(rows, &mut lines);
                    }
                }
                return lines;
            }
            // Live output, while words may be under way as well.
            SessionEvent::ToolProgress(progress) => {
                let rows = self.calls.progress(progress);
                self.put(rows, &mut lines);
                return lines;
            }
            _ => self.end_words(columns, &mut lines),
        }
        match event {
            SessionEvent::Started(started) => self.started(started),
            SessionEvent::Changed(changed) => {
                let note = self.changed(changed);
                self.note(&note, columns, &mut lines);
            }
            SessionEvent::RuntimeAwaited(awaited) => {
                let reason = format!("{} Waiting for it.", printable(&awaited.reason));
                self.note(&reason, columns, &mut lines);
            }
            SessionEvent::RuntimeChosen(chosen) => {
                let told = format!("Actions run in {} on {}.", chosen.kind, chosen.workspace);
                self.note(&printable(&told), columns, &mut lines);
            }
            SessionEvent::Received(received) => self.received(received, columns, &mut lines),
            SessionEvent::TurnStarted(_) => {
                self.since.get_or_insert_with(Instant::now);
                self.failed = false;
            }
            SessionEvent::ToolCalled(called) => {
                self.begin(Block::Call, &mut lines);
                let rows = self.calls.called(called, columns);
                self.put(rows, &mut lines);
            }
            SessionEvent::ToolOutput(output) => {
                self.begin(Block::Call, &mut lines);
                let (rows, changed) = self.calls.output(output);
                self.changed.extend(changed);
                self.put(rows, &mut lines);
            }
            SessionEvent::TurnDropped(dropped) => {
                let why = printable(&dropped.reason);
                let told = format!("That turn came to nothing: {why}");
                self.note(&told, columns, &mut lines);
            }
            SessionEvent::Compacted(compacted) => {
                let how = match compacted.summary {
                    Some(_) => "were summed up for the model",
                    None => "are no longer told to the model",
                };
                let told = format!("{} earlier messages {how}.", compacted.messages);
                self.note(&told, columns, &mut lines);
            }
            SessionEvent::Completed(completed) => self.completed(completed, &mut lines),
            SessionEvent::Failed(failed) => {
                self.ended();
                self.failed = true;
                self.begin(Block::Note, &mut lines);
                let told = format!("✗ {}", printable(&failed.error));
                self.put(flow(RED, &told, columns), &mut lines);
            }
            // Questions are the chat's; the rest is for programs.
            SessionEvent::PermissionRequested(_)
            | SessionEvent::PermissionResolved(_)
            | SessionEvent::MessageCompleted(_)
            | SessionEvent::Usage(_)
            | SessionEvent::Text(_)
            | SessionEvent::Reasoning(_)
            | SessionEvent::ToolProgress(_) => {}
        }
        lines
    }

    /// The rows of what is under way.
    pub(crate) fn partial(&self, columns: usize) -> Vec<String> {
        let mut rows = thought(&self.thought, columns);
        rows.extend(self.markdown.partial(columns));
        rows.extend(self.calls.partial(columns));
        rows
    }

    /// Whether actions are under way.
    pub(crate) fn acts(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Something of the chat's own, at its place in the conversation.
    pub(crate) fn note(&mut self, text: &str, columns: usize, lines: &mut Vec<String>) {
        if text.is_empty() {
            return;
        }
        self.begin(Block::Note, lines);
        self.put(flow(DIM, text, columns), lines);
    }

    /// Lines of the chat's own that have their colours already.
    pub(crate) fn block(&mut self, rows: Vec<String>, lines: &mut Vec<String>) {
        self.blank(lines);
        self.put(rows, lines);
        self.last = Block::Note;
    }

    /// A question was closed: what comes of its call belongs to it.
    pub(crate) fn closed(&mut self, rows: Vec<String>, lines: &mut Vec<String>) {
        self.put(rows, lines);
        self.last = Block::Call;
    }

    fn started(&mut self, started: &Started) {
        self.role.clone_from(&started.role);
        self.model.clone_from(&started.model);
        self.mode = Some(started.mode);
    }

    fn changed(&mut self, changed: &Changed) -> String {
        let mut told = Vec::new();
        if let Some(role) = &changed.role {
            self.role.clone_from(role);
            let who = printable(role);
            told.push(match changed.handoff {
                true => format!("The agent hands over to {who}."),
                false => format!("The role is {who} from here on."),
            });
        }
        if let Some(model) = &changed.model {
            self.model.clone_from(model);
            told.push(format!("The model is {} from here on.", printable(model)));
        }
        if let Some(mode) = changed.mode {
            self.mode = Some(mode);
            told.push(format!("The mode is {mode} from here on."));
        }
        told.join("\n")
    }

    fn received(&mut self, received: &Received, columns: usize, lines: &mut Vec<String>) {
        self.since.get_or_insert_with(Instant::now);
        self.failed = false;
        self.blank(lines);
        let who = match &received.origin {
            Origin::User => String::new(),
            Origin::Client(name) | Origin::Role(name) | Origin::SubAgent(name) => {
                format!("{}: ", printable(name))
            }
            Origin::Tool | Origin::System => "Ward: ".to_owned(),
        };
        let mut rows = Vec::new();
        for (at, line) in received.text.lines().enumerate() {
            let (mark, who) = match at {
                0 => ("› ", who.as_str()),
                _ => ("  ", ""),
            };
            let spans = [
                Span::new(CYAN.bold(), mark),
                Span::new(DIM, who),
                Span::new(BOLD, &printable(&line.replace('\t', "    "))),
            ];
            rows.extend(wrap(&spans, columns, 2));
        }
        if received.images > 0 {
            rows.push(paint(DIM, &format!("  with {} pictures", received.images)));
        }
        self.put(rows, lines);
        self.last = Block::Note;
    }

    fn completed(&mut self, completed: &Completed, lines: &mut Vec<String>) {
        self.ended();
        let why = match completed.stop {
            StopReason::Done => return,
            StopReason::Cancelled => "Cancelled.",
            StopReason::Length => "It stopped: its answer became too long.",
            StopReason::Refusal => "It stopped: the model would not.",
            StopReason::ContentFilter => "It stopped: the provider kept the answer back.",
            StopReason::TurnLimit => "It stopped: the limit of turns was reached.",
            StopReason::TokenLimit => "It stopped: the limit of tokens was reached.",
            StopReason::CostLimit => "It stopped: the limit of cost was reached.",
            StopReason::TimeLimit => "It stopped: the limit of time was reached.",
        };
        self.begin(Block::Note, lines);
        self.put(vec![paint(YELLOW, &format!("■ {why}"))], lines);
    }

    fn ended(&mut self) {
        self.since = None;
        self.calls.clear();
    }

    fn end_words(&mut self, columns: usize, lines: &mut Vec<String>) {
        self.end_thought(columns, lines);
        let rows = self.markdown.finish(columns);
        self.put(rows, lines);
    }

    fn end_thought(&mut self, columns: usize, lines: &mut Vec<String>) {
        let rows = thought(&std::mem::take(&mut self.thought), columns);
        self.put(rows, lines);
    }

    /// What comes now is of this kind: an empty line parts it from another.
    fn begin(&mut self, block: Block, lines: &mut Vec<String>) {
        if self.last != block && self.last != Block::Nothing {
            self.blank(lines);
        }
        self.last = block;
    }

    fn blank(&mut self, lines: &mut Vec<String>) {
        self.put(vec![String::new()], lines);
    }

    /// Two empty lines never follow each other.
    fn put(&mut self, rows: Vec<String>, lines: &mut Vec<String>) {
        for row in rows {
            let blank = row.is_empty();
            if !(blank && self.blank) {
                lines.push(row);
            }
            self.blank = blank;
        }
    }
}

/// A line of thinking.
fn thought(line: &str, columns: usize) -> Vec<String> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let text = printable(&line.replace('\t', "    "));
    flow(DIM | ITALIC.get_effects(), &text, columns.min(100))
}
