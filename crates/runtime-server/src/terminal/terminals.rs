//! The terminals and background commands of one connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::action::terminal::{TerminalInfo, TerminalKind};
use protocol::method::{ExitedParams, OutputStream};
use protocol::{ErrorKind, Facts, Failure, Mode};
use rpc::Remote;
use sandbox::{Outcome, Stdio, Stopper};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::command::Resolved;
use super::history::{History, More, Part};
use super::process::{self, Process};
use super::pump::Pump;
use super::rooms::{RoomSettings, Rooms};
use super::run::feed;
use super::stream::Sink;
use crate::action::Call;
use crate::connection::LAST_WORDS;
use crate::context::Context;
use crate::output::Cap;

/// Terminals and background commands that one connection may have running.
const MAX_RUNNING: usize = 64;

/// Ended ones that can still be listed and read.
const MAX_ENDED: usize = 64;

/// The terminals and background commands of one connection, and the rooms they run in.
#[derive(Debug)]
pub struct Terminals {
    rooms: Option<Rooms>,
    listed: Mutex<Listed>,
    watching: TaskTracker,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct Listed {
    /// In the order they were opened.
    all: Vec<Arc<Terminal>>,
    opened: u64,
}

/// Who asks for terminals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// Whoever started the runtime: it sees all of them.
    Everybody,
    /// A session behind a gate, which sees those that it opened.
    Session(Option<String>),
}

impl Viewer {
    fn sees(&self, terminal: &Terminal) -> bool {
        match self {
            Self::Everybody => true,
            Self::Session(session) => terminal.session == *session,
        }
    }
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) id: String,
    session: Option<String>,
    /// How what runs in it is held.
    pub(crate) mode: Mode,
    kind: TerminalKind,
    running: Resolved,
    stopper: Stopper,
    end: Arc<SetOnce<Outcome>>,
    /// Where to type, where it is a PTY.
    pub(crate) pty: Option<Sink>,
    /// Held while something is typed, so that two who type do not mix their words.
    pub(crate) typing: tokio::sync::Mutex<()>,
    history: Mutex<History>,
}

impl Terminals {
    pub(crate) fn new(
        workspace: std::path::PathBuf,
        settings: RoomSettings,
        gate: Option<Remote>,
    ) -> Self {
        Self::with(Some(Rooms::new(workspace, settings, gate)))
    }

    /// None: there is no room to run anything in.
    pub(crate) fn none() -> Self {
        Self::with(None)
    }

