//! A Jupyter kernel that runs: its sockets, and what is said over them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use jupyter_protocol::messaging::{
    ExecuteRequest, ExecutionState, InputReply, InterruptRequest, JupyterMessage,
    JupyterMessageContent as Content, KernelInfoRequest, ReplyStatus, Stdio,
};
use jupyter_zmq_client::{
    ClientControlConnection, Connection, DealerSendConnection, create_client_control_connection,
    create_client_iopub_connection, create_client_shell_connection_with_identity,
    create_client_stdin_connection_with_identity, peer_identity_for_session,
};
use notebook::OutputId;
use runtime_core::{ExecutionContext, Finished, NoInput, Question, bundle_from_jupyter};
use sandbox::{End, Outcome, Room, RoomOptions, SandboxError, Stopper};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::launch::{Meeting, launch};
use crate::spec::KernelSpec;
use crate::store::random;
use crate::terminal::Terminal;

/// How long a kernel has to start.
const START: Duration = Duration::from_secs(60);
/// How often it is looked whether its sockets are there.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is asked whether it hears.
const HELLO: Duration = Duration::from_millis(250);
/// How long it has to stop once it was interrupted.
const STOP: Duration = Duration::from_secs(5);
/// How long it may say nothing once it has said how the run ended, before that counts as the end.
const SILENCE: Duration = Duration::from_secs(10);
/// How many of its messages wait to be read.
const WAITING: usize = 256;

/// Why a kernel does not run.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The sandbox did not let it start.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The folder for its sockets cannot be had.
    #[error("The kernel's folder cannot be used. {0}")]
    Folder(String),
    /// Its environment cannot be shown to it.
    #[error(
        "The kernel's environment {} holds your home folder or Ward's own, so that it would be open to every cell. Install the kernel in a venv.",
        .0.display()
    )]
    Environment(PathBuf),
    /// It ended.
    #[error("The kernel ended: {0}")]
    Died(String),
    /// It does not answer.
    #[error("The kernel did not answer within {} seconds.", START.as_secs())]
    Slow,
    /// Its sockets do not work.
    #[error("The kernel cannot be talked to: {0}")]
    Talk(String),
}

impl KernelError {
    /// The stable word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sandbox(_) => "sandbox_failed",
            Self::Folder(_) => "io",
            Self::Environment(_) => "outside_workspace",
            Self::Died(_) => "runtime_lost",
            Self::Slow => "runtime_timeout",
            Self::Talk(_) => "disconnected",
        }
    }
}

/// How a run on a kernel came to its end.
#[derive(Debug)]
pub(crate) enum Ran {
    /// The kernel said so.
    Finished(Finished),
    /// The kernel is gone, and why; it has to be started anew.
    Died(String),
    /// It did not stop when it was told to, and was ended.
    Killed,
}

/// A question that waits for its answer.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<String, NoInput>> + 'a>>;

/// What a kernel sent.
enum Came {
    Shell(JupyterMessage),
    IoPub(JupyterMessage),
    Stdin(JupyterMessage),
}

/// A kernel that runs. Dropping it ends it, and all that it started.
pub struct Kernel {
    shell: DealerSendConnection,
    stdin: DealerSendConnection,
    control: ClientControlConnection,
    came: mpsc::Receiver<Came>,
    readers: Vec<JoinHandle<()>>,
    /// Why it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    terminal: Terminal,
    by_message: bool,
    /// What it says about its language, for the file.
    language: Value,
    stopper: Stopper,
    _room: Room,
    _meeting: Meeting,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
        self.stopper.kill();
    }
}

