//! What an action is to this server: a name, its parameters, what it would touch, and the doing.
//!
//! An action is a type without a value. Adding one is one file that implements [`Action`] and one
//! line in [`crate::registry`].

use std::sync::Arc;

use protocol::{ActionName, Facts, Failure, Mode};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::output::Output;
use crate::permit::Permitted;

/// One thing that can be done.
pub trait Action: Send + Sync + 'static {
    /// What it is called.
    const NAME: ActionName;
    /// What it does, in a sentence a model can choose by.
    const DESCRIPTION: &'static str;
    /// What it is asked with. Unknown fields are refused (`deny_unknown_fields`).
    type Params: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static;
    /// What it answers.
    type Result: Serialize + Send;

    /// How long it takes to see what it would touch.
    const LOOK: Look = Look::Long;

    /// Who sees to it that what was decided on is what is done.
    const AGAIN: Again = Again::Before;

    /// What it would touch, without touching it. Where that is long, a thread that may block calls
    /// it.
    ///
    /// It refuses whatever `execute` would refuse by looking, so that nobody is asked about an
    /// action that cannot be done.
    fn resolve(context: &Context, params: &Self::Params) -> Result<Facts, Failure>;

    /// Does it. Long work goes through [`Call::blocking`], so that it never stalls other requests.
    fn execute(
        call: Call,
        params: Self::Params,
    ) -> impl Future<Output = Result<Self::Result, Failure>> + Send;
}

/// How long it takes to see what an action would touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A few system calls that touch no content: quicker done at once than handed to a thread.
    Short,
    /// Files may be read through, or many paths looked at.
    Long,
}

/// What was decided on is looked at again before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// By a look of its own, as it was decided on.
    Before,
    /// By the action, which compares what it holds open and looks only once
    /// ([`Grounds::file_as_decided`](crate::grounds::Grounds)).
    Itself,
}

/// One execution under way: where it happens and how to talk about it.
#[derive(Debug, Clone)]
pub struct Call {
    /// What the server holds.
    pub context: Arc<Context>,
    /// The client's id of this action.
    pub id: String,
    /// Whose room a command runs in.
    pub session: Option<String>,
    /// Where its output goes while it happens.
    pub output: Output,
    /// Told when nobody waits for the result any more.
    pub cancel: CancellationToken,
}

impl Call {
    /// How it is held: by the kernel, unless a permit says otherwise.
    pub(crate) fn mode(&self) -> Mode {
        self.context
            .grounds
            .permit()
            .map_or(Mode::Sandbox, Permitted::mode)
    }

    /// Runs file work on a thread that may block.
    ///
    /// Dropping the future does not stop the thread: work that can be long has to look at
    /// [`Call::cancel`] itself.
    pub async fn blocking<T: Send + 'static>(
        self,
        work: impl FnOnce(Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match tokio::task::spawn_blocking(move || work(self)).await {
            Ok(result) => result,
            Err(error) => Err(lost_thread(&error)),
        }
    }

    /// Refuses to go on where the client has cancelled.
    pub fn still_wanted(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::new(
                protocol::ErrorKind::Cancelled,
                "The action was cancelled before it was done.",
            ));
        }
        Ok(())
    }
}

pub(crate) fn lost_thread(error: &tokio::task::JoinError) -> Failure {
    tracing::error!(%error, "a worker thread was lost");
    Failure::new(
        protocol::ErrorKind::Internal,
        "Ward lost the thread that did this. Nothing is known of the outcome: look before you try again, and report it.",
    )
}
