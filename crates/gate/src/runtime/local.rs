//! The local runtime server, as a process that the gate starts over a private pipe and looks after.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use policy::Confinement;
use protocol::method::{
    ACTION_EXECUTE, ACTION_OUTPUT, ACTION_RESOLVE, Authority, ClientInfo, EXIT, ExecuteParams,
    ExitedParams, INITIALIZE, InitializeParams, InitializeResult, OutputParams, RUNTIME_STATUS,
    ResolveParams, ResolveResult, SHUTDOWN, StatusResult, TERMINAL_EXITED, WALL_ASK, WALL_REVIEW,
};
use protocol::runtime::LOCAL;
use protocol::{ErrorKind, Facts, Failure};
use rpc::{Answer, Limits, Notification, Peer, Remote, Request, Service, answer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::process::Command;
use tokio::sync::{Notify, watch};

use super::output::{Output, Piece};
use super::{Permit, Runtime, RuntimeHealth, RuntimeInfo, Waiting, Wall};

/// How long a runtime server has to answer `initialize`.
const START: Duration = Duration::from_secs(10);
/// How long an action waits for a runtime server that is starting.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it is looked after, and how long it has to answer then.
const CHECK: Duration = Duration::from_secs(10);
/// The shortest and the longest pause before it is started again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Who has run for so long has earned the shortest pause again.
const STEADY: Duration = Duration::from_secs(30);
/// How long it has to end by itself.
const GRACE: Duration = Duration::from_secs(4);

/// How the runtime server of a workspace is started.
#[derive(Clone)]
pub struct Launch {
    /// The program: Ward itself.
    pub program: PathBuf,
    /// Its arguments; the workspace is added behind them.
    pub arguments: Vec<OsString>,
    /// Who looks at a workspace's files in its place.
    pub near: Option<Nearby>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// Gives the one who is near to a workspace.
pub type Nearby = Arc<dyn Fn(&Path) -> Result<Arc<dyn Near>, Failure> + Send + Sync>;

/// Looks at what an action would touch, and does what only reads, in this very process: that saves
/// the way to the runtime server and back. All else that one does, and looks again before.
pub trait Near: Send + Sync {
    /// What it would touch; none where the runtime server has to be asked.
    fn look<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Option<Result<Facts, Failure>>>;

    /// Whether it does this action itself.
    fn does(&self, action: &str) -> bool;

    /// Does it, as the runtime server would.
    fn execute(&self, params: ExecuteParams) -> Waiting<'_, Result<Box<RawValue>, Failure>>;
}

/// The runtime server of one workspace. It starts with the first action, or by [`Runtime::wake`].
pub struct LocalRuntime(Arc<Inner>);

struct Inner {
    launch: Launch,
    workspace: PathBuf,
    wall: Arc<dyn Wall>,
    near: Option<Arc<dyn Near>>,
    connection: watch::Sender<State>,
    awake: AtomicBool,
    stopping: Notify,
    restarts: AtomicU64,
    process: AtomicU32,
    /// Where the output of which action goes.
    outputs: Mutex<HashMap<String, Output>>,
}

#[derive(Debug, Clone)]
enum State {
    Starting,
    Ready(Remote, Arc<InitializeResult>),
    Restarting,
    Stopped,
}

impl std::fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRuntime")
            .field("workspace", &self.0.workspace)
            .finish_non_exhaustive()
    }
}

impl LocalRuntime {
    /// The runtime server of this workspace. Nothing runs yet.
    #[must_use]
    pub fn new(launch: Launch, workspace: &Path, wall: Arc<dyn Wall>) -> Self {
        let near = launch.near.as_ref().map(|near| near(workspace));
        let near = near.and_then(|near| {
            near.inspect_err(|error| tracing::warn!(%error, "the runtime server is asked instead"))
                .ok()
        });
        Self(Arc::new(Inner {
            near,
            launch,
            workspace: workspace.to_owned(),
            wall,
            connection: watch::Sender::new(State::Starting),
            awake: AtomicBool::new(false),
            stopping: Notify::new(),
            restarts: AtomicU64::new(0),
            process: AtomicU32::new(0),
            outputs: Mutex::default(),
        }))
    }

