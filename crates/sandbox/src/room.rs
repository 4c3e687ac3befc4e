//! A room: the namespaces of one session, and the commands that run in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use protocol::sandbox::{SetAside, Tier};

use crate::aside::Aside;
use crate::command::{Command, Running, Stdio, Stopper};
use crate::error::SandboxError;
use crate::gateway::Gateway;
use crate::linux::launch::{Holder, has_one_thread, launch};
use crate::linux::limits::{self, Cgroup};
use crate::linux::message::{Failure, Layer, Report, Size, Spawn};
use crate::linux::notify::Watcher;
use crate::linux::plan::{Plan, Scratch, Trust};
use crate::linux::supervise::Watched;
use crate::linux::sys::hand_over_quickly;
use crate::linux::widen::{Widened, widen};
use crate::linux::wire::Wire;
use crate::linux::workspace::{Demands, Stay, Workspace, lock};
use crate::os_text::OsText;
use crate::state::OwnFolder;
use crate::streams::Streams;
use crate::wall::{Wall, WidenedAccess};

/// The longest word that the kernel lets a program be given, with its end.
const LONGEST_WORD: usize = 128 * 1024;

/// How to open a room.
#[derive(Debug, Clone)]
pub struct RoomOptions {
    /// What its commands may touch.
    pub wall: Wall,
    /// A folder of Ward's own; the room keeps its scratch home below it and takes it away at the end.
    pub state: PathBuf,
    /// Ward's other folders: a workspace that holds one is refused.
    pub own: Vec<PathBuf>,
    /// The weakest tier that will do.
    pub minimum: Tier,
}

impl RoomOptions {
    fn own_folders(&self) -> Vec<&Path> {
        self.own
            .iter()
            .chain([&self.state])
            .map(PathBuf::as_path)
            .collect()
    }
}

/// An open room. Dropping it ends every command in it.
#[derive(Debug)]
pub struct Room {
    tier: Tier,
    plan: Plan,
    holder: Mutex<Holder>,
    cgroup: Option<Arc<Cgroup>>,
    environment: Vec<(OsString, OsString)>,
    /// None for commands that are trusted.
    workspace: Option<Arc<Mutex<Workspace>>>,
    gateway: Arc<Gateway>,
    /// Taken away last, when everything in the room has ended.
    _state: Option<OwnFolder>,
}

