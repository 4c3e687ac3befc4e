//! The store that an agent is given, as its platform has it: a replica of the notebook, and the way
//! to the server.

use std::future::Future;
use std::time::Duration;

use notebook::{ArtifactRef, ExecutionId, Notebook, NotebookEvent, SessionId};
use store::Seq;
use store::replica::{Base, EventId};

use crate::context::Question;
use crate::options::Announcement;

/// What the server answered to an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The session.
    pub session_id: SessionId,
    /// Where the stream was once the session was in it: what is older is not acted on.
    pub head: Seq,
    /// How long the session lives without a renewal.
    pub lease: Duration,
}

/// Why the server did not take an announcement or a renewal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// It cannot be reached just now.
    #[error("The server cannot be reached: {0}")]
    Away(String),
    /// It said no, and will say so again.
    #[error("{0}")]
    Refused(String),
}

/// A session is not this agent's any more, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost(pub String);

/// The store that an agent plugs into. It is given, never made by the agent; several agents, and a
/// page, can share one.
pub trait NotebookStore {
    /// The id of who authenticated, by the server's word.
    fn user(&self) -> String;

    /// Looks at what the server has confirmed; what is only pending here is not in it.
    fn look<T>(&self, look: impl FnOnce(&Base<Notebook>) -> T) -> T;

    /// Writes an event of a session: at once here, and to the server as soon as can be, in order.
    fn write(&self, session: &SessionId, event: NotebookEvent) -> EventId;

    /// Waits until more is confirmed than at the last time, or a session was lost.
    fn changed(&self) -> impl Future<Output = ()>;

    /// Whether the server refused what was written for a session.
    fn lost(&self, session: &SessionId) -> Option<Lost>;

    /// Asks for a session.
    fn announce(
        &self,
        announcement: &Announcement,
    ) -> impl Future<Output = Result<Announced, Unanswered>>;

    /// Renews a session's lease. Nothing of it is in the stream.
    fn renew(&self, session: &SessionId) -> impl Future<Output = Result<Duration, Unanswered>>;

    /// Waits as long.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;

    /// Keeps something large beside the notebook.
    fn upload(
        &self,
        session: &SessionId,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<ArtifactRef, Unanswered>>;

    /// Asks whoever wanted the cell to run for a line of input; nothing where nobody can be asked.
    fn ask(
        &self,
        session: &SessionId,
        execution: &ExecutionId,
        question: Question,
    ) -> impl Future<Output = Option<String>>;
}
