//! `ward approvals watch`: questions as they come, answered by a key.
//!
//! Keys and events are waited for together, so that a question that was answered elsewhere is gone
//! at once. What was typed before a question was seen answers nothing: see [`Guard`].

use std::collections::VecDeque;

use anyhow::{Context as _, bail};
use crossterm::event::{Event as Key, EventStream, KeyCode, KeyEvent, KeyModifiers};
use futures_util::StreamExt as _;
use protocol::approval::{AnswerScope, Approval, Choice, Resolved};
use protocol::http::{EVENT_REQUESTED, EVENT_RESOLVED};
use tokio::signal::unix::{SignalKind, signal};

use crate::approval::{answer, respond, show};
use crate::asked::{self, Answered, Guard, can_be, key};
use crate::chat::editor::{Editor, Typed};
use crate::chat::history::History;
use crate::chat::screen::{Frame, Screen};
use crate::chat::text::{clip, width};
use crate::chat::until;
use crate::client::{Client, Event, encoded};
use crate::console::printable;
use crate::ids::short;
use crate::paint::{CYAN, DIM, RED, paint};

/// Who looks at the questions, and how far they are with the first.
struct Watch<'a> {
    client: &'a Client,
    screen: Screen,
    /// The open ones; the first is on the screen.
    open: VecDeque<Approval>,
    /// Those that are to be asked again later.
    later: VecDeque<Approval>,
    guard: Guard,
    focus: Focus,
    editor: Editor,
    /// What is typed here is not kept.
    history: History,
    leaving: bool,
}

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// The question.
    Question,
    /// The reason for a no.
    Reason,
    /// The grants of a yes that goes so far.
    Grants(AnswerScope),
}

/// Shows what is open, then what comes, one question after the other.
pub(super) async fn watch(client: &Client) -> anyhow::Result<()> {
    let screen = Screen::open()?;
    if !screen.is_terminal() {
        // What comes through a pipe may have been written before any question was.
        bail!(
            "`ward approvals watch` needs a terminal, to show the questions and to read keys. `ward approvals` lists them, and `ward approvals allow ID` and `ward approvals deny ID` answer without one."
        );
    }
    let mut watch = Watch {
        client,
        screen,
        open: VecDeque::new(),
        later: VecDeque::new(),
        guard: Guard::default(),
        focus: Focus::Question,
        editor: Editor::default(),
        history: History::default(),
        leaving: false,
    };
    watch.run().await
}

