//! The calls of a turn: all at once, each through the gate, and what came of each told and kept.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use gate::{Happened, Live, Request, Seen, State};
use protocol::action::terminal::Cut;
use protocol::data::{Data, Encoding};
use protocol::method::OutputStream;
use protocol::runtime::RuntimeChoice;
use protocol::session::{
    PermissionRequested, PermissionResolved, SessionEvent, ToolOutput, ToolProgress,
};
use protocol::{ActionName, ErrorKind, Failure};
use serde::Deserialize;
use serde_json::Value;
use store::{Seq, Store};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Means};
use crate::cut;
use crate::journal::Page;
use crate::provider::{ToolCall, ToolResult};
use crate::runner::Inner;
use crate::session::history::Entry;
use crate::session::{Call, Session};
use crate::turn::id_of;

/// How much of what one call prints is told in the session; the action's own events have more.
const TOLD: usize = 64 * 1024;
/// How much of a result is kept to be read on.
const KEPT: usize = 4 * 1024 * 1024;

/// Whether calls are made, or were made by a Ward that has ended since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    Now,
    Before,
}

/// What came of a call.
type Came = Result<Outcome, Failure>;

/// What came of a call that was made.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// In words.
    text: String,
    /// All of it, where these are not.
    whole: Option<String>,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, whole: None }
    }
}