    /// The way to it, once it is there.
    async fn remote(&self) -> Result<(Remote, Arc<InitializeResult>), Failure> {
        self.wake();
        let mut states = self.0.connection.subscribe();
        let ready = states.wait_for(|state| matches!(state, State::Ready(..) | State::Stopped));
        match tokio::time::timeout(PATIENCE, ready).await {
            Ok(Ok(state)) => match &*state {
                State::Ready(remote, about) => Ok((remote.clone(), Arc::clone(about))),
                State::Starting | State::Restarting | State::Stopped => {
                    Err(unavailable("it was ended. Start Ward again"))
                }
            },
            Ok(Err(_)) => Err(unavailable("it was ended. Start Ward again")),
            Err(_) => Err(unavailable(
                "it does not start. Ward's log says why; run `ward doctor`",
            )),
        }
    }
}

impl Runtime for LocalRuntime {
    fn confinement(&self) -> Confinement {
        Confinement::Kernel
    }

    fn resolve<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> Waiting<'a, Result<Facts, Failure>> {
        Box::pin(async move {
            if let Some(near) = &self.0.near
                && let Some(facts) = near.look(action, params).await
            {
                return facts;
            }
            let asked = ResolveParams {
                action: action.to_owned(),
                params: params.clone(),
            };
            // Looking changes nothing, so it may be done again where the server died meanwhile.
            let mut tries = 0;
            loop {
                let (remote, _) = self.remote().await?;
                let resolved: Result<ResolveResult, _> = remote.call(ACTION_RESOLVE, &asked).await;
                match resolved {
                    Err(failure) if failure.kind == ErrorKind::Disconnected && tries < 2 => {
                        tries += 1;
                        self.0.gone().await;
                    }
                    Err(failure) if failure.kind == ErrorKind::Disconnected => {
                        return Err(unavailable(
                            "it ends whenever it is asked. Ward's log says why",
                        ));
                    }
                    resolved => return Ok(resolved?.facts),
                }
            }
        })
    }

    fn execute(
        &self,
        permit: Permit,
        output: Output,
    ) -> Waiting<'_, Result<Box<RawValue>, Failure>> {
        Box::pin(async move {
            let params: ExecuteParams = permit.into_params();
            if let Some(near) = &self.0.near
                && near.does(&params.action)
            {
                return near.execute(params).await;
            }
            let (remote, _) = self.remote().await?;
            let mut listening = Listening::begin(&self.0, &params, output);
            let answer = remote.call_raw(ACTION_EXECUTE, &params).await;
            match answer {
                Ok(result) => {
                    listening.goes_on = listening.lasting;
                    Ok(result)
                }
                Err(failure) if failure.kind == ErrorKind::Disconnected => Err(lost()),
                Err(failure) => Err(failure),
            }
        })
    }

    /// Called within the event loop.
    fn wake(&self) {
        if !self.0.awake.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(&self.0).look_after());
        }
    }

    fn about(&self) -> Waiting<'_, Result<Arc<InitializeResult>, Failure>> {
        Box::pin(async move { Ok(self.remote().await?.1) })
    }

    fn review(&self) -> Waiting<'_, ()> {
        Box::pin(async move {
            let remote = match &*self.0.connection.borrow() {
                State::Ready(remote, _) => remote.clone(),
                State::Starting | State::Restarting | State::Stopped => return,
            };
            // One that does not read is ended soon, and its connections with it.
            let told = remote.notify(WALL_REVIEW, &());
            let _ = tokio::time::timeout(CHECK, told).await;
        })
    }

    fn status(&self) -> RuntimeInfo {
        let process = self.0.process.load(Ordering::Relaxed);
        RuntimeInfo {
            runtime_id: LOCAL.to_owned(),
            kind: LOCAL.to_owned(),
            workspace_name: String::new(),
            capabilities: Vec::new(),
            version: String::new(),
            extension_version: String::new(),
            confined: false,
            workspace: self.0.workspace.to_string_lossy().into_owned(),
            state: match &*self.0.connection.borrow() {
                State::Starting => RuntimeHealth::Starting,
                State::Ready(..) => RuntimeHealth::Ready,
                State::Restarting => RuntimeHealth::Restarting,
                State::Stopped => RuntimeHealth::Stopped,
            },
            restarts: self.0.restarts.load(Ordering::Relaxed),
            process: (process != 0).then_some(process),
        }
    }

    fn stop(&self) -> Waiting<'_, ()> {
        Box::pin(async move {
            if !self.0.awake.swap(true, Ordering::Relaxed) {
                self.0.connection.send_replace(State::Stopped);
                return;
            }
            self.0.stopping.notify_one();
            let mut states = self.0.connection.subscribe();
            let stopped = states.wait_for(|state| matches!(state, State::Stopped));
            let _ = tokio::time::timeout(GRACE * 2, stopped).await;
        })
    }
}

