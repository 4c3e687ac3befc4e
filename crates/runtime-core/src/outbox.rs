//! What a handler has said and the driver has not yet passed on: coalesced, and with a limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use notebook::{Bundle, OutputId, SessionState, StreamKind};

use crate::context::Question;
use crate::media;

/// How many bytes of text one run may print.
pub(crate) const MAX_TEXT: usize = 4 << 20;
/// What goes wrong may be said beyond that, up to here.
const MAX_ERRORS: usize = 64 << 10;
/// What a thing that is no text counts for, so that there are not too many of them either.
const AT_LEAST: usize = 16;
/// How many bytes of rich output one run may show.
pub(crate) const MAX_RICH: usize = 64 << 20;

/// Something that a handler said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It printed.
    Terminal {
        /// Where.
        stream: StreamKind,
        /// What.
        text: String,
    },
    /// It showed something.
    Display {
        /// What.
        bundle: Bundle,
        /// Under which id.
        id: Option<OutputId>,
    },
    /// What is shown under an id is another thing.
    Update {
        /// Which.
        id: OutputId,
        /// What it is now.
        bundle: Bundle,
    },
    /// The value of the cell.
    Result {
        /// What.
        bundle: Bundle,
        /// The kernel's number for the run.
        count: Option<u64>,
    },
    /// What went wrong.
    Error {
        /// The kind of error.
        name: String,
        /// What it says.
        value: String,
        /// Where it happened.
        traceback: Vec<String>,
    },
    /// More of a text in Markdown.
    Markdown(String),
    /// What the cell shows is gone.
    Clear {
        /// Only once the next thing comes.
        wait: bool,
    },
    /// The kernel's number for the run.
    Count(u64),
    /// What the runtime is doing.
    Status(SessionState),
    /// Some of it was not kept.
    Dropped(u64),
}

impl Said {
    fn text(&self) -> usize {
        match self {
            Self::Terminal { text, .. } | Self::Markdown(text) => text.len(),
            Self::Error {
                name,
                value,
                traceback,
            } => {
                let lines: usize = traceback.iter().map(String::len).sum();
                AT_LEAST + name.len() + value.len() + lines
            }
            Self::Display { .. }
            | Self::Update { .. }
            | Self::Result { .. }
            | Self::Clear { .. }
            | Self::Count(_)
            | Self::Status(_)
            | Self::Dropped(_) => AT_LEAST,
        }
    }

    fn rich(&self) -> usize {
        match self {
            Self::Display { bundle, .. }
            | Self::Update { bundle, .. }
            | Self::Result { bundle, .. } => media::size(bundle),
            Self::Terminal { .. }
            | Self::Markdown(_)
            | Self::Error { .. }
            | Self::Clear { .. }
            | Self::Count(_)
            | Self::Status(_)
            | Self::Dropped(_) => 0,
        }
    }

    /// Whether it can wait a moment for more of its kind.
    fn can_wait(&self) -> bool {
        matches!(self, Self::Terminal { .. } | Self::Dropped(_))
    }
}

/// What one run has said. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Outbox(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    said: Vec<Said>,
    text: usize,
    rich: usize,
    cancelled: bool,
    question: Option<Question>,
    /// The answer to the question that was asked last, once there is one.
    answer: Option<Option<String>>,
    driver: Option<Waker>,
    handlers: Vec<Waker>,
}

impl Outbox {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes something in; beyond the limit only that it was dropped.
    pub(crate) fn say(&self, said: Said) {
        let mut state = self.state();
        let said = state.within_limits(said);
        match (state.said.last_mut(), said) {
            (
                Some(Said::Terminal { stream, text }),
                Said::Terminal {
                    stream: same,
                    text: more,
                },
            ) if *stream == same => text.push_str(&more),
            (Some(Said::Markdown(text)), Said::Markdown(more)) => text.push_str(&more),
            (Some(Said::Dropped(bytes)), Said::Dropped(more)) => *bytes += more,
            (_, said) => state.said.push(said),
        }
        wake(state.driver.take());
    }

    /// All that was said since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Said> {
        std::mem::take(&mut self.state().said)
    }

    /// Whether there is something to pass on: `now` also what could wait for more.
    pub(crate) fn is_due(&self, now: bool, cx: &mut Context<'_>) -> bool {
        let mut state = self.state();
        state.driver = Some(cx.waker().clone());
        let mut said = state.said.iter();
        (now && !state.said.is_empty()) || said.any(|said| !said.can_wait())
    }

    /// Tells the handler that somebody wants it to stop.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        for waker in state.handlers.drain(..) {
            waker.wake();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    pub(crate) fn wake_when_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.cancelled {
            return Poll::Ready(());
        }
        state.wait(cx)
    }

    pub(crate) fn ask(&self, question: Question) {
        let mut state = self.state();
        state.answer = None;
        state.question = Some(question);
        wake(state.driver.take());
    }

    /// The question that nobody has taken yet.
    pub fn take_question(&self) -> Option<Question> {
        self.state().question.take()
    }

    /// Answers it.
    pub fn answer(&self, answer: Option<String>) {
        let mut state = self.state();
        state.answer = Some(answer);
        for waker in state.handlers.drain(..) {
            waker.wake();
        }
    }

    pub(crate) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        let mut state = self.state();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        if state.cancelled {
            return Poll::Ready(None);
        }
        state.wait(cx)
    }
}

impl State {
    /// The handler is woken once; it may look often.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let known = |waker: &Waker| waker.will_wake(cx.waker());
        if !self.handlers.iter().any(known) {
            self.handlers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn within_limits(&mut self, said: Said) -> Said {
        let (text, rich) = (said.text(), said.rich());
        if self.rich + rich > MAX_RICH {
            return Said::Dropped(rich as u64);
        }
        self.rich += rich;
        let left = MAX_TEXT.saturating_sub(self.text);
        if text <= left {
            self.text += text;
            return said;
        }
        // What goes wrong is said even where too much was printed before, but not at any length.
        match said {
            Said::Error { name, value, .. } if self.text < MAX_TEXT + MAX_ERRORS => {
                let said = Said::Error {
                    name: name.chars().take(200).collect(),
                    value: value.chars().take(2000).collect(),
                    traceback: Vec::new(),
                };
                self.text = self.text.max(MAX_TEXT) + said.text();
                said
            }
            _ => Said::Dropped((text + rich) as u64),
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Said {
        Said::Terminal {
            stream: StreamKind::Stdout,
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_is_printed_piece_by_piece_is_passed_on_as_one() {
        let outbox = Outbox::new();
        outbox.say(printed("a"));
        outbox.say(printed("b"));
        outbox.say(Said::Clear { wait: true });
        outbox.say(printed("c"));
        assert_eq!(
            outbox.take(),
            [printed("ab"), Said::Clear { wait: true }, printed("c")]
        );
        assert_eq!(outbox.take(), []);
    }

    #[test]
    fn a_flood_is_cut_and_said_so_and_an_error_behind_it_is_still_told() {
        let outbox = Outbox::new();
        let megabyte = "x".repeat(1 << 20);
        for _ in 0..100 {
            outbox.say(printed(&megabyte));
        }
        outbox.say(Said::Error {
            name: "E".into(),
            value: "v".into(),
            traceback: vec!["long".repeat(1000)],
        });
        let said = outbox.take();
        let [printed, dropped, error] = said.as_slice() else {
            panic!("{} things", said.len());
        };
        assert_eq!(printed.text(), MAX_TEXT);
        assert_eq!(*dropped, Said::Dropped(96 << 20));
        assert!(matches!(error, Said::Error { traceback, .. } if traceback.is_empty()));
    }
}
