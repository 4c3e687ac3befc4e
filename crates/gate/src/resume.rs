//! What was there before: actions that waited for an answer when Ward ended wait again, what was
//! under way is lost, and what ended long ago is looked up in the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::Verb;
use protocol::approval::{Resolution, Resolved, Subject};
use protocol::{Digest, ErrorKind, Failure};
use serde_json::{Value, json};
use store::{Append, Event, Expected, NewEvent, Seq, Store, StoreError, StreamName};

use crate::answering::Lifted;
use crate::clock::now;
use crate::gate::Inner;
use crate::job::Job;
use crate::ledger::{EntryKind, NewEntry, Unfinished};
use crate::live::{Begun, Ended, Live, State};
use crate::path::{Resumed, Start, unwritten};
use crate::pending::{Found, Waiting};
use crate::record::{events, inbox_of, stream_of};

/// How long what runs has to be written down when Ward ends.
const SETTLE: Duration = Duration::from_secs(3);

impl<S: Store> Inner<S> {
    /// Takes up what waited, and writes down what was lost.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        found: Vec<Found>,
        unfinished: Vec<Unfinished>,
    ) -> Result<(), StoreError> {
        let mut waiting = Vec::new();
        let mut never_begun = HashMap::new();
        for found in found {
            match found {
                Found::Open(open) => match open.approval.subject {
                    Subject::Action | Subject::Again { .. } => match self.wait_again(&open) {
                        Ok(()) => waiting.push(open.asked.id.clone()),
                        Err(failure) => {
                            tracing::warn!(%failure, id = open.asked.id, "an action cannot wait any longer");
                            self.withdrawn(&open).await?;
                            if open.approval.subject == Subject::Action {
                                never_begun.insert(open.asked.id.clone(), failure);
                            }
                        }
                    },
                    // Its connection went with the command.
                    Subject::Host { .. } => self.withdrawn(&open).await?,
                },
                Found::Answered(answered) => self.pending.forget(&answered.approval.id),
            }
        }
        for lost in unfinished {
            if !waiting.contains(&lost.action_id) {
                let failure = match never_begun.remove(&lost.action_id) {
                    Some(failure) => waits_no_longer(&failure),
                    None => lost_with_ward(),
                };
                self.write_lost(lost, &failure).await?;
            }
        }
        Ok(())
    }

    fn wait_again(self: &Arc<Self>, open: &Waiting) -> Result<(), Failure> {
        let Waiting {
            approval,
            person,
            asked,
        } = open.clone();
        // The policy is looked at once there is a yes: a mistake in it today is mended by then.
        let workspace = self.workspace(Some(&asked.workspace))?;
        let job = Job::restored(asked, person.clone(), workspace, &self.options)?;
        let live = Arc::new(Live::of(&job));
        let widen = match &approval.subject {
            Subject::Again { widen, .. } => widen.clone(),
            Subject::Action | Subject::Host { .. } => Vec::new(),
        };
        let verb = if widen.is_empty() {
            job.verb()
        } else {
            Verb::Wall
        };
        let job = Arc::new(job);
        let lifts = Lifted {
            job: Arc::clone(&job),
            config: self.options.config.clone(),
            facts: approval.facts.clone(),
            verb,
            mode: approval.mode,
        };
        let digest = approval.digest.clone();
        let state = State::Asking {
            approval_id: approval.id.clone(),
        };
        if let Begun::Known(_) = self.actions.begin(&live)? {
            return Err(Failure::new(ErrorKind::Conflict, "it waits twice"));
        }
        self.jobs.begin(job.id.clone(), &job);
        let answer = match self.put(approval, &person, lifts.check()) {
            Ok(answer) => answer,
            Err(failure) => {
                self.jobs.end(&job.id);
                self.actions.forget(&job.id);
                return Err(failure);
            }
        };
        // At once: a session that is taken up next looks whether it is still asked.
        live.state.send_replace(state);
        let resumed = Resumed {
            answer,
            digest,
            widen,
        };
        let gate = Arc::clone(self);
        tokio::spawn(async move {
            gate.carry_out(job, live, Start::Resumed(Box::new(resumed)))
                .await;
        });
        Ok(())
    }

    /// A question that nobody can answer any more.
    async fn withdrawn(&self, open: &Waiting) -> Result<(), StoreError> {
        let resolved = Resolved {
            approval_id: open.approval.id.clone(),
            action_id: open.approval.action_id.clone(),
            resolution: Resolution::Withdrawn,
            by: None,
            scope: None,
            reason: None,
            grants: Vec::new(),
        };
        let event = || NewEvent {
            kind: events::ANSWERED.into(),
            at: now(),
            data: json!(resolved).into(),
        };
        let append = |stream| Append {
            stream,
            expected: Expected::Any,
            events: vec![event()],
        };
        let entry = NewEntry {
            kind: EntryKind::Answer,
            at: now(),
            actor: open.approval.actor.clone(),
            role: Some(open.approval.role.clone()),
            session: open.approval.session_id.clone(),
            workspace: Some(open.approval.workspace.clone()),
            action_id: Some(open.approval.action_id.clone()),
            data: json!(resolved).into(),
        };
        let beside = vec![
            append(inbox_of(&open.person)?),
            append(stream_of(&open.approval.action_id)?),
        ];
        self.ledger.write(vec![entry], beside).await?;
        self.pending.forget(&open.approval.id);
        Ok(())
    }

    async fn write_lost(&self, lost: Unfinished, failure: &Failure) -> Result<(), StoreError> {
        let data = json!({"status": "failed", "kind": failure.kind, "error": failure.message});
        let request = lost.request;
        let entry = NewEntry {
            kind: EntryKind::Outcome,
            at: now(),
            actor: request.actor,
            role: request.role,
            session: request.session,
            workspace: request.workspace,
            action_id: Some(lost.action_id.clone()),
            data: data.clone().into(),
        };
        let ended = Append {
            stream: stream_of(&lost.action_id)?,
            expected: Expected::Any,
            events: vec![NewEvent {
                kind: events::ENDED.into(),
                at: now(),
                data: data.into(),
            }],
        };
        self.ledger.write(vec![entry], vec![ended]).await.map(drop)
    }

    /// Waits a moment for what runs to be written down. What waits for an answer goes on waiting.
    pub(crate) async fn settle(&self) {
        let all = async {
            for live in self.actions.running() {
                let mut states = live.follow();
                let settled =
                    |state: &State| matches!(state, State::Ended(_) | State::Asking { .. });
                let _ = states.wait_for(settled).await;
            }
        };
        let _ = tokio::time::timeout(SETTLE, all).await;
    }

    /// An action by what the store has of it.
    pub(crate) async fn look_up(&self, stream: &StreamName) -> Result<Option<Recalled>, Failure> {
        let read = async {
            if self.store.head(stream).await? == Seq::START {
                return Ok(None);
            }
            let first = self.store.read(stream, Seq::START, 1).await?;
            let Some(first) = first.into_iter().next() else {
                return Ok(None);
            };
            // Only what a terminal prints comes after the end; there is little of it in most.
            let last = self.store.tail(stream, 64).await?;
            let ended = last
                .into_iter()
                .rev()
                .find(|event| event.kind == events::ENDED);
            Ok(Some(Recalled::of(&first, ended)))
        };
        read.await.map_err(|error: StoreError| unwritten(&error))
    }
}

