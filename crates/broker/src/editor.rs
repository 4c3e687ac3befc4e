//! One registered runtime: how an action gets there and back.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gate::runtime::{Output, Permit, Runtime, Waiting};
use policy::Confinement;
use protocol::method::InitializeResult;
use protocol::runtime::{
    CancelEvent, EVENT_CANCEL, EVENT_EXECUTE, ExecuteEvent, RuntimeHealth, RuntimeInfo, RuntimeNeed,
};
use protocol::sandbox::Tier;
use protocol::{ActionName, ErrorKind, Facts, Failure, Mode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use socketioxide::AckError;
use socketioxide::ack::AckStream;
use socketioxide::extract::SocketRef;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::below;
use crate::exec::{self, Here};
use crate::facts;
use crate::former::Gone;
use crate::index::About;
use crate::output::Outputs;
use crate::patched;

/// How long an answer is waited for, where the action says nothing.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The same, where a person decides.
const PERSON: Duration = Duration::from_secs(60 * 60);
/// What is added where the action has a limit of its own.
const MARGIN: Duration = Duration::from_secs(10);
/// How much an editor can say about what went wrong.
const MAX_ERROR: usize = 4 * 1024;
/// For how long an answer is still known that nobody waits for.
const LATE: Duration = Duration::from_secs(60);

/// A registered runtime.
pub(crate) struct Editor {
    pub(crate) id: String,
    pub(crate) person: String,
    state: Mutex<State>,
}

struct State {
    about: About,
    link: Option<Link>,
    away_since: Instant,
}

impl State {
    fn health(&self) -> RuntimeHealth {
        match &self.link {
            Some(link) if link.until > Instant::now() => RuntimeHealth::Ready,
            Some(_) | None => RuntimeHealth::Away,
        }
    }
}

/// The way to it, while it is connected.
#[derive(Clone)]
pub(crate) struct Link {
    socket: SocketRef,
    outputs: Outputs,
    /// Cancelled when it is lost.
    pub(crate) lost: CancellationToken,
    until: Instant,
    /// Which process it leads to, in that one's own words.
    instance: Option<String>,
    /// How what it runs is confined, once it has shown that it is on this machine.
    here: Option<(Here, Tier)>,
    /// Whether its folder was one of this machine's when it was registered. A folder that is moved
    /// away is no folder of another machine by that.
    is_near: bool,
}

impl Link {
    pub(crate) fn new(
        socket: SocketRef,
        outputs: Outputs,
        until: Instant,
        instance: Option<String>,
        is_near: bool,
    ) -> Self {
        Self {
            socket,
            outputs,
            lost: CancellationToken::new(),
            until,
            instance,
            here: None,
            is_near,
        }
    }

    /// Whether both lead to the same process.
    fn is_same(&self, other: &Self) -> bool {
        self.socket.id == other.socket.id
            || (self.instance.is_some() && self.instance == other.instance)
    }

    fn is_confined(&self) -> bool {
        matches!(self.here, Some((_, tier)) if tier > Tier::None)
    }
}

/// What an editor acknowledges an action with.
#[derive(Debug, Deserialize)]
struct Done {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: String,
    #[serde(default)]
    kind: Value,
}

impl Editor {
    /// One that is not connected.
    pub(crate) fn away(id: String, person: String, about: About) -> Self {
        Self {
            id,
            person,
            state: Mutex::new(State {
                about,
                link: None,
                away_since: Instant::now(),
            }),
        }
    }

    /// It is connected from now on, where this is the same folder in the same kind of editor, and
    /// nobody else is connected as this one. A connection that it had before is no longer used.
    pub(crate) fn comes_back(&self, link: &Link, about: &About) -> bool {
        let mut state = self.state();
        let same = state.about.kind == about.kind && state.about.workspace == about.workspace;
        let taken = state.health() == RuntimeHealth::Ready;
        let own = state
            .link
            .as_ref()
            .is_some_and(|before| before.is_same(link));
        if !same || (taken && !own) {
            return false;
        }
        state.about = about.clone();
        if let Some(before) = state.link.replace(link.clone()) {
            before.lost.cancel();
        }
        true
    }

    /// It is away from now on; what was under way there is lost.
    pub(crate) fn leave(&self) -> Instant {
        let mut state = self.state();
        if let Some(link) = state.link.take() {
            link.lost.cancel();
            state.away_since = Instant::now();
        }
        state.away_since
    }

    pub(crate) fn is_on(&self, socket_id: &str) -> bool {
        let state = self.state();
        let link = state.link.as_ref();
        link.is_some_and(|link| link.socket.id.as_str() == socket_id)
    }

    pub(crate) fn is_away_since(&self, since: Instant) -> bool {
        let state = self.state();
        state.link.is_none() && state.away_since == since
    }

    /// What is remembered of it when it is gone.
    pub(crate) fn gone(&self) -> Gone {
        Gone::new(&self.id, &self.person, &self.state().about)
    }

    /// Since when it is away; nothing for one that is connected.
    pub(crate) fn away_since(&self) -> Option<Instant> {
        let state = self.state();
        state.link.is_none().then_some(state.away_since)
    }

    /// When its lease ends; nothing for one that is away.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.state().link.as_ref().map(|link| link.until)
    }

    /// Renews the lease; not of one that is away.
    pub(crate) fn renew(&self, until: Instant) -> bool {
        match &mut self.state().link {
            Some(link) => {
                link.until = until;
                true
            }
            None => false,
        }
    }

    /// It is on this machine, over the connection that it has now; not one that is away.
    pub(crate) fn is_here(&self, here: &Here, tier: Tier) -> bool {
        match &mut self.state().link {
            Some(link) => {
                link.here = Some((here.clone(), tier));
                true
            }
            None => false,
        }
    }

    /// Whether what it runs is confined.
    fn is_confined(&self) -> bool {
        let state = self.state();
        state.link.as_ref().is_some_and(Link::is_confined)
    }

    /// Whether it is what is needed, in this workspace, which is named by its real path.
    pub(crate) fn fits(&self, need: &RuntimeNeed, workspace: &str) -> bool {
        let state = self.state();
        let about = &state.about;
        let kind = need.kind.as_ref().is_none_or(|kind| *kind == about.kind);
        let capability = need.capability.as_ref();
        let capable = capability.is_none_or(|name| about.capabilities.contains(name));
        kind && capable && about.workspace == workspace
    }

    /// Whether its folder is one of this machine's.
    pub(crate) fn is_near(&self) -> bool {
        let state = self.state();
        state.link.as_ref().is_none_or(|link| link.is_near)
    }

    /// Whether what is for this workspace may run in it: it works there, or on another machine, where
    /// all that it does is outside.
    pub(crate) fn works_in(&self, workspace: &str) -> bool {
        !self.is_near() || self.state().about.workspace == workspace
    }

    /// Whether it takes actions.
    pub(crate) fn health(&self) -> RuntimeHealth {
        self.state().health()
    }

    pub(crate) fn can(&self, action: &str) -> bool {
        let state = self.state();
        state.about.capabilities.iter().any(|name| name == action)
    }

    /// As it is listed.
    pub(crate) fn info(&self) -> RuntimeInfo {
        let state = self.state();
        let about = &state.about;
        RuntimeInfo {
            runtime_id: self.id.clone(),
            kind: about.kind.clone(),
            workspace: about.workspace.clone(),
            workspace_name: about.workspace_name.clone(),
            state: state.health(),
            capabilities: about.capabilities.clone(),
            version: about.version.clone(),
            extension_version: about.extension_version.clone(),
            confined: state.link.as_ref().is_some_and(Link::is_confined),
            restarts: 0,
            process: None,
        }
    }

    fn link(&self) -> Result<Link, Failure> {
        let state = self.state();
        let link = state
            .link
            .as_ref()
            .filter(|link| link.until > Instant::now());
        link.cloned().ok_or_else(|| is_away(&state.about))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, permit: Permit, output: Output) -> Result<Box<RawValue>, Failure> {
        let link = self.link()?;
        // What was decided on as confined is sent as a whole `ward exec`, or not at all.
        let confined = permit.mode() == Mode::Sandbox && runs(&permit);
        let mut mark = String::new();
        let wrapped = match &link.here {
            Some((here, _)) if confined && link.is_confined() => {
                let workspace = self.state().about.workspace.clone();
                mark = gate::new_id()?;
                Some(exec::wrapped(here, &workspace, &permit, &mark)?)
            }
            _ if confined => return Err(unproven()),
            _ => None,
        };
        let facts = permit.facts();
        let cwd = facts.command.as_ref().map(|command| &command.cwd);
        let touched = facts.paths.iter().map(|fact| &fact.path).chain(cwd);
        let paths = touched.cloned().collect();
        let (id, action, params) = permit.into_action();
        let deadline = deadline(&action, &params);
        let params = match wrapped {
            Some(wrapped) => wrapped,
            None if action == ActionName::FsPatch.as_str() => {
                patched::params(patched::text(&params)?)?
            }
            None => params,
        };
        let taking = link.outputs.open(&id, output);
        let event = ExecuteEvent {
            id: id.clone(),
            action,
            params,
            paths,
            confined,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        };
        let answer = link
            .socket
            .timeout(deadline + LATE)
            .emit_with_ack::<_, Done>(EVENT_EXECUTE, &event)
            .map_err(|error| {
                tracing::debug!(%error, "an action could not be sent to an editor");
                is_away(&self.state().about)
            })?;
        let mut under_way = UnderWay {
            link: &link,
            id: Some(id),
            answer: Some(Box::pin(answer)),
        };
        let answer = tokio::select! {
            answer = under_way.answered() => answer,
            () = tokio::time::sleep(deadline) => Err(AckError::Timeout),
            () = link.lost.cancelled() => {
                // A runtime that was removed, or let its lease end, is still there to be told to stop.
                if !link.socket.connected() {
                    under_way.id = None;
                }
                return Err(lost());
            }
        };
        match answer {
            // Beyond its deadline nobody waits for it: it is told to stop.
            Err(AckError::Timeout) => Err(Failure::new(
                ErrorKind::RuntimeTimeout,
                format!("The editor did not answer within {} s.", deadline.as_secs()),
            )),
            Err(AckError::Socket(_)) => {
                under_way.id = None;
                Err(lost())
            }
            Err(AckError::Decode(error)) => {
                under_way.id = None;
                Err(Failure::new(
                    ErrorKind::BadEncoding,
                    format!("The editor's answer cannot be read: {error}."),
                ))
            }
            Ok(mut done) => {
                under_way.id = None;
                taking.finish().await;
                if let (true, Some((_, tier))) = (confined, &link.here) {
                    if let Some(failure) = exec::not_made(&done.result, &mark, *tier) {
                        return Err(failure);
                    }
                    exec::held_by(&mut done.result, *tier);
                }
                result(done)
            }
        }
    }
}

