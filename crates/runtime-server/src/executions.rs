//! Each action is done once, however often it is sent.
//!
//! A connection remembers what it began and how that ended. The same id again waits for, or gets,
//! the same outcome; the same id with other content is a conflict. Of what has ended a bounded
//! amount is remembered, the latest first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ErrorKind, Failure};
use rpc::Answer;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

/// Actions under way at once. Below the bound of requests in flight (1024), so that a cancel is
/// still read when this is reached.
const MAX_RUNNING: usize = 1000;

/// Ended actions that are remembered.
const MAX_ENDED: usize = 1024;

/// Bytes of results that are remembered.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The actions of one connection.
#[derive(Debug, Default)]
pub(crate) struct Executions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<Arc<str>, Arc<Execution>>,
    running: usize,
    /// Those that ended, the oldest first, with the size of their results.
    ended: VecDeque<(Arc<str>, usize)>,
    bytes: usize,
}

/// One action, under way or ended.
#[derive(Debug)]
pub(crate) struct Execution {
    content: u64,
    session: Option<String>,
    cancel: CancellationToken,
    pub(crate) outcome: SetOnce<Answer>,
}

/// What an id turned out to be.
pub(crate) enum Begun<'a> {
    /// New: whoever has this does it.
    First(Doing<'a>),
    /// Known: its outcome is there or will be.
    Again(Arc<Execution>),
}

impl Executions {
    /// Begins an action, or finds it. `content` stands for everything but the id.
    pub(crate) fn begin(
        &self,
        id: &str,
        content: u64,
        session: Option<&str>,
        cancel: CancellationToken,
    ) -> Result<Begun<'_>, Failure> {
        let mut known = self.known();
        if let Some(execution) = known.by_id.get(id) {
            if execution.content != content {
                return Err(Failure::new(
                    ErrorKind::Conflict,
                    "An action with this id and other content was sent before. Give each action its own id.",
                ));
            }
            return Ok(Begun::Again(Arc::clone(execution)));
        }
        if known.running >= MAX_RUNNING {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "{MAX_RUNNING} actions are under way already. Wait for one of them, or cancel one."
                ),
            ));
        }
        let execution = Arc::new(Execution {
            content,
            session: session.map(ToOwned::to_owned),
            cancel,
            outcome: SetOnce::new(),
        });
        let id: Arc<str> = id.into();
        known.running += 1;
        known.by_id.insert(Arc::clone(&id), Arc::clone(&execution));
        Ok(Begun::First(Doing {
            executions: self,
            id,
            execution,
        }))
    }

    pub(crate) fn running(&self) -> usize {
        self.known().running
    }

    /// Cancels all that are under way, and waits for their ends.
    pub(crate) async fn cancel_all(&self) {
        self.cancel(|_| true).await;
    }

    /// Cancels those of a session, and waits for their ends; whether there were any.
    pub(crate) async fn cancel_session(&self, session: Option<&str>) -> bool {
        self.cancel(|execution| execution.session.as_deref() == session)
            .await
    }

    async fn cancel(&self, which: impl Fn(&Execution) -> bool) -> bool {
        let running: Vec<Arc<Execution>> = {
            let known = self.known();
            let all = known.by_id.values();
            all.filter(|execution| execution.outcome.get().is_none() && which(execution))
                .cloned()
                .collect()
        };
        for execution in &running {
            execution.cancel.cancel();
        }
        for execution in &running {
            execution.outcome.wait().await;
        }
        !running.is_empty()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An action under way. Dropped without an end, it is remembered as failed.
#[derive(Debug)]
pub(crate) struct Doing<'a> {
    executions: &'a Executions,
    id: Arc<str>,
    execution: Arc<Execution>,
}

