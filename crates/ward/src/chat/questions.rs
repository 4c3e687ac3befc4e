//! What the agent asks, one question after the other, and the person's answers.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use protocol::approval::{AnswerScope, Approval, Choice};
use protocol::session::{PermissionRequested, PermissionResolved};

use super::text::{Span, wrap};
use super::{Chat, Focus};
use crate::approval::{answer, headline, respond, show_what};
use crate::asked::{self, Answered, Guard, can_be};
use crate::console::printable;
use crate::paint::{DIM, YELLOW, paint};

/// A question is told a moment before it can be answered: for what is so new, that is waited for.
const NEW: u64 = 2000;
const LOOKS: usize = 40;
const BETWEEN: Duration = Duration::from_millis(5);

/// The questions that are open.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<Asked>,
    /// When keys answer the first.
    pub(crate) guard: Guard,
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

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.guard.clear();
    }
}

impl Asked {
    /// The keys that answer it.
    pub(crate) fn keys(&self) -> String {
        let keys = asked::keys(&self.approval);
        format!("{keys}  {}", paint(DIM, "Tab: type"))
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
        let answered = match elsewhere && self.is_open(id) {
            true => Answered::Elsewhere,
            false => Answered::Here,
        };
        let rows = asked::closed(resolved, answered);
        let mut lines = Vec::new();
        self.conversation.closed(rows, &mut lines);
        self.print(&lines);
        self.close(id)
    }

    /// Something is due: the question can be answered, or a key was alone for long enough.
    pub(super) async fn due(&mut self) -> anyhow::Result<()> {
        if self.questions.guard.opens() {
            self.turn_to_question();
        }
        if let Some(key) = self.questions.guard.meant() {
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
        let ready = !self.questions.is_empty() && self.questions.guard.is_ready();
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
        if !can_be(&asked.approval, scope) {
            return Ok(());
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
        self.questions.guard.clear();
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
        self.questions.guard.shown();
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
