//! The gate as JSON-RPC, for an editor or any host that embeds it (`ward gate --stdio`).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::Verdict;
use protocol::gate::{ActionRequest, Foreseen, GateInfo, RespondParams};
use protocol::method::{
    ACTION_EXECUTE, ACTION_OUTPUT, ACTION_RESOLVE, CLIENT_ATTENTION, EXIT, INITIALIZE,
    OutputParams, PERMISSION_REQUESTED, PERMISSION_RESOLVED, PERMISSION_RESPOND, RUNTIME_STATUS,
    SHUTDOWN, TERMINAL_EXITED, UNDO,
};
use protocol::runtime::RuntimeChoice;
use protocol::undo::UndoParams;
use protocol::{Encoding, ErrorKind, Failure};
use rpc::{Answer, End, Limits, Notification, Peer, Remote, Request as Call, Service, answer};
use serde_json::{Value, json};
use store::{Seq, Store};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::actor::Actor;
use crate::clients::Attachment;
use crate::gate::Gate;
use crate::inbox::Notice;
use crate::live::Live;
use crate::record::{events, rule_info, stream_of};
use crate::request::Request;
use crate::undo::Undo;

/// How many events are read at a time.
const PAGE: usize = 256;

impl<S: Store> Gate<S> {
    /// Serves one client to its end, or until `stop` is cancelled. What it asks for happens in this
    /// workspace where it names none, and in Ward's own where there is none here either; an agent
    /// has its own.
    pub async fn serve<R, W>(
        &self,
        actor: Actor,
        workspace: Option<PathBuf>,
        reader: R,
        writer: W,
        stop: CancellationToken,
    ) -> End
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (peer, remote) = Peer::new(reader, writer, Limits::default());
        let door = Door {
            gate: self.clone(),
            workspace: match &actor {
                Actor::Person(_) => workspace,
                Actor::Agent(agent) => Some(agent.workspace.clone()),
            },
            actor,
            remote: remote.clone(),
            phase: Mutex::new(Phase::New),
        };
        let told = door.tell_notices();
        tokio::select! {
            end = peer.run(&door) => end,
            () = async { stop.cancelled().await; remote.close(); std::future::pending().await } => End::Closed,
            () = told => End::Closed,
        }
    }
}

/// One client.
struct Door<S: Store> {
    gate: Gate<S>,
    actor: Actor,
    /// Where things happen, unless it is said.
    workspace: Option<PathBuf>,
    remote: Remote,
    phase: Mutex<Phase>,
}

enum Phase {
    New,
    /// The person's client is attached; an agent's is not.
    Ready(Option<Attachment>),
    ShuttingDown,
}

impl<S: Store> Door<S> {
    async fn initialize(&self) -> Answer {
        let workspace = self.gate.0.workspace(self.workspace.as_deref())?;
        let about = workspace.runtime.about().await?;
        let client_id = {
            let mut phase = self.phase();
            if !matches!(*phase, Phase::New) {
                return Err(Failure::new(
                    ErrorKind::InvalidRequest,
                    "`initialize` was already answered on this connection.",
                ));
            }
            let attached = self.gate.attach(&self.actor, Default::default()).ok();
            let id = attached.as_ref().map(Attachment::id);
            *phase = Phase::Ready(attached);
            id
        };
        // What is open already is told behind the answer, as if it had just been asked.
        if let Ok(open) = self.gate.approvals(&self.actor) {
            let remote = self.remote.clone();
            tokio::spawn(async move {
                for approval in open {
                    let _ = remote.notify(PERMISSION_REQUESTED, &approval).await;
                }
            });
        }
        answer(&GateInfo {
            name: "ward".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: workspace.name.clone(),
            actor: self.actor.name(),
            client_id,
            actions: about.actions.clone(),
            sandbox: about.sandbox.clone(),
        })
    }

