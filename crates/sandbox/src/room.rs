//! A room: the namespaces of one session, and the commands that run in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::sandbox::{Limit, SandboxReport, Tier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::error::SandboxError;
use crate::linux::launch::{Holder, launch};
use crate::linux::limits::Cgroup;
use crate::linux::message::{Failure, Forked, Layer, OsText, Report, Size, Spawn};
use crate::linux::notify::Watcher;
use crate::linux::plan::{self, Plan};
use crate::linux::supervise::{GRACE, Watched};
use crate::linux::sys::hand_over_quickly;
use crate::linux::wire::Wire;
use crate::wall::{Wall, Widening};

/// How to open a room.
#[derive(Debug, Clone)]
pub struct RoomOptions {
    /// What its commands may touch.
    pub wall: Wall,
    /// A folder of Ward's own; the room keeps its scratch home below it and takes it away at the end.
    pub state: PathBuf,
    /// The weakest tier that will do.
    pub minimum: Tier,
}

/// An open room. Dropping it ends every command in it.
#[derive(Debug)]
pub struct Room {
    tier: Tier,
    plan: Plan,
    holder: Mutex<Holder>,
    cgroup: Option<Arc<Cgroup>>,
    environment: Vec<(OsString, OsString)>,
    /// Taken away last, when everything in the room has ended.
    _state: StateFolder,
}

impl Room {
    /// Opens a room. Blocks for a few milliseconds.
    pub fn open(options: RoomOptions) -> Result<Self, SandboxError> {
        let state = StateFolder::make(&options.state)?;
        let plan = Plan::new(&options.wall, &state.path)?;
        let limits = options.wall.limits;
        let holder = launch(plan.clone())?;
        let cgroup = Cgroup::make(limits.memory, limits.pids)
            .filter(|cgroup| cgroup.take(holder.pid).is_ok())
            .map(Arc::new);
        let mut environment = plan::environment(&plan.home);
        environment.push(("WARD_SANDBOX".into(), Tier::Room.as_str().into()));
        Ok(Self {
            tier: Tier::Room,
            plan,
            holder: Mutex::new(holder),
            cgroup,
            environment,
            _state: state,
        })
    }

    /// The tier it holds.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Starts a command. Blocks until it runs or could not be started, about a millisecond.
    pub fn spawn(&self, command: Command) -> Result<Running, SandboxError> {
        let started = Instant::now();
        let spawn = self.request(&command)?;
        let wires = Wire::pair().map_err(|error| failed(Layer::Namespaces, &error))?;
        let streams =
            Streams::make(command.stdio).map_err(|error| failed(Layer::Terminal, &error))?;
        let init = self.fork(&spawn, &wires.1, &streams)?;
        drop(wires.1);
        let init_pid = host_pid(&init).map_err(|error| failed(Layer::Namespaces, &error))?;

        let (mut listener, mut terminal) = (None, None);
        loop {
            match wires.0.receive::<Report>() {
                Ok(Some((Report::Listening, mut fds))) => listener = fds.pop(),
                Ok(Some((Report::Terminal, mut fds))) => terminal = fds.pop().map(File::from),
                Ok(Some((Report::Started, _))) => break,
                Ok(Some((Report::Failed(failure), _))) => return Err(refused(failure, &command)),
                Ok(Some((Report::Ended { .. }, _)) | None) => {
                    return Err(SandboxError::Closed(
                        ": it ended while a command was started".into(),
                    ));
                }
                Err(error) => return Err(failed(Layer::Namespaces, &error)),
            }
            // The command waits for its first answer as soon as it is listened to.
            if let Some(listener) = &listener {
                hand_over_quickly(listener.as_fd());
            }
        }
        let init = Arc::new(init);
        let watched = Watched {
            init: Arc::clone(&init),
            init_pid,
            reports: wires.0,
            listener,
            watcher: Watcher::new(init_pid, &self.plan.workspace, &self.plan.home),
            started,
            timeout: command.timeout,
            memory: self.cgroup.is_none().then_some(self.plan.memory),
        };
        Ok(Running {
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            terminal,
            tier: self.tier,
            stopper: Stopper { init },
            killed_before: self.cgroup.as_ref().map_or(0, |cgroup| cgroup.killed()),
            cgroup: self.cgroup.clone(),
            watched,
        })
    }

