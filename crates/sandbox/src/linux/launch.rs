//! Starts the holder of a room.
//!
//! A process with one thread forks it. One with several cannot: another thread's lock, taken at
//! that moment, would stay taken in the child. It executes itself anew instead, and that process
//! forks the holder as its sibling, so that the holder is Ward's own child either way.

use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};

use super::holder;
use super::message::{Layer, Ready};
use super::plan::Plan;
use super::sys::{self, CLONE_PARENT, Side};
use super::wire::Wire;
use crate::error::SandboxError;

/// The name under which a process knows that it is to launch a holder.
const LAUNCHER: &str = "ward-room";

/// A holder that runs. Dropping it ends the room and all that is in it.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) wire: Wire,
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
    }
}

/// Ward to launcher.
#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    plan: Plan,
}

/// Launcher to Ward, with the holder's pidfd.
#[derive(Debug, Serialize, Deserialize)]
enum Launched {
    Yes { pid: i32 },
    No { why: String },
}

/// Starts a holder and waits until its room is built. With it comes the proxy's socket, which
/// listens inside the room.
/// What can be done `meanwhile` is done while it is being built.
pub(crate) fn launch<T>(
    plan: Plan,
    meanwhile: impl FnOnce() -> T,
) -> Result<(Holder, TcpListener, T), SandboxError> {
    let (wire, theirs) = Wire::pair().map_err(|error| no_namespaces(&error))?;
    let mut early = None;
    let (pid, pidfd) = if has_one_thread() {
        // SAFETY: this process has one thread, and it is here.
        match unsafe { sys::fork_with(holder::namespaces(&plan)) }
            .map_err(|error| no_namespaces(&in_words(&error)))?
        {
            Side::Child => {
                drop(wire);
                // It ends with Ward, also while it watches a command and does not listen. Where
                // Ward has ended already, the wire says so at the first look.
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                holder::run(plan, &theirs, false)
            }
            Side::Parent(pid, pidfd) => (pid, pidfd),
        }
    } else {
        let launched = by_exec(plan, &wire, &theirs)?;
        early = launched.ready;
        (launched.pid, launched.pidfd)
    };
    drop(theirs);
    let done = meanwhile();
    let ready = match early {
        Some(early) => Ok(Some(early)),
        None => wire.receive::<Ready>(),
    };
    let failed = |layer: Layer, why: String| {
        let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        Err(SandboxError::Layer {
            layer: layer.name(),
            why,
        })
    };
    match ready {
        Ok(Some((Ready::Built, mut fds))) => match fds.pop() {
            Some(proxy) => Ok((Holder { wire, pid, pidfd }, TcpListener::from(proxy), done)),
            None => failed(Layer::Loopback, "the proxy's socket did not arrive".into()),
        },
        Ok(Some((Ready::Failed { layer, why }, _))) => failed(layer, why),
        Ok(None) => failed(
            Layer::Namespaces,
            "the holder ended while it built the room".into(),
        ),
        Err(error) => failed(Layer::Namespaces, error.to_string()),
    }
}

/// A holder that was started, and what it may have said already.
struct ByExec {
    pid: i32,
    pidfd: OwnedFd,
    ready: Option<(Ready, Vec<OwnedFd>)>,
}

/// Launcher or holder to Ward: they share the wire, and the holder may be the quicker one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    Launcher(Launched),
    Holder(Ready),
}

fn by_exec(plan: Plan, wire: &Wire, theirs: &Wire) -> Result<ByExec, SandboxError> {
    let theirs = theirs
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| no_namespaces(&error))?;
    let mut launcher = Command::new("/proc/self/exe")
        .arg0(LAUNCHER)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| no_namespaces(&error))?;
    let sent = wire.send(&Launch { plan }, &[]);
    let mut said = sent.and_then(|()| wire.receive::<Said>());
    let mut ready = None;
    if let Ok(Some((Said::Holder(early), fds))) = said {
        ready = Some((early, fds));
        said = wire.receive::<Said>();
    }
    let _ = launcher.wait();
    match said {
        Ok(Some((Said::Launcher(Launched::Yes { pid }), mut fds))) if !fds.is_empty() => {
            let pidfd = fds.remove(0);
            Ok(ByExec { pid, pidfd, ready })
        }
        Ok(Some((Said::Launcher(Launched::No { why }), _))) => Err(SandboxError::Layer {
            layer: Layer::Namespaces.name(),
            why,
        }),
        Ok(_) => Err(no_namespaces(&"the launcher ended early")),
        Err(error) => Err(no_namespaces(&error)),
    }
}

/// Where this process was started as a launcher, launches and never returns.
pub(crate) fn enter_if_launcher() {
    if std::env::args_os()
        .next()
        .is_none_or(|name| name != LAUNCHER)
    {
        return;
    }
    let Ok(wire) = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(Wire::from_fd)
    else {
        sys::exit_now(125)
    };
    let Ok(Some((Launch { plan }, _))) = wire.receive::<Launch>() else {
        sys::exit_now(125)
    };
    // SAFETY: `main` calls this first, before any thread.
    match unsafe { sys::fork_with(holder::namespaces(&plan) | CLONE_PARENT) } {
        Ok(Side::Child) => {
            // The wire's other copy: it would keep the room open when Ward has gone.
            let null = std::fs::File::open("/dev/null");
            let _ = null.map(|null| rustix::stdio::dup2_stdin(&null));
            holder::run(plan, &wire, true)
        }
        Ok(Side::Parent(pid, pidfd)) => {
            let _ = wire.send(&Launched::Yes { pid }, &[pidfd.as_fd()]);
        }
        Err(error) => {
            let _ = wire.send(
                &Launched::No {
                    why: in_words(&error),
                },
                &[],
            );
        }
    }
    sys::exit_now(0)
}

/// Whether this process can fork a holder itself.
pub(crate) fn has_one_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

fn no_namespaces(why: &dyn ToString) -> SandboxError {
    SandboxError::Layer {
        layer: Layer::Namespaces.name(),
        why: why.to_string(),
    }
}

/// The kernel's refusals of a namespace, which its error numbers do not say.
fn in_words(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            "no more user namespaces are allowed (user.max_user_namespaces)".into()
        }
        Some(libc::EPERM) => "the system does not allow user namespaces".into(),
        _ => error.to_string(),
    }
}
