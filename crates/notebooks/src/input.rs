//! What a run asks people, and what they answer. An answer can be a password: it is handed to the
//! runtime once, and never kept.

use gate::Actor;
use notebook::{ExecutionId, InputAnswered, NotebookEvent, SessionId};
use protocol::{ErrorKind, Failure};
use store::Store;

use crate::book::{Book, lock};
use crate::wire::{Input, PostInput};

/// The longest answer.
const MAX_ANSWER: usize = 64 * 1024;

impl<S: Store> Book<S> {
    /// A person answers what a run asks; the first answer counts.
    pub(crate) async fn answer(&self, actor: &Actor, asked: PostInput) -> Result<(), Failure> {
        let person = actor.must_be_person("answer a cell")?.to_owned();
        if asked.value.len() > MAX_ANSWER {
            return Err(Failure::new(
                ErrorKind::TooLarge,
                format!("An answer has at most {MAX_ANSWER} bytes."),
            ));
        }
        let id = asked.execution_id;
        let said = self.say(|notebook| {
            let mut answers = lock(&self.answers);
            let going = |id: &ExecutionId| {
                let run = notebook.execution(id);
                run.is_some_and(|run| !run.state.is_over())
            };
            answers.retain(|id, _| going(id));
            let run = notebook.execution(&id);
            if run.is_none_or(|run| run.input.is_none()) {
                return Vec::new();
            }
            // It is there before anybody is told that it is.
            answers.insert(id.clone(), asked.value);
            vec![NotebookEvent::InputAnswered(InputAnswered {
                execution_id: id.clone(),
                answered_by: person,
            })]
        });
        match said.await?.appended.appended {
            0 => Err(Failure::new(
                ErrorKind::Closed,
                format!("The run `{id}` asks for nothing, or somebody has answered."),
            )),
            _ => Ok(()),
        }
    }

    /// Hands an answer to the runtime session that asked.
    pub(crate) fn answered(&self, session: &SessionId, id: &ExecutionId) -> Result<Input, Failure> {
        let run = self.look(|notebook| notebook.execution(id).cloned());
        let asked_here = run.is_some_and(|run| run.session_id.as_ref() == Some(session));
        let value = match asked_here {
            true => lock(&self.answers).remove(id),
            false => None,
        };
        let value = value.ok_or_else(|| {
            Failure::new(
                ErrorKind::Unknown,
                format!("Nobody has answered the run `{id}`, or the answer was fetched."),
            )
        })?;
        Ok(Input { value })
    }
}