type Answer = Pin<Box<AckStream<Done>>>;

/// An action that an editor works on. Dropped, it is told to stop, and its answer is dropped too.
struct UnderWay<'a> {
    link: &'a Link,
    id: Option<String>,
    answer: Option<Answer>,
}

impl UnderWay<'_> {
    /// Its answer, once.
    async fn answered(&mut self) -> Result<Done, AckError> {
        let Some(answer) = &mut self.answer else {
            return Err(AckError::Timeout);
        };
        let answer = answer.await;
        self.answer = None;
        answer
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        if let (Some(answer), Ok(here)) = (self.answer.take(), Handle::try_current()) {
            here.spawn(drop_late(id.clone(), answer, self.link.lost.clone()));
        }
        if let Err(error) = self.link.socket.emit(EVENT_CANCEL, &CancelEvent { id }) {
            tracing::debug!(%error, "an editor could not be told to stop");
        }
    }
}

/// Says so where an answer comes that nobody waits for.
async fn drop_late(id: String, answer: Answer, lost: CancellationToken) {
    tokio::select! {
        answer = tokio::time::timeout(LATE, answer) => {
            if let Ok(Ok(_) | Err(AckError::Decode(_))) = answer {
                tracing::debug!(id, "an answer that came too late was dropped");
            }
        }
        () = lost.cancelled() => {}
    }
}