impl Inner {
    /// Starts the server, and starts it again whenever it ends by itself, after a pause that grows.
    async fn look_after(self: Arc<Self>) {
        let mut pause = PAUSES.0;
        loop {
            let began = Instant::now();
            match self.run().await {
                Ended::Asked => break,
                Ended::ByItself(why) => tracing::error!(
                    workspace = %self.workspace.display(),
                    "the runtime server has ended: {why}; it is started again"
                ),
            }
            self.process.store(0, Ordering::Relaxed);
            self.connection.send_replace(State::Restarting);
            if began.elapsed() > STEADY {
                pause = PAUSES.0;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stopping.notified() => break,
            }
            pause = (pause * 2).min(PAUSES.1);
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
        self.process.store(0, Ordering::Relaxed);
        self.connection.send_replace(State::Stopped);
    }

    /// One life of the server, from its start to its end.
    async fn run(&self) -> Ended {
        let child = Command::new(&self.launch.program)
            .args(&self.launch.arguments)
            .arg("--workspace")
            .arg(&self.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C in a terminal is for Ward, which then ends its runtimes in order.
            .process_group(0)
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => return Ended::ByItself(format!("it could not be started ({error})")),
        };
        self.process
            .store(child.id().unwrap_or(0), Ordering::Relaxed);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Ended::ByItself("it has no pipe".to_owned());
        };
        let (peer, remote) = Peer::new(stdout, stdin, Limits::default());
        let served = peer.run(self);
        tokio::pin!(served);
        let ended = tokio::select! {
            end = &mut served => Ended::ByItself(format!("its pipe was closed ({end:?})")),
            why = self.greet_and_check(&remote) => Ended::ByItself(why),
            () = self.stopping.notified() => Ended::Asked,
        };
        if let Ended::Asked = ended {
            self.connection.send_replace(State::Restarting);
            let farewell = async {
                let _: Result<Value, _> = remote.call(SHUTDOWN, &()).await;
                let _ = remote.notify(EXIT, &()).await;
            };
            let _ = tokio::time::timeout(GRACE, async {
                tokio::select! {
                    _ = &mut served => {}
                    () = async { farewell.await; std::future::pending().await } => {}
                }
                let _ = child.wait().await;
            })
            .await;
        }
        // Whoever waits for an answer learns now that none will come.
        remote.close();
        let _ = tokio::time::timeout(GRACE, child.kill()).await;
        self.outputs().clear();
        ended
    }