    /// The action that is asked for, in the workspace of this connection where none is named, nor a
    /// certain runtime, which has its own.
    fn asked(&self, call: &Call) -> Result<Request, Failure> {
        let mut request = Request::from(call.read::<ActionRequest>()?);
        let is_a_certain_one = request.runtime.as_ref().is_some_and(RuntimeChoice::is_one);
        if request.workspace.is_none() && !is_a_certain_one {
            request.workspace.clone_from(&self.workspace);
        }
        Ok(request)
    }

    async fn resolve(&self, call: &Call) -> Answer {
        let request = self.asked(call)?;
        answer(&self.gate.foresee(&self.actor, request).await?)
    }

    async fn execute(&self, call: &Call) -> Answer {
        let request = self.asked(call)?;
        let cancel = call.cancel_token();
        let live = self.gate.submit(&self.actor, request).await?;
        let mut said = Said::default();
        let mut printed = live.printed();
        let followed = Arc::clone(&live);
        let ended = followed.ended();
        tokio::pin!(ended);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut ended => break ended,
                changed = printed.changed() => {
                    if changed.is_ok() {
                        self.say(&live, &mut said).await;
                    }
                }
                () = cancel.cancelled() => {
                    live.cancel();
                    break ended.await;
                }
            }
        };
        if *live.printed().borrow() > said.after {
            self.say(&live, &mut said).await;
        }
        if said.goes_on(&live) {
            self.follow(live, said);
        }
        match &ended.outcome {
            Ok(result) => Ok((**result).to_owned()),
            Err(failure) => Err(failure.clone()),
        }
    }

    /// Tells the client what was printed, as it is in the store.
    async fn say(&self, live: &Live, said: &mut Said) {
        say(&self.gate, &self.remote, live, said).await;
    }

    /// Goes on telling what a terminal prints, after the action that opened it was answered.
    fn follow(&self, live: Arc<Live>, mut said: Said) {
        let (gate, remote) = (self.gate.clone(), self.remote.clone());
        tokio::spawn(async move {
            let mut printed = live.printed();
            while !said.exited {
                say(&gate, &remote, &live, &mut said).await;
                if said.exited {
                    break;
                }
                tokio::select! {
                    changed = printed.changed() => if changed.is_err() { break },
                    () = remote.closed() => break,
                }
            }
        });
    }

    fn respond(&self) -> Result<(), Failure> {
        match &*self.phase() {
            Phase::Ready(_) => Ok(()),
            Phase::New => Err(Failure::new(
                ErrorKind::NotInitialized,
                "The first request on a connection has to be `initialize`.",
            )),
            Phase::ShuttingDown => Err(Failure::new(
                ErrorKind::ShuttingDown,
                "`shutdown` was asked for; only `exit` may follow.",
            )),
        }
    }

    /// Passes on what the person is asked, and how it was answered. Ends only with the connection.
    async fn tell_notices(&self) {
        let mut notices = self.gate.notices();
        loop {
            let addressed = match notices.recv().await {
                Ok(addressed) => addressed,
                Err(tokio::sync::broadcast::error::RecvError::Lagged(count)) => {
                    tracing::warn!(count, "a client was too slow for what its person is asked");
                    continue;
                }
                Err(tokio::sync::broadcast::error::RecvError::Closed) => {
                    return std::future::pending().await;
                }
            };
            let mine = matches!(&self.actor, Actor::Person(person) if *person == addressed.person);
            let ready = matches!(*self.phase(), Phase::Ready(_));
            if !(mine && ready) {
                continue;
            }
            let _ = match &addressed.notice {
                Notice::Requested(approval) => {
                    self.remote.notify(PERMISSION_REQUESTED, &**approval).await
                }
                Notice::Resolved(resolved) => {
                    self.remote.notify(PERMISSION_RESOLVED, &**resolved).await
                }
            };
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Nothing panics while it is held.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a client was told of an action's output.
#[derive(Debug, Default)]
struct Said {
    after: Seq,
    next: u64,
    exited: bool,
}

impl Said {
    /// Whether more can come after the action's end: a terminal is open.
    fn goes_on(&self, live: &Live) -> bool {
        live.lasts && !self.exited
    }
}

async fn say<S: Store>(gate: &Gate<S>, remote: &Remote, live: &Live, said: &mut Said) {
    let Ok(stream) = stream_of(&live.id) else {
        return;
    };
    loop {
        let Ok(events) = gate.store().read(&stream, said.after, PAGE).await else {
            return;
        };
        let Some(last) = events.last() else { return };
        said.after = last.seq;
        for event in events {
            let told = match event.kind.as_str() {
                events::OUTPUT | events::DROPPED => {
                    let output = output(&live.id, said.next, &event.kind, &event.data);
                    said.next += 1;
                    remote.notify(ACTION_OUTPUT, &output).await
                }
                events::EXITED => {
                    said.exited = true;
                    remote.notify(TERMINAL_EXITED, &event.data).await
                }
                _ => Ok(()),
            };
            if told.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn output(id: &str, seq: u64, kind: &str, data: &Value) -> OutputParams {
    let field = |name: &str| data.get(name).cloned().unwrap_or_default();
    let dropped = kind == events::DROPPED;
    OutputParams {
        id: id.to_owned(),
        seq,
        stream: if dropped {
            protocol::method::OutputStream::Dropped
        } else {
            serde_json::from_value(field("stream"))
                .unwrap_or(protocol::method::OutputStream::Stdout)
        },
        data: match field(if dropped { "bytes" } else { "data" }) {
            Value::String(text) => text,
            other => other.to_string(),
        },
        encoding: serde_json::from_value(field("encoding")).unwrap_or(Encoding::Utf8),
    }
}

impl<S: Store> Service for &Door<S> {
    async fn request(&self, call: Call) -> Answer {
        if call.method == INITIALIZE {
            return self.initialize().await;
        }
        self.respond()?;
        match call.method.as_str() {
            ACTION_EXECUTE => self.execute(&call).await,
            ACTION_RESOLVE => self.resolve(&call).await,
            PERMISSION_RESPOND => {
                let RespondParams { id, answer: params } = call.read()?;
                answer(&self.gate.answer(&self.actor, &id, params).await?)
            }
            UNDO => {
                let mut what = Undo::try_from(call.read::<UndoParams>()?)?;
                if let Undo::Last { workspace } = &mut what
                    && workspace.is_none()
                {
                    workspace.clone_from(&self.workspace);
                }
                answer(&self.gate.undo(&self.actor, what).await?)
            }
            RUNTIME_STATUS => answer(&json!({
                "runtimes": self.gate.runtimes(&self.actor),
                "open_questions": self.gate.approvals(&self.actor).map_or(0, |open| open.len()),
            })),
            SHUTDOWN => {
                *self.phase() = Phase::ShuttingDown;
                answer(&())
            }
            _ => Err(call.unknown()),
        }
    }

    async fn notification(&self, notification: Notification) {
        match notification.method.as_str() {
            EXIT => self.remote.close(),
            CLIENT_ATTENTION => {
                if let (Ok(attention), Phase::Ready(Some(attached))) =
                    (notification.read(), &*self.phase())
                {
                    attached.turn(attention);
                }
            }
            method => tracing::debug!(method, "passed over a notification"),
        }
    }
}

impl<S: Store> Gate<S> {
    /// What would become of an action: the same answer that the gate acts on.
    pub async fn foresee(&self, actor: &Actor, request: Request) -> Result<Foreseen, Failure> {
        let (job, book) = self.0.admit(actor, request.bound_to(actor)?)?;
        let decided = self.0.look(&job, book, &[]).await?;
        let verdict = decided.decision.verdict;
        if let (Some(failure), Verdict::Allow) = (decided.unseen, verdict) {
            return Err(failure);
        }
        let told = match actor {
            Actor::Person(_) => decided.facts,
            Actor::Agent(_) => job.told(&decided.facts, verdict).into_owned(),
        };
        Ok(Foreseen {
            facts: told,
            verdict: verdict.as_str().to_owned(),
            rule: rule_info(&decided.decision.because),
            mode: decided.decision.mode,
        })
    }
}
