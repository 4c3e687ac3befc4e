//! One turn of the model: what it says is told as it comes, and kept when it is whole.

use std::collections::HashSet;
use std::task::Poll;

use futures_util::StreamExt as _;
use protocol::session::{SessionEvent, TextDelta, ToolCalled, TurnStarted, Usage};
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Means};
use crate::provider::{
    Delta, Deltas, Message, ProviderError, ToolCall, ToolChoice, Turn, TurnRequest,
};
use crate::runner::Inner;
use crate::session::Session;

/// How many bytes of text are put together into one event where they are there already.
const TOGETHER: usize = 16 * 1024;

impl<S: Store> Inner<S> {
    /// Asks the model for one turn. What is told of it is void where it fails; what it is known to have
    /// taken by then is `used`. With a whole one comes
    /// what is still to be told of it, so that it can be written together with the turn.
    pub(crate) async fn turn(
        &self,
        session: &Session,
        agent: &Agent,
        messages: Vec<std::sync::Arc<Message>>,
        calls: u64,
        used: &mut Usage,
        cancel: &CancellationToken,
    ) -> Result<(Turn, Vec<SessionEvent>), Failure> {
        let request = TurnRequest {
            model: agent.resolved.model.clone(),
            instructions: agent.instructions.clone(),
            messages,
            tools: std::sync::Arc::clone(&agent.tools),
            tool_choice: ToolChoice::Auto,
            cache_key: Some(session.id.clone()),
            ..TurnRequest::default()
        };
        let turn = session.record().progress.turns + 1;
        let started = SessionEvent::TurnStarted(TurnStarted {
            turn,
            provider: agent.resolved.provider.name().to_owned(),
            model: agent.resolved.model.clone(),
        });
        // Before it is asked: whoever follows is then told together with what came before.
        self.tell(session, &[started]).await?;
        let mut told = Telling {
            events: Vec::new(),
            calls,
            called: Vec::new(),
        };
        let mut deltas = agent.resolved.provider.turn(request, cancel.clone());
        loop {
            let mut next = there_already(&mut deltas).await;
            if next.is_none() && !told.events.is_empty() {
                // What came in one piece is handed over bit by bit, by a task that has to get its turn.
                behind_the_others().await;
                next = there_already(&mut deltas).await;
            }
            let next = match next {
                Some(next) => next,
                None => {
                    // Nothing more is there now: what came is told at once.
                    self.flush(session, &mut told).await?;
                    deltas.next().await
                }
            };
            let delta = match next {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => {
                    self.flush(session, &mut told).await?;
                    return Err(self.failure(error));
                }
                None => {
                    return Err(Failure::new(
                        ErrorKind::StreamCut,
                        "The provider's answer ended before its end.",
                    ));
                }
            };
            match delta {
                Delta::Text(text) => told.text(text, SessionEvent::Text),
                Delta::Reasoning(text) => told.text(text, SessionEvent::Reasoning),
                Delta::ToolCall(call) => told.call(session, agent, call),
                Delta::Used(usage) => *used = usage,
                Delta::ToolCallStarted { .. } | Delta::ArgumentsDelta { .. } => {}
                Delta::Done(turn) => {
                    told.is_all_of(&turn)?;
                    return Ok((turn, told.events));
                }
            }
            if told.is_much() {
                self.flush(session, &mut told).await?;
            }
        }
    }

    async fn flush(&self, session: &Session, told: &mut Telling) -> Result<(), Failure> {
        if told.events.is_empty() {
            return Ok(());
        }
        let events = std::mem::take(&mut told.events);
        self.tell(session, &events).await.map(drop)
    }
}

/// What is to be told next.
struct Telling {
    events: Vec<SessionEvent>,
    /// How many calls there were.
    calls: u64,
    /// Those of this turn, in the order in which they were told.
    called: Vec<ToolCall>,
}

impl Telling {
    fn text(&mut self, text: String, event: fn(TextDelta) -> SessionEvent) {
        let new = event(TextDelta { text });
        match (self.events.last_mut(), new) {
            (Some(SessionEvent::Text(last)), SessionEvent::Text(more))
            | (Some(SessionEvent::Reasoning(last)), SessionEvent::Reasoning(more)) => {
                last.text.push_str(&more.text);
            }
            (_, new) => self.events.push(new),
        }
    }

    fn call(&mut self, session: &Session, agent: &Agent, call: ToolCall) {
        self.calls += 1;
        let means = agent.means(&call.name);
        let own = id_of(&session.id, self.calls);
        let (action, child) = match means {
            Some(Means::Action(action)) => (Some(action), None),
            Some(Means::Delegate) => (None, Some(own.clone())),
            Some(Means::Handoff | Means::ReadOutput) | None => (None, None),
        };
        self.events.push(SessionEvent::ToolCalled(ToolCalled {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            action_id: action.map(|_| own),
            action: action.map(|action| action.as_str().to_owned()),
            child,
            arguments: match &call.malformed {
                Some(text) => text.clone().into(),
                None => call.arguments.clone(),
            },
        }));
        self.called.push(call);
    }

    /// Nothing is done that was not told first: the calls of a turn are those that were told, in their
    /// order, which their numbers go by, and each has an id of its own, which its result goes by.
    fn is_all_of(&self, turn: &Turn) -> Result<(), Failure> {
        let is_same = turn.message.tool_calls().eq(&self.called);
        let ids: HashSet<&str> = self.called.iter().map(|call| &*call.call_id).collect();
        if is_same && ids.len() == self.called.len() && !ids.contains("") {
            return Ok(());
        }
        Err(Failure::new(
            ErrorKind::BadStream,
            "The provider's answer has calls that cannot be told apart: one without an id, two of one id, or others than it had begun. None of them was made. Ask again, or choose another model.",
        ))
    }

    fn is_much(&self) -> bool {
        self.events.len() > 64
            || matches!(
                self.events.last(),
                Some(SessionEvent::Text(delta) | SessionEvent::Reasoning(delta))
                    if delta.text.len() > TOGETHER
            )
    }
}

/// What comes next, if it is there; whoever asks is woken when it comes.
async fn there_already(deltas: &mut Deltas) -> Option<Option<Result<Delta, ProviderError>>> {
    std::future::poll_fn(|context| match deltas.poll_next_unpin(context) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Lets every task that can go on do so first. Unlike Tokio's own `yield_now` it does not have the
/// system asked for news before: that is a call of the system for every word.
async fn behind_the_others() {
    let mut asked = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The id of what a call begins: an action, or a session. The same again after a restart.
pub(crate) fn id_of(session: &str, number: u64) -> String {
    format!("{session}-{number}")
}
