//! What stands below the conversation: words under way, how far the agent is, the line.

use super::screen::Frame;
use super::text::{clip, width};
use super::{Chat, Focus};
use crate::console::printable;
use crate::paint::{CYAN, DIM, RED, YELLOW, paint};

impl Chat {
    pub(super) fn frame(&self) -> Frame {
        let columns = self.screen.columns();
        let mut rows = self.conversation.partial(columns);
        let most = self.screen.room();
        if rows.len() > most {
            rows.drain(..rows.len() - most);
        }
        rows.push(String::new());
        rows.push(self.status(columns));
        let prompt = match &self.focus {
            Focus::Line | Focus::Question => "› ",
            Focus::Reason(_) => "why not (Enter for no reason)? ",
            Focus::Choice(_) => "which (Enter for none)? ",
        };
        let indent = width(prompt);
        let (typed, cursor) = self.editor.rows(indent, columns);
        let above = rows.len();
        // A line that is longer than the terminal is high is seen around the cursor.
        let first = cursor.0.saturating_sub(most);
        for (at, row) in typed.iter().enumerate().skip(first).take(most + 1) {
            let before = match at {
                0 => paint(CYAN.bold(), prompt),
                _ => " ".repeat(indent),
            };
            rows.push(format!("{before}{row}"));
        }
        Frame {
            rows,
            cursor: (above + cursor.0 - first, cursor.1),
        }
    }

    /// One row: what can be done now, or who one talks with.
    fn status(&self, columns: usize) -> String {
        let columns = columns.saturating_sub(1);
        if self.armed && self.conversation.since.is_none() {
            return paint(YELLOW, &clip("Ctrl-C once more leaves", columns));
        }
        if let Some(asked) = self.questions.first() {
            return match self.focus {
                Focus::Question => asked.keys(),
                Focus::Reason(_) => paint(DIM, &clip("Enter denies, Esc goes back", columns)),
                Focus::Line | Focus::Choice(_) if self.questions.guard.is_ready() => {
                    let told = "The agent asks, above. Tab answers it.";
                    paint(YELLOW, &clip(told, columns))
                }
                Focus::Line | Focus::Choice(_) => paint(DIM, "…"),
            };
        }
        if let Some(since) = self.conversation.since {
            let seconds = since.elapsed().as_secs();
            let what = if self.conversation.acts() {
                "acting"
            } else {
                "thinking"
            };
            let told = format!("● {what} · {seconds} s · Ctrl-C cancels");
            return paint(CYAN, &clip(&told, columns));
        }
        let full = self.mode() == protocol::Mode::Full;
        let told = format!(
            "{} · {} · {}",
            printable(&self.role()),
            printable(&self.model()),
            self.mode()
        );
        let place = printable(&home(&self.beginning.workspace.to_string_lossy()));
        let style = if full { RED } else { DIM };
        let room = columns.saturating_sub(width(&told) + 3);
        match width(&place) <= room {
            true => paint(style, &format!("{told} · {place}")),
            false => paint(style, &clip(&told, columns)),
        }
    }

    pub(super) fn role(&self) -> String {
        match self.session {
            Some(_) => self.conversation.role.clone(),
            None => {
                let usual = policy::builtin::DEFAULT_ROLE;
                let named = self.beginning.role.clone();
                named.unwrap_or_else(|| usual.to_owned())
            }
        }
    }

    pub(super) fn model(&self) -> String {
        match self.session {
            Some(_) => self.conversation.model.clone(),
            None => {
                let named = self.beginning.model.clone();
                named.unwrap_or_else(|| self.usual.clone())
            }
        }
    }

    pub(super) fn mode(&self) -> protocol::Mode {
        let asked = self.beginning.mode.unwrap_or(protocol::Mode::Sandbox);
        match self.session {
            Some(_) => self.conversation.mode.unwrap_or(asked),
            None => asked,
        }
    }
}

/// A path below the home folder, as people write it.
pub(super) fn home(path: &str) -> String {
    let home = std::env::home_dir();
    let below = home.and_then(|home| {
        let below = std::path::Path::new(path).strip_prefix(&home).ok()?;
        Some(match below.as_os_str().is_empty() {
            true => "~".to_owned(),
            false => format!("~/{}", below.display()),
        })
    });
    below.unwrap_or_else(|| path.to_owned())
}