impl Doing<'_> {
    /// It was refused before anything was done: its id is free again.
    pub(crate) fn refused(self, failure: Failure) -> Answer {
        let answer = Err(failure);
        let _ = self.execution.outcome.set(answer.clone());
        let mut known = self.executions.known();
        known.running -= 1;
        known.by_id.remove(&self.id);
        drop(known);
        answer
    }

    /// It ended, well or badly, and that is remembered.
    pub(crate) fn ended(self, answer: Answer) -> Answer {
        let _ = self.execution.outcome.set(answer.clone());
        answer
    }
}

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        // A task was dropped or panicked in the middle. Nobody knows how far it came.
        let _ = self.execution.outcome.set(Err(Failure::new(
            ErrorKind::Internal,
            "The action was interrupted, and its outcome is not known. Look before you try again with a new id.",
        )));
        let mut known = self.executions.known();
        if !known
            .by_id
            .get(&self.id)
            .is_some_and(|known| Arc::ptr_eq(known, &self.execution))
        {
            // It was refused.
            return;
        }
        let size = match self.execution.outcome.get() {
            Some(Ok(result)) => result.get().len(),
            Some(Err(failure)) => failure.message.len(),
            None => 0,
        };
        known.running -= 1;
        known.bytes += size;
        known.ended.push_back((Arc::clone(&self.id), size));
        // The latest is kept whatever its size: it is the one most likely to be asked for again.
        while known.ended.len() > MAX_ENDED || (known.bytes > MAX_BYTES && known.ended.len() > 1) {
            let Some((id, size)) = known.ended.pop_front() else {
                break;
            };
            known.bytes -= size;
            known.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin<'a>(executions: &'a Executions, id: &str, content: u64) -> Begun<'a> {
        executions
            .begin(id, content, None, CancellationToken::new())
            .unwrap()
    }

    fn first<'a>(executions: &'a Executions, id: &str, content: u64) -> Doing<'a> {
        match begin(executions, id, content) {
            Begun::First(doing) => doing,
            Begun::Again(_) => panic!("{id} is known"),
        }
    }

    fn result(text: &str) -> Answer {
        rpc::answer(text)
    }

    fn text(answer: Option<&Answer>) -> Option<String> {
        answer.map(|answer| answer.as_ref().unwrap().get().to_owned())
    }

    #[test]
    fn the_same_id_again_gets_the_same_outcome() {
        let executions = Executions::default();
        let doing = first(&executions, "a", 1);
        let Begun::Again(waiting) = begin(&executions, "a", 1) else {
            panic!("done twice");
        };
        assert!(waiting.outcome.get().is_none());
        doing.ended(result("done")).unwrap();
        assert_eq!(text(waiting.outcome.get()), Some("\"done\"".into()));
        let Begun::Again(later) = begin(&executions, "a", 1) else {
            panic!("done twice");
        };
        assert_eq!(text(later.outcome.get()), Some("\"done\"".into()));
        assert_eq!(executions.running(), 0);
    }

    #[test]
    fn the_same_id_with_other_content_is_a_conflict() {
        let executions = Executions::default();
        let _doing = first(&executions, "a", 1);
        let failure = executions
            .begin("a", 2, None, CancellationToken::new())
            .err()
            .unwrap();
        assert_eq!(failure.kind, ErrorKind::Conflict);
    }

    #[test]
    fn what_was_refused_before_it_began_may_be_sent_again() {
        let executions = Executions::default();
        let doing = first(&executions, "a", 1);
        let failure = Failure::new(ErrorKind::Changed, "no");
        assert_eq!(doing.refused(failure.clone()).unwrap_err(), failure);
        assert_eq!(executions.running(), 0);
        first(&executions, "a", 2);
    }

    #[test]
    fn an_action_that_was_interrupted_is_not_done_again() {
        let executions = Executions::default();
        drop(first(&executions, "a", 1));
        let Begun::Again(execution) = begin(&executions, "a", 1) else {
            panic!("done twice");
        };
        let outcome = execution.outcome.get().unwrap();
        assert_eq!(outcome.as_ref().unwrap_err().kind, ErrorKind::Internal);
        assert_eq!(executions.running(), 0);
    }

    #[test]
    fn a_bounded_amount_is_remembered_the_latest_first() {
        let executions = Executions::default();
        for number in 0..MAX_ENDED + 2 {
            first(&executions, &number.to_string(), 1)
                .ended(result("x"))
                .unwrap();
        }
        assert_eq!(executions.known().by_id.len(), MAX_ENDED);
        first(&executions, "0", 1).ended(result("x")).unwrap();
        first(&executions, "large", 1)
            .ended(result(&"x".repeat(MAX_BYTES)))
            .unwrap();
        assert_eq!(executions.known().by_id.len(), 1);
        assert!(matches!(begin(&executions, "large", 1), Begun::Again(_)));
    }

    #[test]
    fn more_than_the_bound_at_once_is_refused_as_busy() {
        let executions = Executions::default();
        let doing: Vec<_> = (0..MAX_RUNNING)
            .map(|number| first(&executions, &number.to_string(), 1))
            .collect();
        let failure = executions
            .begin("more", 1, None, CancellationToken::new())
            .err()
            .unwrap();
        assert_eq!(failure.kind, ErrorKind::Busy);
        drop(doing);
        first(&executions, "more", 1);
    }
}
