//! One connection: which requests it takes when, and what they do.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::action::ActionName;
use protocol::method::{
    ACTION_EXECUTE, ACTION_RESOLVE, Authority, EXIT, ExecuteParams, INITIALIZE, InitializeParams,
    InitializeResult, RUNTIME_STATUS, ResolveParams, ResolveResult, RuntimeState, SESSION_CLOSE,
    SHUTDOWN, SessionCloseParams, SessionCloseResult, StatusResult, WALL_REVIEW,
};
use protocol::{ErrorKind, Failure};
use rpc::{Answer, Notification, Remote, Request, Service, answer};
use tokio::sync::OwnedSemaphorePermit;

use crate::action::Call;
use crate::context::Context;
use crate::executions::{Begun, Executions};
use crate::output::Output;
use crate::registry::{self, Prepared};
use crate::runtime::Runtime;
use crate::token::Token;

/// How long the end of what is under way is waited for when the connection ends.
const GRACE: Duration = Duration::from_secs(2);

/// How long a client that does not read is waited for with what need not be said.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(100);

/// The longest id of an action.
const MAX_ID: usize = 256;

/// One client, from its first frame to its last.
#[derive(Debug)]
pub(crate) struct Connection {
    runtime: Arc<Runtime>,
    authority: Authority,
    context: Arc<Context>,
    remote: Remote,
    phase: Mutex<Phase>,
    executions: Executions,
    /// Rooms and terminals as the client was last told.
    told: Mutex<(usize, usize)>,
}

/// What is expected next.
#[derive(Debug)]
enum Phase {
    /// `initialize`.
    New(Door),
    /// Anything.
    Ready,
    /// `exit`.
    ShuttingDown,
}

/// What stands between a client and `initialize`.
#[derive(Debug)]
pub(crate) enum Door {
    /// Nothing.
    Open,
    /// The token.
    Locked {
        token: Token,
        /// Given back when the token was shown.
        _place: Option<OwnedSemaphorePermit>,
        /// How large frames may be from then on.
        frame_limit: usize,
    },
}