impl Room {
    /// Opens a room, in the strongest tier that can be had. Blocks for a few milliseconds. Where
    /// that is weaker than the options demand, it fails and says which layer is missing.
    pub fn open(options: RoomOptions) -> Result<Self, SandboxError> {
        let mut missing = None;
        for tier in [Tier::Room, Tier::Walls, Tier::None] {
            if tier < options.minimum {
                break;
            }
            match Self::open_as(tier, &options) {
                Ok(room) => return Ok(room),
                // The workspace is refused in every tier; a layer may be missing in this one only.
                Err(error @ SandboxError::Layer { .. }) => missing = missing.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(missing.unwrap_or_else(|| SandboxError::Closed(String::new())))
    }

    /// Opens a room that confines nothing, for commands that are trusted: they see the machine as
    /// their user does, run anywhere, and nothing of theirs is swept. It is never a fallback; its
    /// tier is `none`. What it keeps: the environment is an allowlist, no descriptor passes, and
    /// all that a command started ends with it, as well as can be had without namespaces.
    pub fn open_trusted() -> Result<Self, SandboxError> {
        let plan = Plan::trusted();
        let (holder, _, ()) = launch(plan.clone(), || ())?;
        Ok(Self {
            tier: plan.tier,
            environment: plan.environment(),
            plan,
            holder: Mutex::new(holder),
            cgroup: None,
            workspace: None,
            gateway: Arc::new(Gateway::none()),
            _state: None,
        })
    }

    fn open_as(tier: Tier, options: &RoomOptions) -> Result<Self, SandboxError> {
        // A process with one thread opens a room for one command; any other keeps it.
        let lasting = !has_one_thread();
        let state = if lasting || tier != Tier::Room {
            Some(OwnFolder::of_room(&options.state)?)
        } else {
            None
        };
        let folder = state.as_ref().map(|state| state.path().to_owned());
        let scratch = folder.map_or(Scratch::Memory, Scratch::Folder);
        let mut plan = Plan::new(tier, &options.wall, &options.own_folders(), scratch)?;
        let limits = options.wall.limits;
        // Joining a control group takes the kernel longer than a short command runs. A bound near
        // all that the machine has is kept well enough by looking at it now and then.
        let tight = limits.memory < limits::machine() / 2 || limits.pids < limits::FEWEST;
        let cgroup = if lasting || tight {
            Cgroup::make(limits.memory, limits.pids)
        } else {
            None
        };
        plan.grouped = cgroup.is_some();
        let (holder, proxy, workspace) = launch(plan.clone(), || {
            Workspace::new(&plan.workspace, Aside::new(&options.state))
        })?;
        if let Some(cgroup) = &cgroup {
            cgroup
                .take(holder.pid)
                .map_err(|error| failed(Layer::Limits, &error))?;
        }
        let mut environment = plan.environment();
        let port = proxy
            .local_addr()
            .map_err(|error| failed(Layer::Loopback, &error))?
            .port();
        let variables = crate::proxy::env(port).into_iter();
        environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
        Ok(Self {
            tier,
            workspace: Some(Arc::new(Mutex::new(workspace))),
            gateway: Arc::new(Gateway::new(proxy, &options.wall.net)),
            plan,
            holder: Mutex::new(holder),
            cgroup: cgroup.map(Arc::new),
            environment,
            _state: state,
        })
    }

    /// The tier it holds.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Sets aside what a command that still runs has made and would run by itself, and answers what
    /// was: for one that does one thing after the other. Blocks for a look through the workspace.
    #[must_use]
    pub fn sweep(&self) -> Vec<SetAside> {
        let workspace = self.workspace.as_ref();
        workspace.map_or_else(Vec::new, |workspace| lock(workspace).sweep())
    }

    /// Starts a command. Blocks until it runs or could not be started, about a millisecond.
    pub fn spawn(&self, command: Command) -> Result<Running, SandboxError> {
        let started = Instant::now();
        let written = command
            .widened
            .iter()
            .filter(|w| w.access == WidenedAccess::Write);
        let granted = written.map(|widening| widening.path.clone()).collect();
        let (stay, demands) = Stay::begin(self.workspace.as_ref(), granted);
        let spawn = self.request(&command, demands)?;
        let (reports, theirs) = Wire::pair().map_err(|error| failed(Layer::Namespaces, &error))?;
        let streams =
            Streams::make(command.stdio).map_err(|error| failed(Layer::Terminal, &error))?;
        let mut init = self.send(&spawn, theirs, streams.theirs)?;

        let (mut listener, mut terminal, mut runs) = (None, None, false);
        // A short command may have ended before the holder comes to say who its init is.
        let mut ended = None;
        let init = loop {
            if runs && let Some(init) = init {
                break init;
            }
            match reports.receive::<Report>() {
                Ok(Some((Report::Forked, mut fds))) => init = fds.pop(),
                Ok(Some((Report::Listening, mut fds))) => listener = fds.pop(),
                Ok(Some((Report::Terminal, mut fds))) => terminal = fds.pop().map(File::from),
                Ok(Some((Report::Started, _))) => runs = true,
                Ok(Some((Report::Failed(failure), _))) => return Err(refused(failure, &command)),
                Ok(Some((Report::Ended { status }, _))) if runs => ended = Some(status),
                Ok(Some((Report::Ended { .. }, _)) | None) => {
                    return Err(SandboxError::Closed(
                        ": it ended while a command was started".into(),
                    ));
                }
                Err(error) => return Err(failed(Layer::Namespaces, &error)),
            }
        };
        if let Some(listener) = &listener {
            hand_over_quickly(listener.as_fd());
        }
        let init_pid = match ended {
            None => host_pid(&init).map_err(|error| failed(Layer::Namespaces, &error))?,
            // It has none any more, maybe.
            Some(_) => 0,
        };
        let stopper = Stopper {
            init: Arc::new(init),
            tier: self.tier,
        };
        let watched = Watched {
            stopper: stopper.clone(),
            init_pid,
            ended,
            reports,
            listener,
            watcher: Watcher::new(&self.plan),
            started,
            timeout: command.timeout,
            gateway: Arc::clone(&self.gateway),
            memory: (self.cgroup.is_none() && self.plan.trust == Trust::None)
                .then_some(self.plan.memory),
        };
        Ok(Running {
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            terminal,
            tier: self.tier,
            stopper,
            cgroup: self.cgroup.clone(),
            stay,
            gateway: Arc::clone(&self.gateway),
            watched,
        })
    }

    fn request(&self, command: &Command, demands: Demands) -> Result<Spawn, SandboxError> {
        let words = || command.argv.iter();
        if words().any(|word| word.len() >= LONGEST_WORD) {
            return Err(SandboxError::Command("A word of the command is over 128 KiB, which no program can be given. Put long input into a file or send it as `stdin`.".into()));
        }
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
        let widened = match self.plan.trust {
            Trust::None => widen(&self.plan.workspace, demands.protected, &command.widened)?,
            Trust::Full => Widened::default(),
        };
        Ok(Spawn {
            argv: command.argv.iter().cloned().map(OsText).collect(),
            environment,
            cwd: OsText(command.cwd.clone().into()),
            terminal,
            keeps_terminal: command.stdio == Stdio::Inherit,
            protected: widened.protected,
            hidden: demands.hidden,
            widened: widened.shown,
        })
    }

    /// Has the holder start a command, and waits until it runs or does not; what became of it is
    /// said at the other end of `report`. Where the holder itself is its init, the pidfd of that.
    fn send(
        &self,
        spawn: &Spawn,
        report: Wire,
        streams: Vec<OwnedFd>,
    ) -> Result<Option<OwnedFd>, SandboxError> {
        let broken = |error: std::io::Error| failed(Layer::Namespaces, &error);
        let (decided, undecided) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| broken(error.into()))?;
        let mut fds = vec![report.as_fd(), undecided.as_fd()];
        fds.extend(streams.iter().map(OwnedFd::as_fd));
        let init = {
            let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
            match holder.wire.send(spawn, &fds) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                    return Err(SandboxError::Closed(String::new()));
                }
                Err(error) => return Err(broken(error)),
            }
            let itself = self
                .plan
                .is_for_one_command()
                .then(|| holder.pidfd.try_clone());
            itself.transpose().map_err(broken)?
        };
        drop((report, undecided, streams));
        // One pipe that ends, instead of a waking for each thing that is reported on the way.
        File::from(decided)
            .read_to_end(&mut Vec::new())
            .map_err(broken)?;
        Ok(init)
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