impl Kernel {
    /// Starts a kernel in a room of its own, and waits until it answers.
    pub async fn start(spec: &KernelSpec, room: &RoomOptions) -> Result<Self, KernelError> {
        let (meeting, room, mut running) = launch(spec, room)?;
        let stopper = running.stopper();
        // Whatever goes wrong from here on, it does not run on.
        let mut guard = Guard(Some(stopper.clone()));
        let file = running.terminal.take();
        let file = file.ok_or_else(|| KernelError::Talk("it has no terminal".to_owned()))?;
        let terminal =
            Terminal::watch(file).map_err(|error| KernelError::Talk(error.to_string()))?;
        let (told, mut ended) = watch::channel(None);
        std::thread::Builder::new()
            .name("kernel".into())
            .spawn(move || drop(told.send(Some(why(&running.wait())))))
            .map_err(|error| KernelError::Talk(error.to_string()))?;
        let start = async {
            while !meeting.is_ready()? {
                tokio::time::sleep(LOOK).await;
            }
            Sockets::connect(&meeting).await
        };
        let sockets = tokio::select! {
            sockets = start => sockets?,
            why = gone(&mut ended) => return Err(died(&why, &terminal)),
            () = tokio::time::sleep(START) => return Err(KernelError::Slow),
        };
        let mut kernel = Self {
            shell: sockets.shell,
            stdin: sockets.stdin,
            control: sockets.control,
            came: sockets.came,
            readers: sockets.readers,
            ended,
            terminal,
            by_message: spec.interrupted_by_message,
            language: Value::Null,
            stopper,
            _room: room,
            _meeting: meeting,
        };
        guard.0 = None;
        let mut ended = kernel.ended.clone();
        let hello = tokio::select! {
            hello = kernel.hello() => hello.map(Some),
            why = gone(&mut ended) => Err(KernelError::Died(why)),
            () = tokio::time::sleep(START) => Ok(None),
        };
        match hello {
            Ok(Some(())) => Ok(kernel),
            Ok(None) => Err(KernelError::Slow),
            Err(KernelError::Died(why)) => Err(died(&why, &kernel.terminal)),
            Err(error) => Err(error),
        }
    }

