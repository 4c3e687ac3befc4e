//! What the agent asks, one question after the other, and the person's answers.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use protocol::approval::{AnswerScope, Approval, Choice, Resolution};
use protocol::session::{PermissionRequested, PermissionResolved};
use tokio::time::Instant;

use super::text::{Span, wrap};
use super::view::key;
use super::{Chat, Focus};
use crate::approval::{answer, headline, respond, show_what};
use crate::console::printable;
use crate::paint::{DIM, GREEN, RED, YELLOW, paint};

/// How long a question is seen before keys answer it: whoever was just typing did not mean it.
const MOMENT: Duration = Duration::from_millis(400);
/// How long a key that answers is alone before it does: whoever types a word did not mean it.
const ALONE: Duration = Duration::from_millis(250);
/// A question is told a moment before it can be answered: for what is so new, that is waited for.
const NEW: u64 = 2000;
const LOOKS: usize = 40;
const BETWEEN: Duration = Duration::from_millis(5);

/// The questions that are open.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<Asked>,
    /// When keys answer the first.
    ready_at: Option<Instant>,
    /// A key that answers, once no other has followed.
    pressed: Option<(char, Instant)>,
    /// Those that were answered here.
    answered: HashSet<String>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Asked {
    approval: Approval,
    /// Whether a sub-agent asks.
    below: bool,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&Asked> {
        self.open.front()
    }

    /// When something is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let pressed = self.pressed.map(|(_, at)| at);
        self.ready_at.into_iter().chain(pressed).min()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready_at.is_none()
    }

    /// A key that answers was pressed; it does when no other follows.
    pub(crate) fn press(&mut self, key: char) {
        self.pressed = Some((key, Instant::now() + ALONE));
    }

    /// Another key followed: both are for the line.
    pub(crate) fn unpress(&mut self) -> Option<char> {
        self.pressed.take().map(|(key, _)| key)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.ready_at = None;
        self.pressed = None;
    }
}

impl Asked {
    /// Whether an answer can hold for longer, and in the session too.
    fn scopes(&self) -> (bool, bool) {
        let mut questions = self.approval.questions.iter();
        let lasting = questions.all(|question| question.pattern.is_some());
        (lasting && self.approval.session_id.is_some(), lasting)
    }

    /// The keys that answer it.
    pub(crate) fn keys(&self) -> String {
        let (session, workspace) = self.scopes();
        let mut keys = vec![key('a', "llow once")];
        if session {
            keys.push(key('s', "ession"));
        }
        if workspace {
            keys.push(key('w', "orkspace"));
        }
        keys.push(key('d', "eny"));
        format!("{}  {}", keys.join("  "), paint(DIM, "Tab: type"))
    }
}

impl Chat {
    /// A question was opened. It may be closed by now: the events tell what was, too.
    pub(super) async fn asked(&mut self, asked: &PermissionRequested) -> anyhow::Result<()> {
        let Some(approval) = self.look_up(&asked.approval).await else {
            return Ok(());
        };
        let asked = Asked {
            approval,
            below: asked.child.is_some(),
        };
        if !self.screen.is_terminal() {
            return self.refuse(asked).await;
        }
        self.questions.open.push_back(asked);
        if self.questions.open.len() == 1 {
            self.show_question()?;
        }
        Ok(())
    }

    /// A question was closed, here or by another client.
    pub(super) fn resolved(&mut self, closed: &PermissionResolved) -> anyhow::Result<()> {
        let resolved = &closed.resolved;
        let id = &resolved.approval_id;
        let elsewhere = !self.questions.answered.remove(id);
        let by = match (elsewhere, &resolved.by) {
            (true, Some(by)) if self.is_open(id) => format!(" by {}, elsewhere", printable(by)),
            _ => String::new(),
        };
        let (style, how) = match (resolved.resolution, resolved.scope) {
            (Resolution::Allowed, Some(AnswerScope::Session)) => {
                (GREEN, "✓ allowed for this session")
            }
            (Resolution::Allowed, Some(AnswerScope::Workspace)) => {
                (GREEN, "✓ allowed in this workspace")
            }
            (Resolution::Allowed, _) => (GREEN, "✓ allowed once"),
            (Resolution::Denied, _) => (RED, "✗ denied"),
            (Resolution::Changed, _) => (YELLOW, "· what it was about has changed"),
            (Resolution::Expired, _) => (YELLOW, "· nobody answered in time"),
            (Resolution::Withdrawn, _) => (YELLOW, "· no longer asked"),
        };
        let why = match &resolved.reason {
            Some(reason) if !reason.is_empty() => format!(": {}", printable(reason)),
            _ => String::new(),
        };
        let mut rows = vec![paint(style, &format!("  {how}{by}{why}"))];
        for pattern in &resolved.grants {
            let told = format!("    granted  {}", printable(pattern));
            rows.push(paint(DIM, &told));
        }
        let mut lines = Vec::new();
        self.conversation.closed(rows, &mut lines);
        self.print(&lines);
        self.close(id)
    }