    /// Says who we are, then looks now and then whether it still answers. Returns why it is given
    /// up.
    async fn greet_and_check(&self, remote: &Remote) -> String {
        let hello = InitializeParams {
            client: Some(ClientInfo {
                name: "ward gate".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
            token: None,
        };
        let greeted = remote.call::<_, InitializeResult>(INITIALIZE, &hello);
        match tokio::time::timeout(START, greeted).await {
            Ok(Ok(hello)) if hello.authority == Authority::Gated => {
                let ready = State::Ready(remote.clone(), Arc::new(hello));
                self.connection.send_replace(ready);
            }
            Ok(Ok(_)) => return "it does not know that it has a gate".to_owned(),
            Ok(Err(failure)) => return format!("it does not begin: {failure}"),
            Err(_) => return "it does not answer".to_owned(),
        }
        loop {
            tokio::time::sleep(CHECK).await;
            let status = remote.call::<_, StatusResult>(RUNTIME_STATUS, &());
            match tokio::time::timeout(CHECK, status).await {
                Ok(Ok(_)) => {}
                Ok(Err(failure)) => return format!("it is not well: {failure}"),
                Err(_) => return "it does not answer any more".to_owned(),
            }
        }
    }

    /// Waits until it is known that the connection is gone.
    async fn gone(&self) {
        let mut states = self.connection.subscribe();
        let gone = states.wait_for(|state| !matches!(state, State::Ready(..)));
        let _ = tokio::time::timeout(Duration::from_secs(1), gone).await;
    }

    fn outputs(&self) -> MutexGuard<'_, HashMap<String, Output>> {
        // Nothing panics while it is held.
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass_on(&self, id: &str, piece: Piece) {
        let output = self.outputs().get(id).cloned();
        match output {
            Some(output) => output.send(piece).await,
            None => tracing::debug!(id, "output that nobody waits for was dropped"),
        }
    }
}

/// How a server's life ended.
enum Ended {
    Asked,
    ByItself(String),
}

impl Service for &Inner {
    async fn request(&self, request: Request) -> Answer {
        match request.method.as_str() {
            WALL_ASK => answer(&self.wall.ask(request.read()?).await),
            _ => Err(request.unknown()),
        }
    }

    async fn notification(&self, notification: Notification) {
        match notification.method.as_str() {
            ACTION_OUTPUT => {
                if let Ok(params) = notification.read::<OutputParams>() {
                    let piece = Piece::Printed {
                        stream: params.stream,
                        data: params.data,
                        encoding: params.encoding,
                    };
                    self.pass_on(&params.id, piece).await;
                }
            }
            TERMINAL_EXITED => {
                if let Ok(params) = notification.read::<ExitedParams>() {
                    let id = params.id.clone();
                    self.pass_on(&id, Piece::Exited(Box::new(params))).await;
                    self.outputs().remove(&id);
                }
            }
            method => tracing::trace!(method, "passed over a notification"),
        }
    }
}

/// Takes the output of an action for as long as it runs; that of a terminal until it ends.
struct Listening<'a> {
    inner: &'a Inner,
    id: String,
    lasting: bool,
    /// What it opened goes on printing.
    goes_on: bool,
}

impl<'a> Listening<'a> {
    fn begin(inner: &'a Inner, params: &ExecuteParams, output: Output) -> Self {
        let background = params.params.get("background") == Some(&Value::Bool(true));
        inner.outputs().insert(params.id.clone(), output);
        Self {
            inner,
            id: params.id.clone(),
            lasting: background || params.action == protocol::ActionName::TerminalOpen.as_str(),
            goes_on: false,
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if !self.goes_on {
            self.inner.outputs().remove(&self.id);
        }
    }
}

fn unavailable(why: &str) -> Failure {
    Failure::new(
        ErrorKind::RuntimeUnavailable,
        format!("The runtime server cannot be reached: {why}."),
    )
}

fn lost() -> Failure {
    Failure::new(
        ErrorKind::RuntimeLost,
        "The runtime server ended while it worked on this. Nobody knows how far it came, and it is not done again: look, then ask anew with another id.",
    )
}
