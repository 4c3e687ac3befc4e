//! A question that is answered by a key, wherever it is shown: which keys there are, when one
//! counts, and how the question was closed.

use std::time::Duration;

use protocol::approval::{AnswerScope, Approval, Resolution, Resolved};
use tokio::time::Instant;

use crate::console::printable;
use crate::paint::{BOLD, DIM, GREEN, RED, YELLOW, paint};

/// How long a question is seen before keys answer it: whoever was just typing did not mean it.
const MOMENT: Duration = Duration::from_millis(400);
/// How long a key that answers is alone before it does: whoever types a word did not mean it.
const ALONE: Duration = Duration::from_millis(250);

/// Keeps a question from keys that were not meant for it.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// When keys count.
    ready_at: Option<Instant>,
    /// A key that answers, once no other has followed.
    pressed: Option<(char, Instant)>,
}

impl Guard {
    /// A question is on the screen, whole, from now on.
    pub(crate) fn shown(&mut self) {
        self.ready_at = Some(Instant::now() + MOMENT);
        self.pressed = None;
    }

    /// There is no question any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When something is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let pressed = self.pressed.map(|(_, at)| at);
        self.ready_at.into_iter().chain(pressed).min()
    }

    /// Whether keys count. Not before it was looked whether any came too early, however late that
    /// is.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready_at.is_none()
    }

    /// A key that answers was pressed; it does when no other follows.
    pub(crate) fn press(&mut self, key: char) {
        self.pressed = Some((key, Instant::now() + ALONE));
    }

    /// Another key followed: neither answers.
    pub(crate) fn unpress(&mut self) -> Option<char> {
        self.pressed.take().map(|(key, _)| key)
    }

    /// Whether keys count from this moment on.
    pub(crate) fn opens(&mut self) -> bool {
        self.ready_at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// The key that was alone for long enough.
    pub(crate) fn meant(&mut self) -> Option<char> {
        let meant = self.pressed.take_if(|(_, at)| *at <= Instant::now());
        meant.map(|(key, _)| key)
    }
}

/// Whether a yes can go so far.
pub(crate) fn can_be(approval: &Approval, scope: AnswerScope) -> bool {
    let mut questions = approval.questions.iter();
    let mut lasting = || questions.all(|question| question.pattern.is_some());
    match scope {
        AnswerScope::Once => true,
        AnswerScope::Session => approval.session_id.is_some() && lasting(),
        AnswerScope::Workspace => lasting(),
    }
}

/// The keys that answer it.
pub(crate) fn keys(approval: &Approval) -> String {
    let mut keys = vec![key('a', "llow once")];
    if can_be(approval, AnswerScope::Session) {
        keys.push(key('s', "ession"));
    }
    if can_be(approval, AnswerScope::Workspace) {
        keys.push(key('w', "orkspace"));
    }
    keys.push(key('d', "eny"));
    keys.join("  ")
}

/// A key and what it does.
pub(crate) fn key(letter: char, does: &str) -> String {
    format!("{}{}", paint(BOLD, &format!("[{letter}]")), does)
}

/// Where a question was answered that is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    Here,
    Elsewhere,
}

/// How it was closed, in rows.
pub(crate) fn closed(resolved: &Resolved, answered: Answered) -> Vec<String> {
    let by = match (answered, &resolved.by) {
        (Answered::Elsewhere, Some(by)) => format!(" by {}, elsewhere", printable(by)),
        (Answered::Elsewhere, None) | (Answered::Here, _) => String::new(),
    };
    let (style, how) = match (resolved.resolution, resolved.scope) {
        (Resolution::Allowed, Some(AnswerScope::Session)) => (GREEN, "✓ allowed for this session"),
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
        rows.push(paint(DIM, &format!("    granted  {}", printable(pattern))));
    }
    rows
}
