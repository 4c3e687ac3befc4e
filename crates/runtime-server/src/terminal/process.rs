//! A command in its room: started, watched on a thread of its own, ended.

use std::fs::File;
use std::io;
use std::sync::Arc;

use protocol::{ErrorKind, Failure};
use sandbox::{Command, End, Outcome, Room, SandboxError, Stopper};
use tokio::sync::{Semaphore, SetOnce, oneshot};

use super::guests::Guest;
use super::rooms::{self, Key, Rooms};
use super::stream::{Sink, Source};
use crate::action::Call;

/// Commands that run at once, in all connections. Each has one of the 512 threads that may block;
/// file actions, and what stops a command, need some too.
const MAX_COMMANDS: usize = 256;

static PLACES: Semaphore = Semaphore::const_new(MAX_COMMANDS);

/// A command that runs. Dropped before its end, it is ended.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) stdin: Option<Sink>,
    pub(crate) stdout: Option<Source>,
    pub(crate) stderr: Option<Source>,
    /// The two directions of its terminal.
    pub(crate) terminal: Option<(Source, Sink)>,
    pub(crate) end: Arc<SetOnce<Outcome>>,
    pub(crate) stopper: Stopper,
}

impl Process {
    /// Starts the command that `make` gives for this call, in the room of its session and mode.
    /// `make` may block.
    pub(crate) async fn start(
        rooms: &Rooms,
        call: &Call,
        make: impl Fn() -> Result<Command, Failure> + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let key = Key {
            session: call.session.clone(),
            mode: call.mode(),
        };
        let make = Arc::new(make);
        let (room, guest) = rooms.enter(&key, &call.id).await?;
        match Self::start_in(Arc::clone(&room), guest, Arc::clone(&make)).await {
            // A room can be ended from outside; the session gets another.
            Err(Unstarted::RoomGone) => {
                rooms.forget(&key, &room);
                let (room, guest) = rooms.enter(&key, &call.id).await?;
                Self::start_in(room, guest, make).await
            }
            started => started,
        }
        .map_err(|unstarted| match unstarted {
            Unstarted::RoomGone => rooms::failure(&SandboxError::Closed(String::new())),
            Unstarted::Refused(failure) => failure,
        })
    }

    async fn start_in(
        room: Arc<Room>,
        guest: Guest,
        make: Arc<impl Fn() -> Result<Command, Failure> + Send + Sync + 'static>,
    ) -> Result<Self, Unstarted> {
        let place = PLACES.try_acquire().map_err(|_| {
            Unstarted::Refused(Failure::new(
                ErrorKind::Busy,
                format!("{MAX_COMMANDS} commands are running already. Wait for one of them, or cancel one."),
            ))
        })?;
        let (tell, told) = oneshot::channel();
        // One thread starts it and stays to watch over it.
        tokio::task::spawn_blocking(move || {
            let started = make()
                .map_err(Unstarted::Refused)
                .and_then(|command| room.spawn(command).map_err(Unstarted::from));
            drop(room);
            let mut running = match started {
                Ok(running) => running,
                Err(unstarted) => {
                    let _ = tell.send(Err(unstarted));
                    return;
                }
            };
            let end = Arc::new(SetOnce::new());
            let stopper = running.stopper();
            let started = Started {
                stdin: running.stdin.take(),
                stdout: running.stdout.take(),
                stderr: running.stderr.take(),
                terminal: running.terminal.take(),
                end: Arc::clone(&end),
                stopper: stopper.clone(),
            };
            if tell.send(Ok(started)).is_err() {
                // Whoever asked has gone in the meantime.
                stopper.kill();
            }
            let outcome = running.wait();
            drop(guest);
            let _ = end.set(outcome);
            drop(place);
        });
        let started = told.await.map_err(|_| {
            Unstarted::Refused(Failure::new(
                ErrorKind::Internal,
                "Ward lost the thread that was to start the command. Please report it.",
            ))
        })??;
        started.into_process().map_err(Unstarted::Refused)
    }

    /// Asks it to end, ends it where it does not, and waits until nothing of it is left.
    pub(crate) async fn stop(&self) {
        stop(&self.stopper, &self.end).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.end.get().is_none() {
            self.stopper.kill();
        }
    }
}

/// Asks a command to end, ends it where it does not, and waits until nothing of it is left.
pub(crate) async fn stop(stopper: &Stopper, end: &SetOnce<Outcome>) {
    let stopper = stopper.clone();
    // It waits a moment between asking and ending.
    drop(tokio::task::spawn_blocking(move || stopper.stop()));
    end.wait().await;
}

enum Unstarted {
    RoomGone,
    Refused(Failure),
}

impl From<SandboxError> for Unstarted {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Closed(_) => Self::RoomGone,
            error => Self::Refused(rooms::failure(&error)),
        }
    }
}

/// A process whose streams are not yet known to the event loop.
struct Started {
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    terminal: Option<File>,
    end: Arc<SetOnce<Outcome>>,
    stopper: Stopper,
}

impl Started {
    fn into_process(self) -> Result<Process, Failure> {
        let mut process = Process {
            stdin: None,
            stdout: None,
            stderr: None,
            terminal: None,
            end: self.end,
            stopper: self.stopper,
        };
        let streams = || -> io::Result<_> {
            let terminal = match self.terminal {
                Some(file) => Some((Source::new(file.try_clone()?)?, Sink::new(file)?)),
                None => None,
            };
            Ok((
                self.stdin.map(Sink::new).transpose()?,
                self.stdout.map(Source::new).transpose()?,
                self.stderr.map(Source::new).transpose()?,
                terminal,
            ))
        };
        let (stdin, stdout, stderr, terminal) = streams().map_err(|error| {
            Failure::new(
                ErrorKind::Io,
                format!("The command's streams could not be watched ({error}); it was ended."),
            )
        })?;
        process.stdin = stdin;
        process.stdout = stdout;
        process.stderr = stderr;
        process.terminal = terminal;
        Ok(process)
    }
}

/// The exit code or the signal's name.
pub(crate) fn told(end: End) -> (Option<i32>, Option<String>) {
    match end {
        End::Exited(code) => (Some(code), None),
        End::Signalled(signal) => (None, Some(signal_name(signal))),
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