impl Connection {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        authority: Authority,
        context: Context,
        remote: Remote,
        door: Door,
    ) -> Self {
        Self {
            runtime,
            authority,
            context: Arc::new(context),
            remote,
            phase: Mutex::new(Phase::New(door)),
            executions: Executions::default(),
            told: Mutex::default(),
        }
    }

    /// Whether the client need not show a token, or has.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(*self.phase(), Phase::New(Door::Locked { .. }))
    }

    async fn initialize(&self, request: &Request) -> Answer {
        let params: InitializeParams = request.read()?;
        self.enter(params.token.as_deref())?;
        if let Some(client) = &params.client {
            tracing::info!(client.name, client.version, "a client has initialised");
        }
        let about = answer(&InitializeResult {
            name: "ward".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: self.runtime.workspace().to_string_lossy().into_owned(),
            authority: self.authority,
            actions: registry::list().to_vec(),
            sandbox: self.runtime.sandbox().await?,
        });
        // From here on it mostly waits.
        sandbox::settle();
        about
    }

    /// Lets the client in, once, where it has the token.
    fn enter(&self, shown: Option<&str>) -> Result<(), Failure> {
        let mut phase = self.phase();
        match &*phase {
            Phase::Ready => {
                return Err(Failure::new(
                    ErrorKind::InvalidRequest,
                    "`initialize` was already answered on this connection.",
                ));
            }
            Phase::ShuttingDown => return Err(shutting_down()),
            Phase::New(Door::Open) => {}
            Phase::New(Door::Locked {
                token, frame_limit, ..
            }) => {
                if !shown.is_some_and(|shown| token.is(shown)) {
                    // One guess a connection.
                    self.remote.close();
                    return Err(Failure::new(
                        ErrorKind::Unauthorized,
                        "The token is missing or wrong. Give the one that `ward runtime --listen` printed or was started with, as `token` of `initialize`.",
                    ));
                }
                self.remote.set_frame_limit(*frame_limit);
            }
        }
        *phase = Phase::Ready;
        Ok(())
    }

    async fn resolve(&self, request: &Request) -> Answer {
        let params: ResolveParams = request.read()?;
        let prepared = registry::prepare(&params.action, params.params.clone())?;
        let facts = prepared.resolve(Arc::clone(&self.context)).await;
        let facts = facts.map_err(|failure| match self.authority {
            Authority::Standalone => failure,
            Authority::Gated => self.context.grounds.beyond(failure, &params.params),
        })?;
        answer(&ResolveResult { facts })
    }

    /// What a session can reach, as far as nothing was permitted.
    fn context_of(&self, session: Option<&str>) -> Arc<Context> {
        match self.authority {
            Authority::Standalone => Arc::clone(&self.context),
            Authority::Gated => Arc::new(self.context.of(session)),
        }
    }

    async fn execute(&self, request: &Request) -> Answer {
        let params: ExecuteParams = match request.read() {
            Ok(params) => params,
            Err(failure) => return Err(self.unreadable(request, failure)),
        };
        self.refuse_authority(&params)?;
        if params.id.is_empty() || params.id.len() > MAX_ID {
            return Err(Failure::new(
                ErrorKind::InvalidParams,
                format!("The `id` of an action has 1 to {MAX_ID} bytes."),
            ));
        }
        let cancel = request.cancel_token();
        let content = content(&params);
        let session = params.session.as_deref();
        let begun = self
            .executions
            .begin(&params.id, content, session, cancel.clone())?;
        let doing = match begun {
            Begun::First(doing) => doing,
            Begun::Again(execution) => {
                return tokio::select! {
                    outcome = execution.outcome.wait() => outcome.clone(),
                    () = cancel.cancelled() => Err(Failure::new(
                        ErrorKind::Cancelled,
                        "This request was cancelled; the action, which another request began, goes on.",
                    )),
                };
            }
        };
        let id = params.id.clone();
        let session = params.session.clone();
        let (prepared, context) = match self.prepare(params).await {
            Ok(ready) => ready,
            Err(failure) => return doing.refused(failure),
        };
        let name = prepared.name();
        let call = Call {
            context,
            output: Output::to(self.remote.clone(), id.clone()),
            id,
            session,
            cancel,
        };
        let answer = doing.ended(prepared.execute(call).await);
        self.tell_what_is_open(name).await;
        answer
    }

    /// What is said of a request that cannot be read: here nobody need know what a permit looks like
    /// to be told that there is none.
    fn unreadable(&self, request: &Request, failure: Failure) -> Failure {
        #[derive(serde::Deserialize)]
        struct Named {
            permit: Option<serde::de::IgnoredAny>,
            wall: Option<serde::de::IgnoredAny>,
        }
        let named = request.read::<Named>();
        let named = named.is_ok_and(|named| named.permit.is_some() || named.wall.is_some());
        match self.authority {
            Authority::Standalone if named => standalone(),
            Authority::Standalone | Authority::Gated => failure,
        }
    }

    /// Refuses a request that does not fit who decides here.
    fn refuse_authority(&self, params: &ExecuteParams) -> Result<(), Failure> {
        let refuse = |kind, sentence: &str| Err(Failure::new(kind, sentence));
        match self.authority {
            Authority::Standalone if params.permit.is_some() || params.wall.is_some() => {
                Err(standalone())
            }
            Authority::Gated if params.permit.is_none() => refuse(
                ErrorKind::Forbidden,
                "This runtime stands behind a gate and does nothing without its permit. Ask the gate for the action.",
            ),
            Authority::Gated if params.expect.is_none() => refuse(
                ErrorKind::InvalidParams,
                "A permit is for what was decided on: send the facts of `action/resolve` as `expect`.",
            ),
            Authority::Standalone | Authority::Gated => Ok(()),
        }
    }

    /// Reads an action, looks whether the facts that were decided on still hold, and gives it what
    /// it may touch.
    async fn prepare(&self, params: ExecuteParams) -> Result<(Prepared, Arc<Context>), Failure> {
        let prepared = registry::prepare(&params.action, params.params)?;
        let context = self.context_of(params.session.as_deref());
        let Some(expected) = params.expect else {
            return Ok((prepared, context));
        };
        let looked_at = Arc::clone(&context);
        prepared.refuse_other_facts(looked_at, &expected).await?;
        let Some(permit) = params.permit else {
            return Ok((prepared, context));
        };
        let wall = params.wall.unwrap_or_default();
        let context = context.permitted(&permit, wall, expected)?;
        Ok((prepared, Arc::new(context)))
    }

    /// Tells the client where this action changed what is open.
    async fn tell_what_is_open(&self, name: ActionName) {
        let opens = matches!(
            name,
            ActionName::TerminalRun
                | ActionName::TerminalOpen
                | ActionName::TerminalClose
                | ActionName::TerminalStop
        );
        if !opens {
            return;
        }
        self.tell_changes().await;
    }

    async fn tell_changes(&self) {
        let now = self.context.terminals.counts();
        let changed = std::mem::replace(&mut *lock(&self.told), now) != now;
        if changed {
            let status = self.status();
            // A client that does not read keeps nobody from ending.
            tokio::select! {
                _ = self.remote.notify(RUNTIME_STATUS, &status) => {}
                () = self.remote.closed() => {}
            }
        }
    }

    fn status(&self) -> StatusResult {
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (rooms, terminals) = self.context.terminals.counts();
        StatusResult {
            state: match *self.phase() {
                Phase::New(_) | Phase::Ready => RuntimeState::Ready,
                Phase::ShuttingDown => RuntimeState::ShuttingDown,
            },
            running: number(self.executions.running()),
            rooms: number(rooms),
            terminals: number(terminals),
        }
    }

    /// Ends what runs for a session at once, and forgets its terminals.
    async fn close_session(&self, request: &Request) -> Answer {
        let params: SessionCloseParams = request.read()?;
        let session = params.session.as_deref();
        let all = async {
            let (actions, terminals) = tokio::join!(
                self.executions.cancel_session(session),
                self.context.terminals.close_session(session)
            );
            actions || terminals
        };
        let changed = tokio::time::timeout(GRACE, all).await.unwrap_or_else(|_| {
            tracing::warn!("something of a session did not end in time");
            true
        });
        self.tell_changes().await;
        answer(&SessionCloseResult { changed })
    }

    /// Closes rooms that nobody has used for a while.
    pub(crate) async fn close_idle_rooms(&self) {
        if self.context.terminals.close_idle_rooms().await {
            self.tell_changes().await;
        }
    }

    async fn shutdown(&self) -> Answer {
        self.announce_end().await;
        self.close().await;
        answer(&())
    }

    /// From now on nothing new is taken, and the client is told, if it listens.
    pub(crate) async fn announce_end(&self) {
        *self.phase() = Phase::ShuttingDown;
        let status = self.status();
        let told = self.remote.notify(RUNTIME_STATUS, &status);
        let _ = tokio::time::timeout(LAST_WORDS, told).await;
    }

    /// Ends all that is under way; when this returns nothing is left running.
    pub(crate) async fn close(&self) {
        *self.phase() = Phase::ShuttingDown;
        let all = async {
            tokio::join!(self.executions.cancel_all(), self.context.terminals.close());
        };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("something did not end in time and was left to the system");
        }
    }

    /// Refuses what may not come now.
    fn is_ready(&self) -> Result<(), Failure> {
        match *self.phase() {
            Phase::Ready => Ok(()),
            Phase::New(_) => Err(Failure::new(
                ErrorKind::NotInitialized,
                "The first request on a connection has to be `initialize`.",
            )),
            Phase::ShuttingDown => Err(shutting_down()),
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        lock(&self.phase)
    }
}