fn result(done: Done) -> Result<Box<RawValue>, Failure> {
    if done.ok && !protocol::is_plain(&done.result) {
        return Err(Failure::new(
            ErrorKind::Io,
            "The editor's result has a field whose name cannot be written down and read again.",
        ));
    }
    if done.ok {
        return serde_json::value::to_raw_value(&done.result)
            .map_err(|error| Failure::new(ErrorKind::Internal, error.to_string()));
    }
    let kind = match serde_json::from_value(done.kind) {
        // Only the gate denies: it was allowed, and the editor would not.
        Ok(ErrorKind::Denied) => ErrorKind::PermissionDenied,
        Ok(kind) => kind,
        Err(_) => ErrorKind::Io,
    };
    let mut error = match done.error.is_empty() {
        true => "The editor could not do it and did not say why.".to_owned(),
        false => done.error,
    };
    if error.len() > MAX_ERROR {
        error.truncate(error.floor_char_boundary(MAX_ERROR));
        error.push('…');
    }
    Err(Failure::new(kind, error))
}

/// Whether it runs a command.
fn runs(permit: &Permit) -> bool {
    permit.facts().command.is_some()
}

fn unproven() -> Failure {
    Failure::new(
        ErrorKind::RuntimeLost,
        "The editor was connected anew and has not shown again that it is on this machine, so nothing would confine the command. Nothing was run; ask anew with another id.",
    )
}