    fn with(rooms: Option<Rooms>) -> Self {
        Self {
            rooms,
            listed: Mutex::default(),
            watching: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    pub(crate) fn rooms(&self) -> Result<&Rooms, Failure> {
        self.rooms.as_ref().ok_or_else(|| {
            Failure::new(
                ErrorKind::SandboxUnavailable,
                "This runtime has no rooms to run commands in. Start it with `ward runtime`.",
            )
        })
    }

    /// Open rooms, and terminals and background commands that run.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let rooms = self.rooms.as_ref().map_or(0, Rooms::count);
        (rooms, running(&self.listed()))
    }

    /// Starts a terminal or background command, and lets it go on; its name.
    pub(crate) async fn start(
        &self,
        call: &Call,
        kind: TerminalKind,
        stdio: Stdio,
        timeout_ms: Option<u64>,
        stdin: Option<Vec<u8>>,
        resolve: impl Fn(&Context) -> Result<Resolved, Failure> + Send + Sync + 'static,
    ) -> Result<String, Failure> {
        if running(&self.listed()) >= MAX_RUNNING {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "{MAX_RUNNING} terminals and background commands are running already. Close or stop one first."
                ),
            ));
        }
        let context = Arc::clone(&call.context);
        let resolved = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&resolved);
        let make = move || {
            let resolved = resolve(&context)?;
            let command = resolved.command(stdio, timeout_ms);
            *lock(&seen) = Some(resolved);
            Ok(command)
        };
        let process = tokio::select! {
            process = Process::start(self.rooms()?, call, make) => process?,
            () = call.cancel.cancelled() => return Err(Failure::new(
                ErrorKind::Cancelled,
                "The action was cancelled before the command had started.",
            )),
        };
        let resolved = lock(&resolved).take();
        let resolved = resolved.ok_or_else(|| {
            Failure::new(
                ErrorKind::Internal,
                "A command was started that was never resolved. Please report it.",
            )
        })?;
        Ok(self.watch(call, kind, resolved, process, stdin))
    }

    /// Lists it, and watches over it to its end.
    fn watch(
        &self,
        call: &Call,
        kind: TerminalKind,
        running: Resolved,
        mut process: Process,
        stdin: Option<Vec<u8>>,
    ) -> String {
        let (screen, keyboard) = process.terminal.take().unzip();
        let terminal = {
            let mut listed = self.listed();
            listed.opened += 1;
            let terminal = Arc::new(Terminal {
                id: format!("t{}", listed.opened),
                session: call.session.clone(),
                mode: call.mode(),
                kind,
                running,
                stopper: process.stopper.clone(),
                end: Arc::clone(&process.end),
                pty: keyboard,
                typing: tokio::sync::Mutex::default(),
                history: Mutex::default(),
            });
            listed.all.push(Arc::clone(&terminal));
            forget_oldest(&mut listed.all);
            terminal
        };
        let id = terminal.id.clone();
        let pump = Pump {
            output: call.output.clone(),
            cap: match kind {
                TerminalKind::Pty => Cap::Unbounded,
                TerminalKind::Background => Cap::Bounded,
            },
            end: Arc::clone(&process.end),
            mute: self.closing.clone(),
        };
        self.watching.spawn(async move {
            let input = process.stdin.take();
            let keep = |bytes: &[u8]| lock(&terminal.history).add(bytes);
            tokio::join!(
                feed(input, stdin),
                pump.run(screen.as_ref(), OutputStream::Pty, keep),
                pump.run(process.stdout.as_ref(), OutputStream::Stdout, keep),
                pump.run(process.stderr.as_ref(), OutputStream::Stderr, keep),
            );
            let outcome = process.end.wait().await.clone();
            let (exit_code, signal) = process::told(outcome.end);
            let tell = async {
                pump.output.finish().await;
                pump.output
                    .exited(|id| ExitedParams {
                        id,
                        terminal_id: terminal.id.clone(),
                        exit_code,
                        signal,
                        sandbox: outcome.report,
                    })
                    .await;
            };
            let given_up = async {
                pump.mute.cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                () = tell => {}
                () = given_up => {}
            }
        });
        id
    }

    /// The one of this name, where the viewer sees it.
    pub(crate) fn get(&self, id: &str, viewer: &Viewer) -> Result<Arc<Terminal>, Failure> {
        let listed = self.listed();
        let mut seen = listed.all.iter().filter(|terminal| viewer.sees(terminal));
        let found = seen.find(|terminal| terminal.id == id);
        found.cloned().ok_or_else(|| unknown(id))
    }

    pub(crate) fn list(&self, viewer: &Viewer) -> Vec<TerminalInfo> {
        let listed = self.listed();
        let seen = listed.all.iter().filter(|terminal| viewer.sees(terminal));
        seen.map(|terminal| terminal.info()).collect()
    }

    /// Takes it off the list.
    pub(crate) fn forget(&self, id: &str) {
        self.listed().all.retain(|terminal| terminal.id != id);
    }

    /// Ends what runs for a session, and its rooms; whether there was anything.
    pub(crate) async fn close_session(&self, session: Option<&str>) -> bool {
        let of_session = |it: &mut Arc<Terminal>| it.session.as_deref() == session;
        let those: Vec<_> = self.listed().all.extract_if(.., of_session).collect();
        for terminal in &those {
            terminal.stopper.kill();
        }
        let rooms = match &self.rooms {
            Some(rooms) => rooms.close_session(session).await,
            None => false,
        };
        rooms || !those.is_empty()
    }

    /// Closes rooms that nobody has used for a while; whether there were any.
    pub(crate) async fn close_idle_rooms(&self) -> bool {
        match &self.rooms {
            Some(rooms) => rooms.close_idle().await,
            None => false,
        }
    }

    /// Ends everything; when this returns nothing is left running. Nothing starts any more.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let all = std::mem::take(&mut self.listed().all);
        for terminal in &all {
            terminal.stopper.kill();
        }
        if let Some(rooms) = &self.rooms {
            rooms.close().await;
        }
        self.watching.close();
        self.watching.wait().await;
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        lock(&self.listed)
    }
}

impl Terminal {
    pub(crate) fn is_running(&self) -> bool {
        self.end.get().is_none()
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&self) {
        self.end.wait().await;
    }

    /// Ends it; whether it was running.
    pub(crate) async fn stop(&self) -> bool {
        let was_running = self.is_running();
        if was_running {
            process::stop(&self.stopper, &self.end).await;
        }
        was_running
    }

    pub(crate) fn read(&self, from: Option<u64>) -> (Part, bool) {
        let running = self.is_running();
        let more = if running { More::MayCome } else { More::No };
        (lock(&self.history).read(from, more), running)
    }

    /// What is touched through it: the command that runs in it.
    pub(crate) fn facts(&self) -> Facts {
        self.running.clone().facts()
    }

    fn info(&self) -> TerminalInfo {
        let end = self.end.get().map(|outcome| process::told(outcome.end));
        let (exit_code, signal) = end.clone().unwrap_or_default();
        TerminalInfo {
            terminal_id: self.id.clone(),
            kind: self.kind,
            command: self.running.shown(),
            cwd: self.running.fact.cwd.clone(),
            running: end.is_none(),
            exit_code,
            signal,
        }
    }
}

fn running(listed: &Listed) -> usize {
    listed.all.iter().filter(|it| it.is_running()).count()
}

/// Keeps the list bounded: of those that ended, the oldest goes first.
fn forget_oldest(all: &mut Vec<Arc<Terminal>>) {
    let ended = all.iter().filter(|it| !it.is_running()).count();
    if ended > MAX_ENDED
        && let Some(oldest) = all.iter().position(|it| !it.is_running())
    {
        all.remove(oldest);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while one is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(id: &str) -> Failure {
    let shown: String = id.chars().take(100).collect();
    Failure::new(
        ErrorKind::UnknownTerminal,
        format!("There is no terminal `{shown}`. `terminal.list` names those there are."),
    )
    .with("terminal_id", shown)
}
