//! A Jupyter kernel that runs: its sockets, and what is said over them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jupyter_protocol::messaging::{
    ExecuteRequest, ExecutionState, InputReply, InterruptRequest, JupyterMessage,
    JupyterMessageContent as Content, KernelInfoRequest, Payload, ReplyStatus, Stdio,
};
use notebook::{Bundle, OutputId};
use protocol::Digest;
use protocol::sandbox::SetAside;
use runtime_core::{ExecutionContext, Finished, NoInput, Question, bundle_from_jupyter};
use sandbox::{End, Outcome, Room, RoomOptions, SandboxError, Stopper};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::comms::Spoken;
use crate::heard::{Heard, Shown};
use crate::launch::{Meeting, launch};
use crate::relay::LARGEST;
use crate::sockets::{Came, Shell, Socket, Sockets, send};
use crate::spec::KernelSpec;
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
    /// It took no request any more: nothing ran.
    Unsent(KernelError),
}

/// A kernel that is gone.
#[derive(Debug, Clone)]
struct Ended {
    why: String,
    /// What it had made that would have run by itself.
    set_aside: Vec<SetAside>,
}

/// A question that waits for its answer.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<String, NoInput>> + 'a>>;

/// A kernel that runs. Dropping it ends it, and all that it started.
pub(crate) struct Kernel {
    sockets: Sockets,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<Ended>>,
    /// A cell told it to exit: it takes no other one.
    leaves: bool,
    terminal: Terminal,
    by_message: bool,
    /// What it says about its language, for the file.
    language: Value,
    stopper: Stopper,
    room: Arc<Room>,
    _meeting: Meeting,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.stopper.kill();
    }
}

impl Kernel {
    /// Starts a kernel in a room of its own, and waits until it answers. What it says over its comms
    /// is put there.
    pub(crate) async fn start(
        spec: &KernelSpec,
        room: &RoomOptions,
        spoken: &Spoken,
    ) -> Result<Self, KernelError> {
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
            .spawn(move || drop(told.send(Some(ended_by(running.wait())))))
            .map_err(|error| KernelError::Talk(error.to_string()))?;
        let start = async {
            while !meeting.is_ready()? {
                tokio::time::sleep(LOOK).await;
            }
            Sockets::connect(&meeting, spoken).await
        };
        let sockets = tokio::select! {
            sockets = start => sockets?,
            ended = gone(&mut ended) => return Err(died(&ended.why, &terminal).await),
            () = tokio::time::sleep(START) => return Err(KernelError::Slow),
        };
        let mut kernel = Self {
            sockets,
            ended,
            leaves: false,
            terminal,
            by_message: spec.interrupted_by_message,
            language: Value::Null,
            stopper,
            room: Arc::new(room),
            _meeting: meeting,
        };
        guard.0 = None;
        let mut ended = kernel.ended.clone();
        let hello = tokio::select! {
            hello = kernel.hello() => hello.map(Some),
            ended = gone(&mut ended) => Err(KernelError::Died(ended.why)),
            () = tokio::time::sleep(START) => Ok(None),
        };
        match hello {
            Ok(Some(())) => {
                kernel.sockets.wanted.nothing();
                Ok(kernel)
            }
            Ok(None) => Err(KernelError::Slow),
            Err(KernelError::Died(why)) => Err(died(&why, &kernel.terminal).await),
            Err(error) => Err(error),
        }
    }

    /// What it says about its language, as Jupyter's files have it.
    #[must_use]
    pub(crate) fn language(&self) -> &Value {
        &self.language
    }

    /// The way to it, beside whatever it runs.
    pub(crate) fn shell(&self) -> &Shell {
        &self.sockets.shell
    }

    /// Whether it still runs, and takes cells.
    #[must_use]
    pub(crate) fn is_alive(&self) -> bool {
        !self.leaves && self.ended.borrow().is_none()
    }