    fn request(&self, command: &Command) -> Result<Spawn, SandboxError> {
        let words = || command.argv.iter();
        if command.argv.is_empty() {
            return Err(SandboxError::Command("There is no command to run.".into()));
        }
        if words().any(|word| word.as_bytes().contains(&0)) {
            return Err(SandboxError::Command(
                "A word of the command holds a NUL byte, which no program can be given.".into(),
            ));
        }
        let mut environment: BTreeMap<&OsStr, &OsStr> = BTreeMap::new();
        for (name, value) in self.environment.iter().chain(&command.env) {
            if name.is_empty()
                || name.as_bytes().iter().any(|b| *b == b'=' || *b == 0)
                || value.as_bytes().contains(&0)
            {
                return Err(SandboxError::Command(format!(
                    "`{}` cannot be the name of an environment variable.",
                    name.to_string_lossy()
                )));
            }
            environment.insert(name, value);
        }
        let environment = environment
            .into_iter()
            .map(|(name, value)| {
                let mut pair = name.to_owned();
                pair.push("=");
                pair.push(value);
                OsText(pair)
            })
            .collect();
        let terminal = match command.stdio {
            Stdio::Pty { cols, rows } => Some(Size { cols, rows }),
            Stdio::Piped { .. } | Stdio::Inherit => None,
        };
        Ok(Spawn {
            argv: command.argv.iter().cloned().map(OsText).collect(),
            environment,
            cwd: OsText(command.cwd.clone().into()),
            terminal,
            keeps_terminal: command.stdio == Stdio::Inherit,
            protected: Vec::new(),
            widened: command.widened.clone(),
        })
    }

    /// Has the holder fork an init; its pidfd.
    fn fork(
        &self,
        spawn: &Spawn,
        report: &Wire,
        streams: &Streams,
    ) -> Result<OwnedFd, SandboxError> {
        let mut fds = vec![report.as_fd()];
        fds.extend(streams.theirs.iter().map(OwnedFd::as_fd));
        let closed = || SandboxError::Closed(String::new());
        let holder = self
            .holder
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match holder.wire.send(spawn, &fds) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ArgumentListTooLong => {
                return Err(SandboxError::Command("The command and its environment are over 160 KiB. Put long input into a file or send it as `stdin`.".into()));
            }
            Err(_) => return Err(closed()),
        }
        match holder.wire.receive::<Forked>() {
            Ok(Some((Forked::Yes, mut fds))) => fds.pop().ok_or_else(closed),
            Ok(Some((Forked::No { why }, _))) => Err(failed(Layer::Namespaces, &why)),
            Ok(None) | Err(_) => Err(closed()),
        }
    }
}

fn failed(layer: Layer, why: &dyn ToString) -> SandboxError {
    SandboxError::Layer {
        layer: layer.name(),
        why: why.to_string(),
    }
}

fn refused(failure: Failure, command: &Command) -> SandboxError {
    match failure {
        Failure::Layer { layer, why } => failed(layer, &why),
        Failure::Exec { errno } => SandboxError::Exec {
            program: command
                .argv
                .first()
                .map_or_else(String::new, |word| word.to_string_lossy().into_owned()),
            why: match errno {
                libc::ENOENT => "no such program inside the room".to_owned(),
                errno => std::io::Error::from_raw_os_error(errno).to_string(),
            },
            not_found: errno == libc::ENOENT,
        },
    }
}

/// The pid of a process in the namespace that this process sees.
fn host_pid(pidfd: &OwnedFd) -> std::io::Result<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    info.lines()
        .find_map(|line| line.strip_prefix("Pid:"))
        .and_then(|pid| pid.trim().parse().ok())
        .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
}

/// The two sides of a command's standard streams.
#[derive(Debug, Default)]
struct Streams {
    theirs: Vec<OwnedFd>,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
}