    /// Something is due: the question can be answered, or a key was alone for long enough.
    pub(super) async fn due(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        if self.questions.ready_at.is_some_and(|at| at <= now) {
            self.questions.ready_at = None;
            self.turn_to_question();
        }
        if self.questions.pressed.is_some_and(|(_, at)| at <= now)
            && let Some(key) = self.questions.unpress()
        {
            let allow = Choice::Allow;
            match key {
                'a' => self.answer(allow, AnswerScope::Once, None).await?,
                's' => self.answer(allow, AnswerScope::Session, None).await?,
                'w' => self.answer(allow, AnswerScope::Workspace, None).await?,
                _ => self.ask_why(),
            }
        }
        Ok(())
    }

    /// Keys are for the question, unless something is being typed.
    pub(super) fn turn_to_question(&mut self) {
        let ready = !self.questions.is_empty() && self.questions.is_ready();
        if ready && self.editor.is_empty() && matches!(self.focus, Focus::Line) {
            self.focus = Focus::Question;
        }
    }

    /// Answers the question in front.
    pub(super) async fn answer(
        &mut self,
        choice: Choice,
        scope: AnswerScope,
        reason: Option<String>,
    ) -> anyhow::Result<()> {
        let Some(asked) = self.questions.open.front() else {
            return Ok(());
        };
        let (session, workspace) = asked.scopes();
        match scope {
            AnswerScope::Session if !session => return Ok(()),
            AnswerScope::Workspace if !workspace => return Ok(()),
            AnswerScope::Once | AnswerScope::Session | AnswerScope::Workspace => {}
        }
        let approval = asked.approval.clone();
        let params = answer(choice, scope, approval.digest.clone(), reason, None);
        // Before it is sent: the events may tell of it before its own answer is here.
        self.questions.answered.insert(approval.id.clone());
        if let Err(error) = respond(&self.client, &approval, &params).await {
            self.questions.answered.remove(&approval.id);
            self.sorry(&error);
        }
        self.close(&approval.id)
    }

    fn is_open(&self, id: &str) -> bool {
        let mut open = self.questions.open.iter();
        open.any(|asked| asked.approval.id == id)
    }

    /// The question is gone; the next one takes its place.
    fn close(&mut self, id: &str) -> anyhow::Result<()> {
        let was_first = self
            .questions
            .first()
            .is_some_and(|asked| asked.approval.id == id);
        self.questions.open.retain(|asked| asked.approval.id != id);
        if !was_first {
            return Ok(());
        }
        self.questions.ready_at = None;
        self.questions.pressed = None;
        self.leave_question();
        if !self.questions.is_empty() {
            self.show_question()?;
        }
        Ok(())
    }

    fn show_question(&mut self) -> anyhow::Result<()> {
        let Some(asked) = self.questions.first() else {
            return Ok(());
        };
        let who = match asked.below {
            true => format!("{}, a sub-agent, asks to", printable(&asked.approval.role)),
            false => "The agent asks to".to_owned(),
        };
        let head = format!("▲ {who} {}", headline(&asked.approval));
        let mut text = Vec::new();
        show_what(&mut text, &asked.approval)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let head = [Span::new(YELLOW.bold(), &head)];
        let mut rows = wrap(&head, self.screen.columns(), 2);
        rows.extend(text.lines().map(ToOwned::to_owned));
        let mut lines = Vec::new();
        self.conversation.block(rows, &mut lines);
        self.print(&lines);
        self.questions.ready_at = Some(Instant::now() + MOMENT);
        Ok(())
    }

    /// Where nobody can be asked, no answer is a no.
    async fn refuse(&mut self, asked: Asked) -> anyhow::Result<()> {
        let told = format!(
            "▲ The agent asks to {}. Nobody can be asked here, so it is denied; `ward chat` in a terminal asks.",
            headline(&asked.approval)
        );
        self.screen.print(&told);
        self.questions.open.push_front(asked);
        let why = "Nobody can be asked: the conversation is read from a pipe.".to_owned();
        self.answer(Choice::Deny, AnswerScope::Once, Some(why))
            .await
    }

    /// The question whole, if it is still open.
    async fn look_up(&self, told: &Approval) -> Option<Approval> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        let is_new = now.saturating_sub(told.asked_at) < NEW;
        let path = format!("/approvals/{}", told.id);
        for look in 0..LOOKS {
            match self.client.get(&path).await {
                Ok(approval) => return Some(approval),
                Err(_) if is_new && look + 1 < LOOKS => tokio::time::sleep(BETWEEN).await,
                Err(_) => return None,
            }
        }
        None
    }
}