    /// Asks until it answers, and until what it publishes arrives here.
    async fn hello(&mut self) -> Result<(), KernelError> {
        let (mut answered, mut heard) = (false, false);
        while !(answered && heard) {
            let hello = KernelInfoRequest {}.into();
            send(&mut *self.sockets.shell.lock().await, hello).await?;
            let until = Instant::now() + HELLO;
            loop {
                let came = tokio::select! {
                    came = self.sockets.came.recv() => came,
                    () = sleep_until(until) => break,
                };
                match came {
                    None => return Err(KernelError::Talk("its sockets closed".to_owned())),
                    Some(Came::Shell(heard)) => {
                        if let Content::KernelInfoReply(reply) = heard.message.content {
                            let language = serde_json::to_value(&reply.language_info);
                            self.language = language.unwrap_or_default();
                            if reply.language_info.version.is_empty()
                                && let Some(language) = self.language.as_object_mut()
                            {
                                language.remove("version");
                            }
                            answered = true;
                        }
                    }
                    Some(Came::IoPub(_)) => heard = true,
                    Some(Came::Stdin(_) | Came::TooLarge(..) | Came::Unread(..)) => {}
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
        let ran = self.run(context, asks).await;
        self.sockets.wanted.nothing();
        // What is left of it is for nobody, and must not stand before the next one's.
        while self.sockets.came.try_recv().is_ok() {}
        ran
    }

    async fn run(&mut self, context: &ExecutionContext, asks: bool) -> Result<Ran, KernelError> {
        let request = ExecuteRequest {
            allow_stdin: asks,
            // One cell runs at a time: there is nothing behind it that could be called off, but a
            // kernel would also call off what comes within the next moment.
            stop_on_error: false,
            ..ExecuteRequest::new(context.cell().source.clone())
        };
        let request: JupyterMessage = request.into();
        self.sockets.wanted.run(&request.header.msg_id);
        if let Err(error) = send(&mut *self.sockets.shell.lock().await, request).await {
            return Ok(Ran::Unsent(error));
        }
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
                came = self.sockets.came.recv() => match came {
                    None => return Ok(Ran::Died("its sockets closed".to_owned())),
                    Some(Came::Shell(heard)) => {
                        if let Content::ExecuteReply(reply) = heard.message.content {
                            context.count(reply.execution_count.0 as u64);
                            self.leaves |= reply.payload.iter().any(asks_exit);
                            let error = reply.error.map(|error| *error);
                            finished = Some(match reply.status {
                                ReplyStatus::Ok => Finished::Ok,
                                _ if context.is_cancelled() => Finished::Cancelled,
                                ReplyStatus::Error | ReplyStatus::Aborted => {
                                    let words = error.map(|error| match error.ename.as_str() {
                                        // Not every kernel has a word for it.
                                        "" => error.evalue,
                                        name => format!("{name}: {}", error.evalue),
                                    });
                                    Finished::failed(words.unwrap_or("It was aborted.".to_owned()))
                                }
                            });
                        }
                    }
                    Some(Came::IoPub(heard)) => {
                        idle |= show(context, heard);
                    }
                    Some(Came::Stdin(Heard { message, .. })) => {
                        if let Content::InputRequest(wanted) = &message.content {
                            asking = Some(Box::pin(context.input(Question {
                                prompt: wanted.prompt.clone(),
                                password: wanted.password,
                            })));
                            asked = Some(message);
                        }
                    }
                    Some(Came::TooLarge(socket, bytes)) => {
                        let told = too_large(bytes);
                        finished = self.missed(context, socket, told).await?.or(finished);
                    }
                    Some(Came::Unread(socket, why)) => {
                        let told = unread(&why);
                        finished = self.missed(context, socket, told).await?.or(finished);
                    }
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
                ended = gone(&mut self.ended) => return Ok(Ran::Died(ended.why)),
            }
        }
    }

    /// Does without what came on a socket and could not be taken. How the run ended, where that is
    /// what it said.
    async fn missed(
        &mut self,
        context: &ExecutionContext,
        socket: Socket,
        told: String,
    ) -> Result<Option<Finished>, KernelError> {
        match socket {
            Socket::IoPub => context.stderr(&format!("{told} It is not shown.\n")),
            Socket::Shell => return Ok(Some(Finished::failed(told))),
            Socket::Stdin => self.interrupt().await?,
            Socket::Control => {}
        }
        Ok(None)
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
                send(&mut self.sockets.stdin, JupyterMessage::new(reply, asked)).await
            }
            Err(NoInput) => self.interrupt().await,
        }
    }

