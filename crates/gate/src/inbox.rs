//! The questions that are open, and those that were closed not long ago.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::Grant;
use protocol::approval::{AnswerScope, Approval, Resolved};
use protocol::{ErrorKind, Failure};
use tokio::sync::{broadcast, oneshot};

/// Questions open at once; more are refused.
const MAX_OPEN: usize = 10_000;
/// Closed ones that are remembered, so that a late answer learns who was first.
const MAX_CLOSED: usize = 1000;
/// Notices that a slow client may be behind; it then looks at the whole inbox again.
const NOTICES: usize = 1024;

/// Looks whether grants answer the whole question.
pub(crate) type Lifts = Box<dyn Fn(&[Grant]) -> Result<(), Failure> + Send + Sync>;

/// A question that is open.
pub(crate) struct Open {
    pub(crate) approval: Approval,
    pub(crate) person: String,
    pub(crate) lifts: Lifts,
    pub(crate) answer: oneshot::Sender<Answered>,
}

/// What whoever waits is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    Allowed(AnswerScope),
    Denied { by: String, reason: Option<String> },
}

/// What clients are told at once.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A person is asked.
    Requested(Arc<Approval>),
    /// A question is closed.
    Resolved(Arc<Resolved>),
}

/// A notice, and whom it is for.
#[derive(Debug, Clone)]
pub(crate) struct Addressed {
    pub(crate) person: String,
    pub(crate) notice: Notice,
}

/// All questions.
pub(crate) struct Inbox {
    questions: Mutex<Questions>,
    notices: broadcast::Sender<Addressed>,
}

#[derive(Default)]
struct Questions {
    open: HashMap<String, Open>,
    closed: VecDeque<(String, Arc<Resolved>)>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            questions: Mutex::default(),
            notices: broadcast::Sender::new(NOTICES),
        }
    }
}

impl Inbox {
    /// Puts a question in, and tells the person's clients.
    pub(crate) fn put(&self, open: Open) -> Result<(), Failure> {
        let mut questions = self.questions();
        if questions.open.len() >= MAX_OPEN {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MAX_OPEN} questions are open already. Answer some of them first."),
            ));
        }
        let addressed = Addressed {
            person: open.person.clone(),
            notice: Notice::Requested(Arc::new(open.approval.clone())),
        };
        questions.open.insert(open.approval.id.clone(), open);
        drop(questions);
        let _ = self.notices.send(addressed);
        Ok(())
    }

    /// Takes a question out, to close it as `how` says. From then on nobody else can, and whoever
    /// tries learns how it was closed.
    pub(crate) fn take(
        &self,
        id: &str,
        how: impl FnOnce(&Open) -> Result<Resolved, Failure>,
    ) -> Result<(Open, Arc<Resolved>), Failure> {
        let mut questions = self.questions();
        let Some(open) = questions.open.get(id) else {
            return Err(questions.missing(id));
        };
        let resolved = Arc::new(how(open)?);
        let open = questions.open.remove(id).ok_or_else(|| unknown(id))?;
        questions
            .closed
            .push_back((open.person.clone(), Arc::clone(&resolved)));
        if questions.closed.len() > MAX_CLOSED {
            questions.closed.pop_front();
        }
        Ok((open, resolved))
    }

    /// Puts one back that could not be closed after all.
    pub(crate) fn put_back(&self, open: Open) {
        let mut questions = self.questions();
        let id = open.approval.id.clone();
        questions
            .closed
            .retain(|(_, resolved)| resolved.approval_id != id);
        questions.open.insert(id, open);
    }

    /// Tells the person's clients that a question is closed.
    pub(crate) fn tell_closed(&self, person: &str, resolved: Arc<Resolved>) {
        let _ = self.notices.send(Addressed {
            person: person.to_owned(),
            notice: Notice::Resolved(resolved),
        });
    }

    /// Those of a person, the oldest first.
    pub(crate) fn list(&self, person: &str) -> Vec<Approval> {
        self.select(person, |_| true)
    }

    /// Those of a person that are like this, the oldest first.
    pub(crate) fn select(&self, person: &str, are: impl Fn(&Approval) -> bool) -> Vec<Approval> {
        let questions = self.questions();
        let mine = questions.open.values().filter(|open| open.person == person);
        let mine = mine.map(|open| &open.approval).filter(|one| are(one));
        let mut approvals: Vec<Approval> = mine.cloned().collect();
        drop(questions);
        approvals.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        approvals
    }

    /// One of a person's.
    pub(crate) fn get(&self, person: &str, id: &str) -> Result<Approval, Failure> {
        let questions = self.questions();
        match questions.open.get(id) {
            Some(open) if open.person == person => Ok(open.approval.clone()),
            Some(_) => Err(unknown(id)),
            None => Err(questions.missing(id)),
        }
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.questions().open.contains_key(id)
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.questions().open.len()
    }

    pub(crate) fn notices(&self) -> broadcast::Receiver<Addressed> {
        self.notices.subscribe()
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        // Nothing panics while it is held.
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Questions {
    /// Why a question is not there.
    fn missing(&self, id: &str) -> Failure {
        let mut closed = self.closed.iter().rev();
        let Some((_, resolved)) = closed.find(|(_, resolved)| resolved.approval_id == id) else {
            return unknown(id);
        };
        let how = serde_json::json!(resolved.resolution);
        let how = how.as_str().unwrap_or("closed");
        let by = match &resolved.by {
            Some(by) => format!(" by {by}"),
            None => String::new(),
        };
        Failure::new(
            ErrorKind::Closed,
            format!("This question is closed already: {how}{by}. There is nothing left to answer."),
        )
        .with("resolution", how)
        .with("by", resolved.by.clone())
    }
}

fn unknown(id: &str) -> Failure {
    let shown: String = id.chars().take(100).collect();
    Failure::new(
        ErrorKind::Unknown,
        format!(
            "There is no approval `{shown}` that is yours. `ward approvals` lists those that are open."
        ),
    )
}