    /// What it says about its language, as Jupyter's files have it.
    #[must_use]
    pub fn language(&self) -> &Value {
        &self.language
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// Asks until it answers, and until what it publishes arrives here.
    async fn hello(&mut self) -> Result<(), KernelError> {
        let (mut answered, mut heard) = (false, false);
        while !(answered && heard) {
            send(&mut self.shell, KernelInfoRequest {}.into()).await?;
            let until = Instant::now() + HELLO;
            loop {
                let came = tokio::select! {
                    came = self.came.recv() => came,
                    () = sleep_until(until) => break,
                };
                match came {
                    None => return Err(KernelError::Talk("its sockets closed".to_owned())),
                    Some(Came::Shell(message)) => {
                        if let Content::KernelInfoReply(reply) = message.content {
                            let language = serde_json::to_value(&reply.language_info);
                            self.language = language.unwrap_or_default();
                            answered = true;
                        }
                    }
                    Some(Came::IoPub(_)) => heard = true,
                    Some(Came::Stdin(_)) => {}
                }
                if answered && heard {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs a cell. `asks` is whether somebody can be asked for input.
    pub(crate) async fn execute(
        &mut self,
        context: &ExecutionContext,
        asks: bool,
    ) -> Result<Ran, KernelError> {
        let request = ExecuteRequest {
            allow_stdin: asks,
            // One cell runs at a time: there is nothing behind it that could be called off, but a
            // kernel would also call off what comes within the next moment.
            stop_on_error: false,
            ..ExecuteRequest::new(context.cell().source.clone())
        };
        let request: JupyterMessage = request.into();
        let id = request.header.msg_id.clone();
        send(&mut self.shell, request).await?;
        let (mut finished, mut idle) = (None, false);
        let mut stop_by: Option<Instant> = None;
        // Where a kernel publishes faster than anybody reads, it drops what it publishes, also that
        // it is done.
        let mut silent_by: Option<Instant> = None;
        let mut asked: Option<JupyterMessage> = None;
        let mut asking: Option<Asking<'_>> = None;
        loop {
            if idle && let Some(finished) = finished.take() {
                return Ok(Ran::Finished(finished));
            }
            let answer = async {
                match &mut asking {
                    Some(asking) => asking.await,
                    None => std::future::pending().await,
                }
            };
            if finished.is_some() {
                silent_by = Some(Instant::now() + SILENCE);
            }
            tokio::select! {
                came = self.came.recv() => match came {
                    None => return Ok(Ran::Died("its sockets closed".to_owned())),
                    Some(Came::Shell(message)) if is_child(&message, &id) => {
                        if let Content::ExecuteReply(reply) = message.content {
                            context.count(reply.execution_count.0 as u64);
                            let error = reply.error.map(|error| *error);
                            finished = Some(match reply.status {
                                ReplyStatus::Ok => Finished::Ok,
                                _ if context.is_cancelled() => Finished::Cancelled,
                                ReplyStatus::Error | ReplyStatus::Aborted => {
                                    let words = error.map(|error| {
                                        format!("{}: {}", error.ename, error.evalue)
                                    });
                                    Finished::failed(words.unwrap_or("It was aborted.".to_owned()))
                                }
                            });
                        }
                    }
                    Some(Came::IoPub(message)) if is_child(&message, &id) => {
                        idle |= show(context, message.content);
                    }
                    Some(Came::Stdin(message)) if is_child(&message, &id) => {
                        if let Content::InputRequest(wanted) = &message.content {
                            asking = Some(Box::pin(context.input(Question {
                                prompt: wanted.prompt.clone(),
                                password: wanted.password,
                            })));
                            asked = Some(message);
                        }
                    }
                    // It belongs to a run that is over.
                    Some(Came::Shell(_) | Came::IoPub(_) | Came::Stdin(_)) => {}
                },
                answer = answer => {
                    asking = None;
                    // Whoever is to stop is interrupted below, and once.
                    if !context.is_cancelled() {
                        if let (Some(asked), Ok(value)) = (&asked, &answer) {
                            echo_input(context, &asked.content, value);
                        }
                        self.answer(asked.take().as_ref(), answer).await?;
                    }
                }
                () = context.cancelled(), if stop_by.is_none() => {
                    stop_by = Some(Instant::now() + STOP);
                    self.interrupt().await?;
                }
                () = until(silent_by) => {
                    context.stderr("The kernel showed more than could be read; some of it is lost.\n");
                    idle = true;
                }
                () = until(stop_by) => return Ok(Ran::Killed),
                why = gone(&mut self.ended) => return Ok(Ran::Died(why)),
            }
        }
    }

    /// Gives the kernel what was typed; where nobody can be asked, it is interrupted.
    async fn answer(
        &mut self,
        asked: Option<&JupyterMessage>,
        answer: Result<String, NoInput>,
    ) -> Result<(), KernelError> {
        match answer {
            Ok(value) => {
                let reply = InputReply {
                    value,
                    status: ReplyStatus::Ok,
                    error: None,
                };
                send(&mut self.stdin, JupyterMessage::new(reply, asked)).await
            }
            Err(NoInput) => self.interrupt().await,
        }
    }

    /// Interrupts what it runs: by a message, or by Ctrl-C in its terminal.
    pub async fn interrupt(&mut self) -> Result<(), KernelError> {
        match self.by_message {
            true => send(&mut self.control, InterruptRequest {}.into()).await,
            false => {
                let sent = self.terminal.interrupt();
                sent.map_err(|error| KernelError::Talk(error.to_string()))
            }
        }
    }

    /// Ends it, and waits until nothing of it is left.
    pub async fn end(mut self) {
        self.stopper.kill();
        gone(&mut self.ended).await;
    }
}

/// Ends a kernel that never came to be one.
struct Guard(Option<Stopper>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(stopper) = &self.0 {
            stopper.kill();
        }
    }
}

/// The sockets of a kernel, and the tasks that read them.
struct Sockets {
    shell: DealerSendConnection,
    stdin: DealerSendConnection,
    control: ClientControlConnection,
    came: mpsc::Receiver<Came>,
    readers: Vec<JoinHandle<()>>,
}

impl Sockets {
    async fn connect(meeting: &Meeting) -> Result<Self, KernelError> {
        let session = random().map_err(KernelError::Talk)?;
        let talk = |error: jupyter_zmq_client::RuntimeError| KernelError::Talk(error.to_string());
        let info = &meeting.info;
        // What the kernel asks on one socket is for who asked on the other.
        let identity = || peer_identity_for_session(&session).map_err(talk);
        let shell = create_client_shell_connection_with_identity(info, &session, identity()?);
        let shell = shell.await.map_err(talk)?;
        let stdin = create_client_stdin_connection_with_identity(info, &session, identity()?);
        let stdin = stdin.await.map_err(talk)?;
        let iopub = create_client_iopub_connection(info, "", &session);
        let mut iopub = iopub.await.map_err(talk)?;
        let control = create_client_control_connection(info, &session);
        let control = control.await.map_err(talk)?;
        let (shell, mut replies) = shell.split();
        let (stdin, mut questions) = stdin.split();
        let (sender, came) = mpsc::channel(WAITING);
        let (to_shell, to_stdin) = (sender.clone(), sender.clone());
        let readers = vec![
            tokio::spawn(async move { pass(&mut replies, to_shell, Came::Shell).await }),
            tokio::spawn(async move { pass(&mut questions, to_stdin, Came::Stdin).await }),
            tokio::spawn(async move { pass(&mut iopub, sender, Came::IoPub).await }),
        ];
        Ok(Self {
            shell,
            stdin,
            control,
            came,
            readers,
        })
    }
}

/// Passes on what comes on a socket. A message that cannot be read, or is not signed as it should
/// be, is passed over.
async fn pass<S: zeromq::SocketRecv>(
    socket: &mut Connection<S>,
    to: mpsc::Sender<Came>,
    came: fn(JupyterMessage) -> Came,
) {
    loop {
        match socket.read().await {
            Ok(message) => {
                if to.send(came(message)).await.is_err() {
                    return;
                }
            }
            Err(jupyter_zmq_client::RuntimeError::ZmqError(error)) => {
                tracing::debug!(%error, "a kernel's socket closed");
                return;
            }
            Err(error) => tracing::debug!(%error, "a kernel's message cannot be read"),
        }
    }
}

async fn send<S: zeromq::SocketSend>(
    socket: &mut Connection<S>,
    message: JupyterMessage,
) -> Result<(), KernelError> {
    let sent = socket.send(message).await;
    sent.map_err(|error| KernelError::Talk(error.to_string()))
}

fn is_child(message: &JupyterMessage, id: &str) -> bool {
    let parent = message.parent_header.as_ref();
    parent.is_some_and(|parent| parent.msg_id == id)
}

/// Shows what a kernel published. Whether it is done with the run.
fn show(context: &ExecutionContext, content: Content) -> bool {
    match content {
        Content::StreamContent(stream) => match stream.name {
            Stdio::Stdout => context.stdout(&stream.text),
            Stdio::Stderr => context.stderr(&stream.text),
        },
        Content::DisplayData(shown) => {
            let id = shown.transient.and_then(|transient| transient.display_id);
            let bundle = bundle_from_jupyter(object(&shown.data), shown.metadata);
            // What is left of it was made to be one that can be shown.
            let _ = context.display(bundle, id.and_then(|id| OutputId::new(id).ok()));
        }
        Content::UpdateDisplayData(shown) => {
            let bundle = bundle_from_jupyter(object(&shown.data), shown.metadata);
            let id = shown.transient.display_id;
            if let Some(id) = id.and_then(|id| OutputId::new(id).ok()) {
                let _ = context.update_display(id, bundle);
            }
        }
        Content::ExecuteResult(result) => {
            let bundle = bundle_from_jupyter(object(&result.data), result.metadata);
            context.result_of(bundle, Some(result.execution_count.0 as u64));
        }
        Content::ErrorOutput(error) => {
            context.error(&error.ename, &error.evalue, error.traceback);
        }
        Content::ClearOutput(clear) => context.clear(clear.wait),
        Content::Status(status) => return matches!(status.execution_state, ExecutionState::Idle),
        Content::CommOpen(_) | Content::CommMsg(_) | Content::CommClose(_) => {
            tracing::debug!("a kernel's comm message has nobody who listens");
        }
        _ => {}
    }
    false
}

/// Shows what was asked and answered, as Jupyter's own programs do; never a password.
fn echo_input(context: &ExecutionContext, asked: &Content, value: &str) {
    if let Content::InputRequest(asked) = asked {
        let shown = match asked.password {
            true => "········",
            false => value,
        };
        context.stdout(&format!("{}{shown}\n", asked.prompt));
    }
}

fn object(media: &jupyter_protocol::media::Media) -> Map<String, Value> {
    match serde_json::to_value(media) {
        Ok(Value::Object(data)) => data,
        _ => Map::new(),
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the kernel is gone, and says why.
async fn gone(ended: &mut watch::Receiver<Option<String>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => "nobody watches over it any more".to_owned(),
    }
}

fn died(why: &str, terminal: &Terminal) -> KernelError {
    let last = terminal.last_lines();
    match last.is_empty() {
        true => KernelError::Died(format!("{why}.")),
        false => KernelError::Died(format!("{why}. It said:\n{last}")),
    }
}

/// Why a kernel ended, in words.
fn why(outcome: &Outcome) -> String {
    if let Some(limit) = &outcome.report.limit {
        return format!("it went beyond its limit of {limit:?}").to_lowercase();
    }
    match outcome.end {
        End::Exited(code) => format!("it exited with {code}"),
        End::Signalled(signal) => format!("signal {signal} ended it"),
    }
}
