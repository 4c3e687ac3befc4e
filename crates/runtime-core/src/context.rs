//! What a handler has: the cell, and words for what happens in it.

use std::future::poll_fn;
use std::task::Poll;

use notebook::{Bundle, Failed, OutputId, SessionState, StreamKind};

use crate::machine::Job;
use crate::media::{BadBundle, validate_media_bundle};
use crate::outbox::{Outbox, Said};

/// How a handler came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// Well.
    Ok,
    /// The cell failed, or what runs it.
    Failed(Failed),
    /// It was stopped.
    Cancelled,
}

impl Finished {
    /// The cell itself failed, in its own words.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Failed {
            kind: "error".to_owned(),
            message: message.into(),
        })
    }
}

/// A question of a cell to whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub prompt: String,
    /// Whether the answer must not be shown.
    pub password: bool,
}

/// Nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Nobody can be asked for input here.")]
pub struct NoInput;

/// What a handler has: the cell, and words for what happens in it. All of them return at once.
#[derive(Debug, Clone)]
pub struct ExecutionContext {
    job: Job,
    outbox: Outbox,
}

impl ExecutionContext {
    /// A context whose words go there: for drivers, and for tests of a handler.
    #[must_use]
    pub fn new(job: Job, outbox: Outbox) -> Self {
        Self { job, outbox }
    }

    /// The cell, as it was when somebody wanted it to run.
    #[must_use]
    pub fn cell(&self) -> &Job {
        &self.job
    }

    /// Prints.
    pub fn stdout(&self, text: &str) {
        self.print(StreamKind::Stdout, text);
    }

    /// Prints to standard error.
    pub fn stderr(&self, text: &str) {
        self.print(StreamKind::Stderr, text);
    }

    fn print(&self, stream: StreamKind, text: &str) {
        self.outbox.say(Said::Terminal {
            stream,
            text: text.to_owned(),
        });
    }

    /// Shows something; under an id it can become another thing later. Refuses a bundle whose media
    /// types or contents cannot be.
    pub fn display(&self, bundle: Bundle, id: Option<OutputId>) -> Result<(), BadBundle> {
        validate_media_bundle(&bundle)?;
        self.outbox.say(Said::Display { bundle, id });
        Ok(())
    }

    /// Makes what is shown under an id another thing, wherever it is.
    pub fn update_display(&self, id: OutputId, bundle: Bundle) -> Result<(), BadBundle> {
        validate_media_bundle(&bundle)?;
        self.outbox.say(Said::Update { id, bundle });
        Ok(())
    }

    /// Says the value of the cell. One that cannot be shown is left out, and that is said.
    pub fn result(&self, bundle: Bundle) {
        self.result_of(bundle, None);
    }

    /// The same, with the kernel's number for the run.
    pub fn result_of(&self, bundle: Bundle, count: Option<u64>) {
        match validate_media_bundle(&bundle) {
            Ok(()) => self.outbox.say(Said::Result { bundle, count }),
            Err(bad) => self.stderr(&format!("{bad}\n")),
        }
    }

    /// Says what went wrong in the cell.
    pub fn error(&self, name: &str, value: &str, traceback: Vec<String>) {
        self.outbox.say(Said::Error {
            name: name.to_owned(),
            value: value.to_owned(),
            traceback,
        });
    }

    /// Adds to a text in Markdown.
    pub fn markdown(&self, text: &str) {
        self.outbox.say(Said::Markdown(text.to_owned()));
    }

    /// Takes away what the cell shows: now, or once it shows the next thing.
    pub fn clear(&self, wait: bool) {
        self.outbox.say(Said::Clear { wait });
    }

    /// The kernel's number for the run.
    pub fn count(&self, count: u64) {
        self.outbox.say(Said::Count(count));
    }

    /// What the runtime itself is doing, such as starting its kernel anew.
    pub fn status(&self, state: SessionState) {
        self.outbox.say(Said::Status(state));
    }

    /// Whether somebody wants it to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.outbox.is_cancelled()
    }

    /// Waits until somebody wants it to stop.
    pub async fn cancelled(&self) {
        poll_fn(|cx| match self.outbox.is_cancelled() {
            true => Poll::Ready(()),
            false => self.outbox.wake_when_cancelled(cx),
        })
        .await;
    }

    /// Asks whoever wanted the cell to run for a line.
    pub async fn input(&self, question: Question) -> Result<String, NoInput> {
        self.outbox.ask(question);
        poll_fn(|cx| self.outbox.poll_answer(cx))
            .await
            .ok_or(NoInput)
    }
}