    /// Interrupts what it runs: by a message, or by Ctrl-C in its terminal.
    pub(crate) async fn interrupt(&mut self) -> Result<(), KernelError> {
        match self.by_message {
            true => send(&mut self.sockets.control, InterruptRequest {}.into()).await,
            false => {
                let sent = self.terminal.interrupt();
                sent.map_err(|error| KernelError::Talk(error.to_string()))
            }
        }
    }

    /// Sets aside what it has made that would run by itself; what was.
    pub(crate) async fn sweep(&self) -> Vec<SetAside> {
        let room = Arc::clone(&self.room);
        let swept = tokio::task::spawn_blocking(move || room.sweep()).await;
        swept.unwrap_or_else(|error| {
            tracing::warn!(%error, "it was not looked at what a cell made");
            Vec::new()
        })
    }

    /// Ends it, and waits until nothing of it is left. What it had made and was set aside now.
    pub(crate) async fn end(mut self) -> Vec<SetAside> {
        if self.leaves {
            // It has things to do on its way out.
            let _ = tokio::time::timeout(STOP, gone(&mut self.ended)).await;
        }
        self.stopper.kill();
        gone(&mut self.ended).await.set_aside
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

/// Shows what a kernel published. Whether it is done with the run.
fn show(context: &ExecutionContext, heard: Heard) -> bool {
    match heard.message.content {
        Content::StreamContent(stream) => match stream.name {
            Stdio::Stdout => context.stdout(&stream.text),
            Stdio::Stderr => context.stderr(&stream.text),
        },
        Content::DisplayData(display) => {
            let id = display.transient.and_then(|transient| transient.display_id);
            let bundle = bundle(context, &heard.shown);
            // What is left of it was made to be one that can be shown.
            let _ = context.display(bundle, id.and_then(|id| output_id(&id)));
        }
        Content::UpdateDisplayData(update) => {
            let id = update.transient.display_id;
            if let Some(id) = id.and_then(|id| output_id(&id)) {
                let _ = context.update_display(id, bundle(context, &heard.shown));
            }
        }
        Content::ExecuteResult(result) => {
            let bundle = bundle(context, &heard.shown);
            context.result_of(bundle, Some(result.execution_count.0 as u64));
        }
        Content::ErrorOutput(error) => {
            context.error(&error.ename, &error.evalue, error.traceback);
        }
        Content::ClearOutput(clear) => context.clear(clear.wait),
        Content::Status(status) => return matches!(status.execution_state, ExecutionState::Idle),
        _ => {}
    }
    false
}

/// A display's id, which a kernel may write as it likes: one that cannot be an id here has another.
fn output_id(text: &str) -> Option<OutputId> {
    let digest = || Digest::of(text.as_bytes()).as_str().replace("sha256:", "");
    OutputId::new(text)
        .or_else(|_| OutputId::new(digest()))
        .ok()
}

fn asks_exit(payload: &Payload) -> bool {
    matches!(payload, Payload::AskExit { keepkernel: false })
}

fn too_large(bytes: u64) -> String {
    let (limit, size) = (LARGEST >> 20, bytes >> 20);
    format!("The kernel sent {size} MiB at once, and no more than {limit} are taken.")
}

fn unread(why: &str) -> String {
    format!("A message of the kernel could not be read ({why}).")
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

/// What can be shown of it; what cannot is said.
fn bundle(context: &ExecutionContext, shown: &Shown) -> Bundle {
    let (bundle, left_out) = bundle_from_jupyter(&shown.data, &shown.metadata);
    for bad in left_out {
        context.stderr(&format!("{bad} It is left out.\n"));
    }
    bundle
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the kernel is gone, and says how.
async fn gone(ended: &mut watch::Receiver<Option<Ended>>) -> Ended {
    let ended = ended.wait_for(Option::is_some).await;
    let ended = ended.ok().and_then(|ended| ended.clone());
    ended.unwrap_or_else(|| Ended {
        why: "nobody watches over it any more".to_owned(),
        set_aside: Vec::new(),
    })
}

async fn died(why: &str, terminal: &Terminal) -> KernelError {
    let last = terminal.last_lines().await;
    match last.is_empty() {
        true => KernelError::Died(format!("{why}.")),
        false => KernelError::Died(format!("{why}. It said:\n{last}")),
    }
}

fn ended_by(outcome: Outcome) -> Ended {
    Ended {
        why: why(&outcome),
        set_aside: outcome.report.set_aside,
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