impl<S: Store> Inner<S> {
    /// Makes the calls of a turn, and returns when something came of every one of them. What came
    /// is in the history then.
    pub(crate) async fn calls(
        self: &Arc<Self>,
        session: &Arc<Session>,
        agent: &Agent,
        calls: &[(u64, ToolCall)],
        made: Made,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        // All are under way before the first begins: else one that asks would look like all that is
        // waited for.
        let guards: Vec<Call> = calls
            .iter()
            .map(|(_, call)| session.call(&call.call_id))
            .collect();
        let each = calls
            .iter()
            .zip(guards)
            .map(|((number, call), guard)| async move {
                let began = Instant::now();
                let came = self
                    .call(session, agent, *number, call, &guard, made, cancel)
                    .await;
                self.came(session, call, came, began).await
            });
        join_all(each).await.into_iter().collect()
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one call, and all that it stands in"
    )]
    async fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        agent: &Agent,
        number: u64,
        call: &ToolCall,
        guard: &Call,
        made: Made,
        cancel: &CancellationToken,
    ) -> Came {
        if let Some(text) = &call.malformed {
            let shown: String = text.chars().take(200).collect();
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!("The arguments are not a JSON object: `{shown}`. Call it again with one."),
            ));
        }
        match agent.means(&call.name) {
            Some(Means::Action(action)) => {
                let id = id_of(&session.id, number);
                let live = match made {
                    Made::Now => self.submit(session, &id, action, call).await?,
                    Made::Before => match self.gate.seen(&session.actor(), &id).await {
                        Ok(Seen::Live(live)) => live,
                        Ok(Seen::Past(ended)) => {
                            return ended.outcome.map(|result| result.get().to_owned().into());
                        }
                        Err(_) => return Err(not_begun()),
                    },
                };
                let mut told = match made {
                    Made::Now => Told::nothing(),
                    Made::Before => self.told_before(session, call, &live, guard).await?,
                };
                let text = self
                    .follow(session, call, &live, guard, &mut told, cancel)
                    .await?;
                let whole = self.all_printed(&live, &text).await;
                Ok(Outcome { text, whole })
            }
            Some(Means::Delegate) => {
                let came = self.delegate(session, number, call, guard, made, cancel);
                came.await.map(Outcome::from)
            }
            Some(Means::Handoff) => self.hand_over(session, call).await.map(Outcome::from),
            Some(Means::ReadOutput) => self.read_output(session, call).await.map(Outcome::from),
            None => {
                let names: Vec<&str> = agent.tools.iter().map(|tool| tool.name.as_str()).collect();
                Err(Failure::new(
                    ErrorKind::UnknownTool,
                    format!(
                        "There is no tool `{}` for the role `{}`. There are {}.",
                        call.name.chars().take(80).collect::<String>(),
                        agent.role,
                        names.join(", ")
                    ),
                ))
            }
        }
    }

    async fn submit(
        &self,
        session: &Session,
        id: &str,
        action: ActionName,
        call: &ToolCall,
    ) -> Result<Arc<Live>, Failure> {
        let (actor, request) = {
            let record = session.record();
            let progress = &record.progress;
            let request = Request {
                id: Some(id.to_owned()),
                action: action.as_str().to_owned(),
                params: call.arguments.clone(),
                role: Some(progress.role.clone()),
                parents: progress.parents.clone(),
                mode: Some(progress.mode),
                workspace: Some(record.workspace.clone()),
                session: Some(record.root.clone()),
                runtime: progress.runtime_id.clone().map(RuntimeChoice::Id),
                ask: record.ask,
            };
            (record.actor.clone(), request)
        };
        self.gate.submit(&actor, request).await
    }

    /// Waits for an action's end, and tells meanwhile what happens to it.
    async fn follow(
        &self,
        session: &Session,
        call: &ToolCall,
        live: &Live,
        guard: &Call,
        told: &mut Told,
        cancel: &CancellationToken,
    ) -> Result<String, Failure> {
        let mut printed = live.printed();
        let ended = live.ended();
        tokio::pin!(ended);
        if matches!(live.state(), State::Asking { .. }) {
            self.happened(session, call, live, guard, told).await?;
        }
        let mut cancelled = false;
        let mut stirred = false;
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut ended => break ended,
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    live.cancel();
                }
                changed = printed.changed() => {
                    if changed.is_ok() {
                        stirred = true;
                        self.happened(session, call, live, guard, told).await?;
                    }
                }
            }
        };
        if stirred || printed.has_changed().unwrap_or(false) {
            self.happened(session, call, live, guard, told).await?;
        }
        match &ended.outcome {
            Ok(result) => Ok(result.get().to_owned()),
            Err(failure) => Err(failure.clone()),
        }
    }

    /// What the Ward before has told of an action; what it could not tell any more is told now.
    async fn told_before(
        &self,
        session: &Session,
        call: &ToolCall,
        live: &Live,
        guard: &Call,
    ) -> Result<Told, Failure> {
        let mut known = HashSet::new();
        self.each(&session.stream, |event| {
            match SessionEvent::read(&event.kind, event.data) {
                Some(SessionEvent::PermissionRequested(asked)) => {
                    known.insert((asked.approval_id, false));
                }
                Some(SessionEvent::PermissionResolved(closed)) => {
                    known.insert((closed.resolved.approval_id, true));
                }
                _ => {}
            }
        })
        .await?;
        let mut told = Told {
            after: Seq::START,
            room: TOLD,
            is_full: true,
            known,
        };
        self.happened(session, call, live, guard, &mut told).await?;
        told.is_full = false;
        Ok(told)
    }

    async fn happened(
        &self,
        session: &Session,
        call: &ToolCall,
        live: &Live,
        guard: &Call,
        told: &mut Told,
    ) -> Result<(), Failure> {
        let mut events = Vec::new();
        for happened in self.gate.happened(live, &mut told.after).await {
            match happened {
                Happened::Asked(approval) => {
                    guard.asks(&approval.id);
                    if !told.known.insert((approval.id.clone(), false)) {
                        continue;
                    }
                    let event = SessionEvent::PermissionRequested(PermissionRequested {
                        call_id: call.call_id.clone(),
                        approval_id: approval.id.clone(),
                        approval,
                        child: None,
                    });
                    self.tell_above(session, &event).await?;
                    events.push(event);
                }
                Happened::Answered(resolved) => {
                    guard.answered(&resolved.approval_id);
                    if !told.known.insert((resolved.approval_id.clone(), true)) {
                        continue;
                    }
                    let event = SessionEvent::PermissionResolved(PermissionResolved {
                        call_id: call.call_id.clone(),
                        resolved: *resolved,
                        child: None,
                    });
                    self.tell_above(session, &event).await?;
                    events.push(event);
                }
                Happened::Printed(mut output) => {
                    if told.is_full {
                        continue;
                    }
                    let is_all = output.data.len() <= told.room;
                    if !is_all {
                        // Four letters of base64 belong together.
                        let fits = output.data.floor_char_boundary(told.room / 4 * 4);
                        output.data.truncate(fits);
                    }
                    told.room -= output.data.len();
                    told.is_full = !is_all;
                    let progress = |stream, data, encoding| {
                        SessionEvent::ToolProgress(ToolProgress {
                            call_id: call.call_id.clone(),
                            stream,
                            data,
                            encoding,
                        })
                    };
                    if !output.data.is_empty() {
                        events.push(progress(output.stream, output.data, output.encoding));
                    }
                    if !is_all {
                        let (stream, encoding) = (OutputStream::Dropped, Encoding::default());
                        events.push(progress(stream, String::new(), encoding));
                    }
                }
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        self.tell(session, &events).await.map(drop)
    }

    /// Tells the sessions above a sub-agent what a person is asked for it.
    async fn tell_above(&self, session: &Session, event: &SessionEvent) -> Result<(), Failure> {
        let mut above = session.above.as_ref();
        while let Some((parent, call_id)) = above {
            let mut event = event.clone();
            let (told, child) = match &mut event {
                SessionEvent::PermissionRequested(asked) => (&mut asked.call_id, &mut asked.child),
                SessionEvent::PermissionResolved(closed) => {
                    (&mut closed.call_id, &mut closed.child)
                }
                _ => return Ok(()),
            };
            told.clone_from(call_id);
            *child = Some(session.id.clone());
            self.tell(parent, &[event]).await?;
            above = parent.above.as_ref();
        }
        Ok(())
    }

    /// Something came of a call: it is kept for the model, and told.
    pub(crate) async fn came(
        &self,
        session: &Session,
        call: &ToolCall,
        came: Came,
        began: Instant,
    ) -> Result<(), Failure> {
        let (ok, Outcome { text, whole }, kind) = match came {
            Ok(outcome) => (true, outcome, None),
            Err(failure) => (false, failure.message.into(), Some(failure.kind)),
        };
        let text = self.without_secrets(text);
        let mut pen = session.pen.lock().await;
        let history = self.history(session, &mut pen).await?;
        let name = format!("o{}", history.wholes + 1);
        let told = cut::cut(&text, &name);
        let rest = told.as_ref().map(|_| name.clone());
        let output = told.unwrap_or_else(|| text.clone());
        let result = match ok {
            true => ToolResult::text(call, output.clone()),
            false => ToolResult::error(call, output.clone()),
        };
        let mut page = Page::event(SessionEvent::ToolOutput(ToolOutput {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            ok,
            output,
            kind,
            rest: rest.clone(),
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }));
        if let Some(name) = rest {
            let mut whole = whole.map_or(text, |whole| {
                self.gate.redactor().redact_str(&whole).into_owned()
            });
            whole.truncate(whole.floor_char_boundary(KEPT));
            page = page.entry(Entry::Whole { name, text: whole });
        }
        let page = page.entry(Entry::Result(result));
        self.write(session, history, page, |_| ()).await.map(drop)
    }

    /// The model is told no secret either: it has no use for one.
    fn without_secrets(&self, text: String) -> String {
        let redactor = self.gate.redactor();
        match serde_json::from_str::<Value>(&text) {
            Ok(mut value) => {
                redactor.redact(&mut value);
                value.to_string()
            }
            Err(_) => redactor.redact_str(&text).into_owned(),
        }
    }

    /// All that a command printed, where its result has only a part of that.
    async fn all_printed(&self, live: &Live, result: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Ran {
            cut: Cut,
        }
        let ran: Ran = serde_json::from_str(result).ok()?;
        if ran.cut.is_nothing() {
            return None;
        }
        let mut all = String::new();
        for happened in self.gate.happened(live, &mut Seq::default()).await {
            let Happened::Printed(output) = happened else {
                continue;
            };
            if all.len() > KEPT {
                break;
            }
            match (output.stream, Data::decode(output.data, output.encoding)) {
                (OutputStream::Dropped, _) | (_, Err(_)) => {
                    all.push_str("\n[… what came here was not kept …]\n");
                }
                (_, Ok(bytes)) => all.push_str(&String::from_utf8_lossy(&bytes)),
            }
        }
        Some(all)
    }

    /// More of a result that was cut.
    async fn read_output(&self, session: &Session, call: &ToolCall) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Asked {
            name: String,
            #[serde(default)]
            offset: usize,
        }
        let asked: Asked = arguments(call)?;
        let entries = self.entries(&session.id).await?;
        let whole = entries.into_iter().find_map(|entry| match entry {
            Entry::Whole { name, text } if name == asked.name => Some(text),
            _ => None,
        });
        let Some(whole) = whole else {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("Nothing of the name `{}` was cut.", asked.name),
            ));
        };
        let from = whole.floor_char_boundary(asked.offset.min(whole.len()));
        let to = whole.floor_char_boundary((from + cut::BUDGET / 2).min(whole.len()));
        let piece = &whole[from..to];
        let more = match to < whole.len() {
            true => serde_json::json!(to),
            false => Value::Null,
        };
        let told = serde_json::json!({
            "text": piece, "offset": from, "bytes": whole.len(), "next_offset": more,
        });
        Ok(told.to_string())
    }
}

/// How far what happens to an action was told.
struct Told {
    after: Seq,
    /// How much of what it prints may still be told, and whether more came than that.
    room: usize,
    is_full: bool,
    /// The questions that were told, and whether their end was.
    known: HashSet<(String, bool)>,
}

impl Told {
    fn nothing() -> Self {
        Self {
            after: Seq::START,
            room: TOLD,
            is_full: false,
            known: HashSet::new(),
        }
    }
}

/// The arguments of one of Ward's own tools.
pub(crate) fn arguments<T: serde::de::DeserializeOwned>(call: &ToolCall) -> Result<T, Failure> {
    serde_json::from_value(call.arguments.clone()).map_err(|error| {
        Failure::new(
            ErrorKind::InvalidParams,
            format!("The arguments of {} do not fit: {error}.", call.name),
        )
    })
}

/// What comes of a call that Ward ended before.
pub(crate) fn not_begun() -> Failure {
    Failure::new(
        ErrorKind::Interrupted,
        "Ward ended before this was begun, so it was not done. Call it again if it is still wanted.",
    )
}