impl Streams {
    fn make(stdio: Stdio) -> std::io::Result<Self> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        match stdio {
            Stdio::Pty { .. } => Ok(Self::default()),
            Stdio::Inherit => {
                let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned();
                let theirs = vec![
                    copy(std::io::stdin().as_fd())?,
                    copy(std::io::stdout().as_fd())?,
                    copy(std::io::stderr().as_fd())?,
                ];
                Ok(Self {
                    theirs,
                    ..Self::default()
                })
            }
            Stdio::Piped { stdin } => {
                let (input, stdin) = if stdin {
                    let (read, write) = pipe()?;
                    (read, Some(File::from(write)))
                } else {
                    (OwnedFd::from(File::open("/dev/null")?), None)
                };
                let ((stdout, output), (stderr, error)) = (pipe()?, pipe()?);
                Ok(Self {
                    theirs: vec![input, output, error],
                    stdin,
                    stdout: Some(stdout.into()),
                    stderr: Some(stderr.into()),
                })
            }
        }
    }
}

/// A room's own folder on disk; taken away with it.
#[derive(Debug)]
struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    fn make(below: &Path) -> Result<Self, SandboxError> {
        use std::os::unix::fs::DirBuilderExt as _;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = below
            .join("rooms")
            .join(format!("{}-{number}", std::process::id()));
        let made = std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&path);
        made.map_err(|error| SandboxError::Layer {
            layer: "scratch home",
            why: format!("{}: {error}", path.display()),
        })?;
        Ok(Self { path })
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// The words; the program is looked up in `PATH` inside the room.
    pub argv: Vec<OsString>,
    /// Where it runs: a real path inside the workspace.
    pub cwd: PathBuf,
    /// Added to the environment that the room gives.
    pub env: Vec<(OsString, OsString)>,
    /// What it is connected to.
    pub stdio: Stdio,
    /// When it is ended.
    pub timeout: Option<Duration>,
    /// What it alone may touch beyond the wall.
    pub widened: Vec<Widening>,
}

/// What a command's standard streams are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes; standard input is empty unless it is asked for.
    Piped {
        /// Whether standard input is a pipe.
        stdin: bool,
    },
    /// A terminal of its own.
    Pty {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Those of this process.
    Inherit,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    /// The writing end of its standard input, where that is a pipe.
    pub stdin: Option<File>,
    /// The reading end of its standard output, where that is a pipe.
    pub stdout: Option<File>,
    /// The reading end of its standard error, where that is a pipe.
    pub stderr: Option<File>,
    /// The master side of its terminal, where it has one.
    pub terminal: Option<File>,
    tier: Tier,
    stopper: Stopper,
    cgroup: Option<Arc<Cgroup>>,
    killed_before: u64,
    watched: Watched,
}

impl Running {
    /// What can stop it from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Watches over it to its end. Blocks: give it a thread. When this returns, nothing that the
    /// command started is left.
    #[must_use]
    pub fn wait(self) -> Outcome {
        let watch = self.watched.watch();
        let mut report = SandboxReport::quiet(self.tier);
        report.stopped = watch.seen.stopped;
        report.scratch = watch.seen.scratch;
        report.limit = watch.limit;
        if self
            .cgroup
            .is_some_and(|cgroup| cgroup.killed() > self.killed_before)
        {
            report.limit = report.limit.or(Some(Limit::Memory));
        }
        Outcome {
            end: watch.end,
            timed_out: watch.timed_out,
            duration: watch.duration,
            report,
        }
    }
}

/// Stops a command and all that it started.
#[derive(Debug, Clone)]
pub struct Stopper {
    init: Arc<OwnedFd>,
}

impl Stopper {
    /// Asks the command to end, and ends it for good where it has not 100 ms later. Blocks as long.
    pub fn stop(&self) {
        let _ = pidfd_send_signal(&*self.init, Signal::TERM);
        let mut fds = [PollFd::new(&*self.init, PollFlags::IN)];
        if let Ok(grace) = Timespec::try_from(GRACE) {
            let _ = poll(&mut fds, Some(&grace));
        }
        self.kill();
    }

    /// Ends it at once.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&*self.init, Signal::KILL);
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its end.
    pub end: End,
    /// Whether the timeout ended it.
    pub timed_out: bool,
    /// From start to end.
    pub duration: Duration,
    /// What held it, and what was stopped.
    pub report: SandboxReport,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}