/// How long an answer is waited for.
fn deadline(action: &str, params: &Value) -> Duration {
    let own = params.get("timeout_ms").and_then(Value::as_u64);
    match own {
        Some(own) => Duration::from_millis(own).min(PERSON) + MARGIN,
        None if action == ActionName::EditorDiff.as_str() => PERSON,
        None => PATIENCE,
    }
}

fn lost() -> Failure {
    Failure::new(
        ErrorKind::RuntimeLost,
        "The editor's connection was lost while this was under way. Nobody knows how far it came, and it is not done again: look, then ask anew with another id.",
    )
}

pub(crate) fn is_away(about: &About) -> Failure {
    Failure::new(
        ErrorKind::RuntimeAway,
        format!(
            "{} on {} is away: its connection is lost. Connect it again (in VS Code: Ward: Connect This Window), or choose another runtime.",
            about.kind, about.workspace
        ),
    )
}

/// The runtime as the gate takes it.
pub(crate) struct Place(pub(crate) Arc<Editor>);

impl Runtime for Place {
    fn confinement(&self) -> Confinement {
        match self.0.is_confined() {
            true => Confinement::Kernel,
            false => Confinement::Absent,
        }
    }

    fn resolve<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Result<Facts, Failure>> {
        Box::pin(async move {
            let (kind, workspace) = {
                let state = self.0.state();
                (state.about.kind.clone(), state.about.workspace.clone())
            };
            let mut facts = facts::of(action, params, &workspace, &kind)?;
            below::add(action, &workspace, &mut facts).await?;
            Ok(facts)
        })
    }

    fn execute(
        &self,
        permit: Permit,
        output: Output,
    ) -> Waiting<'_, Result<Box<RawValue>, Failure>> {
        Box::pin(self.0.send(permit, output))
    }

    fn about(&self) -> Waiting<'_, Result<Arc<InitializeResult>, Failure>> {
        Box::pin(async {
            Err(Failure::new(
                ErrorKind::NotCapable,
                "An editor does not describe itself so.",
            ))
        })
    }

    fn status(&self) -> RuntimeInfo {
        self.0.info()
    }

    fn stop(&self) -> Waiting<'_, ()> {
        Box::pin(async {})
    }
}