impl Service for &Connection {
    async fn request(&self, request: Request) -> Answer {
        if request.method == INITIALIZE {
            return self.initialize(&request).await;
        }
        self.is_ready()?;
        match request.method.as_str() {
            ACTION_EXECUTE => self.execute(&request).await,
            ACTION_RESOLVE => self.resolve(&request).await,
            RUNTIME_STATUS => answer(&self.status()),
            SESSION_CLOSE if self.authority == Authority::Gated => {
                self.close_session(&request).await
            }
            SHUTDOWN => self.shutdown().await,
            _ => Err(request.unknown()),
        }
    }

    async fn notification(&self, notification: Notification) {
        match notification.method.as_str() {
            EXIT => self.remote.close(),
            WALL_REVIEW if self.authority == Authority::Gated => {
                if let Ok(rooms) = self.context.terminals.rooms() {
                    rooms.review();
                }
            }
            method => tracing::debug!(method, "passed over a notification"),
        }
    }
}

/// Stands for all of a request but its id.
fn content(params: &ExecuteParams) -> u64 {
    let mut hasher = DefaultHasher::new();
    params.action.hash(&mut hasher);
    params.params.hash(&mut hasher);
    params.session.hash(&mut hasher);
    // These have no hash of their own; they are short, and rare but for a gate.
    let decided = (&params.expect, &params.permit, &params.wall);
    if decided != (&None, &None, &None) {
        serde_json::to_string(&decided).ok().hash(&mut hasher);
    }
    hasher.finish()
}

fn standalone() -> Failure {
    Failure::new(
        ErrorKind::Standalone,
        "This runtime is standalone: there is no gate whose `permit` or `wall` it could take. Leave both out; everything runs in the sandbox.",
    )
}

fn shutting_down() -> Failure {
    Failure::new(
        ErrorKind::ShuttingDown,
        "`shutdown` was asked for; only `exit` may follow. Start the runtime again.",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while one is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