impl Watch<'_> {
    async fn run(&mut self) -> anyhow::Result<()> {
        let mut keys = EventStream::new();
        let mut events = self.client.follow("/approvals/events?front=true").await?;
        let catch = |kind| signal(kind).context("Ward could not prepare for signals");
        let mut terminate = catch(SignalKind::terminate())?;
        let mut hangup = catch(SignalKind::hangup())?;
        while !self.leaving {
            self.screen.draw(self.frame())?;
            let due = self.guard.due();
            tokio::select! {
                // Keys that wait come before the moment from which on they count.
                biased;
                _ = terminate.recv() => break,
                _ = hangup.recv() => break,
                key = keys.next() => match key {
                    Some(Ok(key)) => self.pressed(key).await?,
                    Some(Err(_)) | None => break,
                },
                event = events.next() => match event? {
                    Some(event) => self.happened(event).await?,
                    None => bail!("Ward has ended."),
                },
                () = until(due) => self.due().await?,
            }
        }
        self.screen.draw(Frame::default())
    }

    async fn happened(&mut self, event: Event) -> anyhow::Result<()> {
        match event.kind.as_str() {
            EVENT_REQUESTED => {
                let id = event.data.get("id").and_then(|id| id.as_str());
                let known = |id: &str| {
                    let mut all = self.open.iter().chain(&self.later);
                    all.any(|approval| approval.id == id)
                };
                let Some(id) = id.filter(|id| !known(id)) else {
                    return Ok(());
                };
                // The event has it redacted; and by now it may be closed.
                if let Ok(approval) = self.look_up(id).await {
                    self.open.push_back(approval);
                    if self.open.len() == 1 {
                        self.show()?;
                    }
                }
                Ok(())
            }
            EVENT_RESOLVED => {
                let resolved: Resolved = serde_json::from_value(event.data)
                    .context("Ward's answer is not what was expected")?;
                self.resolved(&resolved)
            }
            _ => Ok(()),
        }
    }

    /// A question was closed. Those that were answered here are not open any more.
    fn resolved(&mut self, resolved: &Resolved) -> anyhow::Result<()> {
        let id = &resolved.approval_id;
        self.later.retain(|approval| approval.id != *id);
        if self.open.front().is_some_and(|first| first.id == *id) {
            self.print(&asked::closed(resolved, Answered::Elsewhere));
            return self.next();
        }
        self.open.retain(|approval| approval.id != *id);
        Ok(())
    }

    async fn look_up(&self, id: &str) -> anyhow::Result<Approval> {
        let path = format!("/approvals/{}", encoded(id));
        self.client.get(&path).await
    }

    /// The first is done with; the next takes its place.
    fn next(&mut self) -> anyhow::Result<()> {
        self.open.pop_front();
        self.screen.print("");
        self.show()
    }

    /// Shows the first, whole. Keys are for it a moment later.
    fn show(&mut self) -> anyhow::Result<()> {
        self.editor.clear();
        self.focus = Focus::Question;
        self.guard.clear();
        let Some(approval) = self.open.front() else {
            return Ok(());
        };
        let mut text = Vec::new();
        show(&mut text, approval)?;
        for line in String::from_utf8_lossy(&text).lines() {
            self.screen.print(line);
        }
        self.guard.shown();
        self.screen.draw(self.frame())?;
        // The moment begins when all of it is written, however long that took.
        self.guard.shown();
        Ok(())
    }

    async fn pressed(&mut self, key: Key) -> anyhow::Result<()> {
        match (key, self.focus) {
            (Key::Key(key), _) if key.is_press() || key.is_repeat() => self.key(key).await,
            (Key::Paste(_), Focus::Question) => {
                self.guard.shown();
                Ok(())
            }
            (Key::Paste(text), Focus::Reason | Focus::Grants(_)) => {
                self.editor.insert(&text);
                Ok(())
            }
            (Key::Resize(..), _) => {
                self.screen.measure();
                Ok(())
            }
            (Key::Key(_) | Key::FocusGained | Key::FocusLost | Key::Mouse(_), _) => Ok(()),
        }
    }

    async fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.focus) {
            (KeyCode::Char('z'), _) if control => self.screen.pause(),
            (KeyCode::Char('c' | 'd'), Focus::Question) if control => {
                self.leaving = true;
                Ok(())
            }
            (_, Focus::Question) => {
                self.question_key(key);
                Ok(())
            }
            (KeyCode::Char('c'), _) if control => self.go_back(),
            (KeyCode::Esc, _) => self.go_back(),
            (_, Focus::Reason | Focus::Grants(_)) => match self.editor.key(key, &self.history) {
                Typed::Line(line) => self.entered(&line).await,
                Typed::Edited | Typed::Nothing => Ok(()),
            },
        }
    }

    /// A single key answers; of a word that is typed, none does.
    fn question_key(&mut self, key: KeyEvent) {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let KeyCode::Char(letter) = key.code else {
            // Enter and the like are no words.
            return;
        };
        let alone = self.guard.is_ready() && self.guard.unpress().is_none();
        let answers = match (letter, self.open.front()) {
            ('a' | 'd' | 'l', Some(_)) => true,
            ('s', Some(first)) => can_be(first, AnswerScope::Session),
            ('w', Some(first)) => can_be(first, AnswerScope::Workspace),
            (_, None) => letter == 'l' && !self.later.is_empty(),
            (_, Some(_)) => false,
        };
        // Whoever types something else begins to look only when that is over.
        match alone && plain && answers {
            true => self.guard.press(letter),
            false => self.guard.shown(),
        }
    }

    /// Something is due: keys count, or one was alone for long enough.
    async fn due(&mut self) -> anyhow::Result<()> {
        self.guard.opens();
        match self.guard.meant() {
            Some('a') => {
                self.answer(Choice::Allow, AnswerScope::Once, None, None)
                    .await
            }
            Some('s') => self.ask_for_grants(AnswerScope::Session),
            Some('w') => self.ask_for_grants(AnswerScope::Workspace),
            Some('d') => {
                self.focus = Focus::Reason;
                Ok(())
            }
            Some(_) => self.put_off(),
            None => Ok(()),
        }
    }

    /// A yes for longer: the person sees its grants, and can narrow them.
    fn ask_for_grants(&mut self, scope: AnswerScope) -> anyhow::Result<()> {
        let Some(first) = self.open.front() else {
            return Ok(());
        };
        let patterns = first.questions.iter();
        let patterns: Vec<&str> = patterns.filter_map(|one| one.pattern.as_deref()).collect();
        let mut offered: Vec<&str> = Vec::new();
        for pattern in patterns {
            if !offered.contains(&pattern) {
                offered.push(pattern);
            }
        }
        if offered
            .iter()
            .any(|pattern| printable(pattern) != **pattern)
        {
            // What moves the cursor cannot be edited where the cursor is.
            let told = format!(
                "✗ The grant has characters that cannot be shown. `ward approvals allow {} --scope …` makes it.",
                short(&first.id)
            );
            self.print(&[paint(RED, &told)]);
            return Ok(());
        }
        self.editor.set(offered.join("\n"));
        self.focus = Focus::Grants(scope);
        Ok(())
    }

    /// To the next; this one is asked again when the person wants it. Without any left, that is now.
    fn put_off(&mut self) -> anyhow::Result<()> {
        match self.open.pop_front() {
            Some(first) => {
                self.print(&[paint(DIM, "  · later")]);
                self.screen.print("");
                self.later.push_back(first);
            }
            None => self.open = std::mem::take(&mut self.later),
        }
        self.show()
    }

    /// A line is complete.
    async fn entered(&mut self, line: &str) -> anyhow::Result<()> {
        match self.focus {
            Focus::Question => Ok(()),
            Focus::Reason => {
                let reason = Some(line.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.answer(Choice::Deny, AnswerScope::Once, reason, None)
                    .await
            }
            Focus::Grants(scope) => {
                let patterns = line.lines().map(str::trim).filter(|line| !line.is_empty());
                let patterns: Vec<String> = patterns.map(ToOwned::to_owned).collect();
                if patterns.is_empty() {
                    return self.go_back();
                }
                self.answer(Choice::Allow, scope, None, Some(patterns))
                    .await
            }
        }
    }

    /// Back to the question, which is still to be answered.
    fn go_back(&mut self) -> anyhow::Result<()> {
        self.editor.clear();
        self.focus = Focus::Question;
        self.guard.shown();
        Ok(())
    }

    async fn answer(
        &mut self,
        choice: Choice,
        scope: AnswerScope,
        reason: Option<String>,
        patterns: Option<Vec<String>>,
    ) -> anyhow::Result<()> {
        let Some(first) = self.open.front() else {
            return Ok(());
        };
        let params = answer(choice, scope, first.digest.clone(), reason, patterns);
        match respond(self.client, first, &params).await {
            Ok(resolved) => {
                self.print(&asked::closed(&resolved, Answered::Here));
                self.next()
            }
            Err(error) => {
                let told = printable(&format!("✗ {error:#}"));
                let still = self.look_up(&first.id).await;
                self.print(&[paint(RED, &told)]);
                match still {
                    // As it is now: it may be another than the one that was answered.
                    Ok(approval) => {
                        self.open[0] = approval;
                        self.show()
                    }
                    Err(_) => self.next(),
                }
            }
        }
    }

    fn print(&mut self, rows: &[String]) {
        for row in rows {
            self.screen.print(row);
        }
    }

    /// What stands below: what can be done now, and what is typed.
    fn frame(&self) -> Frame {
        let columns = self.screen.columns();
        let room = columns.saturating_sub(1);
        let dim = |text: &str| paint(DIM, &clip(text, room));
        let (status, prompt) = match (self.open.front(), self.focus) {
            (None, _) if self.later.is_empty() => {
                (dim("Waiting for questions; Ctrl-C ends."), None)
            }
            (None, _) => {
                let told = format!(
                    "Waiting for questions; {} put off, l asks again; Ctrl-C ends.",
                    self.later.len()
                );
                (dim(&told), None)
            }
            (Some(_), Focus::Question) if !self.guard.is_ready() => (dim("…"), None),
            (Some(first), Focus::Question) => {
                let keys = asked::keys(first);
                (format!("{keys}  {}", key('l', "ater")), None)
            }
            (Some(_), Focus::Reason) => (
                dim("Enter denies, Esc goes back"),
                Some("why not (Enter for no reason)? "),
            ),
            (Some(_), Focus::Grants(_)) => (
                dim("Enter says yes to exactly this, Esc goes back"),
                Some("grant "),
            ),
        };
        let mut rows = vec![status];
        let Some(prompt) = prompt else {
            return Frame {
                rows,
                cursor: (0, 0),
            };
        };
        let indent = width(prompt);
        let (typed, cursor) = self.editor.rows(indent, columns);
        for (at, row) in typed.iter().enumerate() {
            let before = match at {
                0 => paint(CYAN.bold(), prompt),
                _ => " ".repeat(indent),
            };
            rows.push(format!("{before}{row}"));
        }
        Frame {
            rows,
            cursor: (1 + cursor.0, cursor.1),
        }
    }
}
