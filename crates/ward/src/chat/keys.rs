//! What a key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use protocol::approval::{AnswerScope, Choice};

use super::editor::Typed;
use super::{Chat, Focus};

impl Chat {
    pub(super) async fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return self.interrupted().await,
            KeyCode::Char('d') if control && self.editor.is_empty() => {
                self.leaving = true;
                return Ok(());
            }
            KeyCode::Char('z') if control => return self.screen.pause(),
            _ => self.armed = false,
        }
        match self.focus {
            Focus::Question => {
                self.question_key(key);
                Ok(())
            }
            Focus::Line if key.code == KeyCode::Tab => {
                if !self.questions.is_empty() && self.questions.guard.is_ready() {
                    self.focus = Focus::Question;
                }
                Ok(())
            }
            Focus::Reason(_) | Focus::Choice(_) if key.code == KeyCode::Esc => {
                self.leave_question();
                self.turn_to_question();
                Ok(())
            }
            Focus::Line | Focus::Reason(_) | Focus::Choice(_) => {
                match self.editor.key(key, &self.history) {
                    Typed::Line(line) => self.entered(line).await,
                    Typed::Edited | Typed::Nothing => Ok(()),
                }
            }
        }
    }

    /// A single key answers; a word is typed into the line, whatever it begins with.
    fn question_key(&mut self, key: KeyEvent) {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let before = self.questions.guard.unpress();
        match (key.code, before) {
            (KeyCode::Char(answer @ ('a' | 's' | 'w' | 'd')), None) if plain => {
                self.questions.guard.press(answer);
            }
            (KeyCode::Tab | KeyCode::Esc, _) => self.focus = Focus::Line,
            (KeyCode::Char(_), before) => {
                self.focus = Focus::Line;
                if let Some(before) = before {
                    self.editor.insert(&before.to_string());
                }
                self.editor.key(key, &self.history);
            }
            _ => {}
        }
    }

    /// A no may have a reason.
    pub(super) fn ask_why(&mut self) {
        let typed = self.editor.text().to_owned();
        self.editor.clear();
        self.focus = Focus::Reason(typed);
    }

    /// A line is complete.
    async fn entered(&mut self, line: String) -> anyhow::Result<()> {
        match std::mem::take(&mut self.focus) {
            Focus::Line | Focus::Question => {
                self.history.add(&line);
                self.submit(&line).await?;
            }
            Focus::Reason(typed) => {
                self.editor.set(typed);
                let reason = Some(line.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.answer(Choice::Deny, AnswerScope::Once, reason).await?;
            }
            Focus::Choice(sessions) => self.chose(&line, &sessions).await?,
        }
        self.turn_to_question();
        Ok(())
    }

    /// Back to the line, with what was typed in it.
    pub(super) fn leave_question(&mut self) {
        match std::mem::take(&mut self.focus) {
            Focus::Reason(typed) => self.editor.set(typed),
            Focus::Choice(_) => self.editor.clear(),
            Focus::Line | Focus::Question => {}
        }
    }

    /// Ctrl-C: what runs is cancelled; then what was typed goes; then the second one leaves.
    async fn interrupted(&mut self) -> anyhow::Result<()> {
        if matches!(self.focus, Focus::Reason(_) | Focus::Choice(_)) {
            self.leave_question();
            self.turn_to_question();
        } else if self.conversation.since.is_some() {
            self.cancel().await;
            self.armed = true;
        } else if !self.editor.is_empty() {
            self.editor.clear();
        } else if self.armed {
            self.leaving = true;
        } else {
            self.armed = true;
        }
        Ok(())
    }
}