/// An action as the store has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recalled {
    pub(crate) content: Option<Digest>,
    pub(crate) actor: Option<String>,
    pub(crate) person: Option<String>,
    pub(crate) ended: Option<Value>,
}

impl Recalled {
    fn of(first: &Event, ended: Option<Event>) -> Self {
        let text = |name: &str| {
            first
                .data
                .get(name)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        let content = first.data.get("content").cloned().unwrap_or_default();
        Self {
            content: serde_json::from_value(content).ok(),
            actor: text("actor"),
            person: text("person"),
            ended: ended.map(|event| event.data),
        }
    }

    /// How it ended, as far as that is still known.
    pub(crate) fn ended(self) -> Ended {
        let Some(data) = self.ended else {
            return Ended {
                outcome: Err(lost_with_ward()),
                duration_ms: 0,
            };
        };
        let text = |name: &str| {
            data.get(name)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        let duration_ms = data.get("duration_ms").and_then(Value::as_u64).unwrap_or(0);
        let outcome = match (data.get("result"), data.get("kind")) {
            (Some(result), _) => match serde_json::value::to_raw_value(result) {
                Ok(result) => Ok(Arc::from(result)),
                Err(error) => Err(Failure::new(ErrorKind::Internal, error.to_string())),
            },
            (None, Some(kind)) => Err(Failure {
                kind: serde_json::from_value(kind.clone()).unwrap_or(ErrorKind::Internal),
                message: text("error").unwrap_or_default(),
                details: match data.get("details") {
                    Some(Value::Object(details)) => details.clone(),
                    Some(_) | None => serde_json::Map::new(),
                },
            }),
            (None, None) => Err(Failure::new(
                ErrorKind::TooLarge,
                "It was done. Its result was too large to be kept.",
            )),
        };
        Ended {
            outcome,
            duration_ms,
        }
    }
}

/// What waited for an answer when Ward ended, and cannot any more.
fn waits_no_longer(why: &Failure) -> Failure {
    Failure::new(
        ErrorKind::Cancelled,
        format!(
            "It waited for an answer when Ward ended, and can wait no longer: {} It was not begun; ask anew with another id.",
            why.message
        ),
    )
}

fn lost_with_ward() -> Failure {
    Failure::new(
        ErrorKind::RuntimeLost,
        "Ward ended while this was under way. Nobody knows how far it came, and it is not done again: look, then ask anew with another id.",
    )
}
