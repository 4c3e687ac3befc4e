//! The first process of a command's own pid namespace: it puts up what is the command's alone,
//! starts it, reaps what is left to it, and ends with it. When it ends, the kernel ends the rest.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use protocol::sandbox::Tier;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_bind_recursive, move_mount,
    open_tree,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

use super::holder::{Connections, Room};
use super::landlock::{Rules, allow_stream, restrict, ruleset};
use super::layers::{Off, on};
use super::limits;
use super::message::{Failure, Layer, Protected, Report, Size, Spawn};
use super::plan::Trust;
use super::sys::{self, Reach, attr, mount_setattr};
use super::wire::Wire;
use crate::os_text::OsText;
use crate::wall::{WidenedAccess, Widening};

/// Why the command does not run.
pub(crate) type Refused = (Layer, String);

fn layer<E: ToString>(layer: Layer) -> impl Fn(E) -> Refused {
    move |error| (layer, error.to_string())
}

/// What is mounted for a command alone, at places that were made for it.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) trees: Vec<OwnedFd>,
    /// Let go of when nothing of the command is left: then the places can go as well.
    pub(crate) held: Option<OwnedFd>,
}

/// Runs a command to its end. Only for a process just forked into new pid and mount namespaces.
pub(crate) fn run(room: &Room, spawn: &Spawn, connections: Connections, shown: Shown) -> ! {
    sys::on_signal(libc::SIGCHLD, libc::SIG_DFL);
    sys::hold_signals(HEARD);
    if room.plan.tier != Tier::Room {
        stand_alone();
    }
    let Connections {
        report,
        undecided,
        streams,
    } = connections;
    let Shown { trees, held } = shown;
    let failure = match start(room, spawn, &report, streams, &trees) {
        Ok(Begun::Runs(command)) => {
            if report.send(&Report::Started, &[]).is_ok() {
                drop(undecided);
                let status = watch(command, room.plan.tier);
                // Before anybody hears of the end, who may then start the next command.
                drop(held);
                let _ = report.send(&Report::Ended { status }, &[]);
            }
            sys::exit_now(0)
        }
        Ok(Begun::Refused(failure)) => failure,
        Err((layer, why)) => Failure::Layer { layer, why },
    };
    drop(held);
    let _ = report.send(&Report::Failed(failure), &[]);
    sys::exit_now(125)
}

/// What became of the command.
enum Begun {
    /// It runs, under this pid.
    Runs(i32),
    /// It could not be executed, or not be confined before.
    Refused(Failure),
}

/// Puts up the command's own layers and starts it.
fn start(
    room: &Room,
    spawn: &Spawn,
    report: &Wire,
    streams: Vec<OwnedFd>,
    trees: &[OwnedFd],
) -> Result<Begun, Refused> {
    if on(Off::Root) && room.plan.tier == Tier::Room {
        if !room.plan.is_for_one_command() {
            let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount("proc", "/proc", "proc", quiet, None).map_err(layer(Layer::Proc))?;
        }
        if on(Off::Limits) {
            limits::processes(room.plan.pids);
        }
        protect(&spawn.protected)?;
        hide(&spawn.hidden)?;
        for (tree, widening) in trees.iter().zip(&spawn.widened) {
            widen(tree, widening)?;
        }
        // To root inside, the kernel's switches below /proc/sys would be its own.
        mount_setattr(CWD, c"/proc", attr::READ_ONLY, Reach::This).map_err(layer(Layer::Proc))?;
    }

    let streams = match spawn.terminal {
        Some(size) => terminal(size, report)?,
        None => streams,
    };
    if streams.len() != 3 {
        return Err((Layer::Terminal, "three standard streams are needed".into()));
    }
    // While init still has the rights for it; the command inherits it.
    rustix::process::chdir(Path::new(&spawn.cwd.0)).map_err(layer(Layer::WorkingDirectory))?;
    let trust = room.plan.trust;
    if on(Off::Capabilities) && trust == Trust::None {
        sys::drop_capabilities().map_err(layer(Layer::Capabilities))?;
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(layer(Layer::Capabilities))?;
    let mut failure = None;
    let mut become_it = || failure = Some(execute(room, spawn, report, &streams));
    // SAFETY: init has one thread.
    let command = unsafe { sys::run_in_child(&mut become_it) }.map_err(layer(Layer::Namespaces))?;
    if trust == Trust::None {
        sys::drop_capabilities().map_err(layer(Layer::Capabilities))?;
    }
    Ok(failure.map_or(Begun::Runs(command), Begun::Refused))
}

/// The signals that init hears; one to end everything at once where the kernel would not.
const HEARD: &[i32] = &[libc::SIGCHLD, libc::SIGTERM, libc::SIGHUP, END_ALL];
/// Ends everything below init.
pub(crate) const END_ALL: i32 = libc::SIGUSR1;

/// Without a pid namespace init keeps what its command leaves behind, and ends it with the holder.
fn stand_alone() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::USR1));
}

/// Waits for the command, reaping what else ends; answers how it ended when nothing of it is left.
fn watch(command: i32, tier: Tier) -> i32 {
    let mut status = None;
    while status.is_none() {
        match sys::next_signal(HEARD) {
            libc::SIGCHLD => {
                while let Ok(Some((pid, how))) = sys::ended_child() {
                    if pid == command {
                        status = Some(how);
                    }
                }
            }
            END_ALL => pass_on(libc::SIGKILL),
            signal if signal > 0 => pass_on(signal),
            _ => {}
        }
    }
    end_all(tier);
    status.unwrap_or(0)
}

/// Hands a signal to everything below init. Never to "all that I may": where a pid namespace is
/// missing, that would be the user's whole machine.
fn pass_on(signal: i32) {
    for pid in limits::descendants(std::process::id() as i32) {
        sys::kill(pid, signal);
    }
}

/// Ends everything below init and waits until it is gone. What a process leaves behind when it ends
/// has no other parent to go to than init: where init has no child, nothing is left.
fn end_all(tier: Tier) {
    loop {
        match sys::ended_child() {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(_) => return,
        }
        match tier {
            // The first process of a pid namespace reaches all others in it, and nothing else.
            Tier::Room if std::process::id() == 1 => sys::kill(-1, libc::SIGKILL),
            // Without one, which only a test can have, nothing holds them.
            Tier::Room => return,
            Tier::Walls | Tier::None => pass_on(libc::SIGKILL),
        }
        if sys::wait_for_child().is_err() {
            return;
        }
    }
}

/// Closes paths of the workspace for writing, and holds folders in their place.
fn protect(paths: &[Protected]) -> Result<(), Refused> {
    if !on(Off::Protection) {
        return Ok(());
    }
    for protected in paths {
        let path = &protected.path;
        let failed =
            |error: std::io::Error| (Layer::Protection, format!("{}: {error}", path.display()));
        match mount_bind_recursive(path, path) {
            Ok(()) => {}
            // Gone since it was looked at: then there is nothing to change.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(failed(error.into())),
        }
        let attributes = attr::NO_SUID | attr::NO_DEV;
        let attributes = attributes
            | if protected.place_only {
                0
            } else {
                attr::READ_ONLY
            };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(layer(Layer::Protection))?;
        mount_setattr(CWD, &name, attributes, Reach::Below).map_err(failed)?;
    }
    Ok(())
}

/// Covers sockets: a path leads to whoever listens there, past any network namespace.
fn hide(sockets: &[OsText]) -> Result<(), Refused> {
    for socket in sockets {
        let socket = Path::new(&socket.0);
        match mount_bind("/dev/null", socket) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => {
                return Err((Layer::Protection, format!("{}: {error}", socket.display())));
            }
        }
    }
    Ok(())
}

/// Takes copies of the paths that widen the wall from the tree outside. For the holder: the kernel
/// lets only the namespace that holds that tree take parts of it. Where there are only walls, the
/// command sees the tree outside, and Landlock alone is told.
pub(crate) fn widenings(room: &Room, spawn: &Spawn) -> Result<Vec<OwnedFd>, Refused> {
    if room.plan.tier != Tier::Room {
        return Ok(Vec::new());
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let take = |widening: &Widening| {
        let path = &widening.path;
        let failed = |why: String| (Layer::Widening, format!("{}: {why}", path.display()));
        let Some(host) = &room.host else {
            return Err(failed("this room cannot be widened".into()));
        };
        // A real path has no links in it. One that is there now was put there since.
        let relative = path.strip_prefix("/").unwrap_or(path);
        let opened = openat2(
            host,
            relative,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        );
        opened
            .and_then(|opened| open_tree(opened, "", flags))
            .map_err(|error| failed(error.to_string()))
    };
    spawn.widened.iter().map(take).collect()
}

/// Shows this command one more path of the tree outside.
fn widen(tree: &OwnedFd, widening: &Widening) -> Result<(), Refused> {
    let path = &widening.path;
    let failed = |error: std::io::Error| (Layer::Widening, format!("{}: {error}", path.display()));
    let mut attributes = attr::NO_SUID | attr::NO_DEV;
    if widening.access == WidenedAccess::Read {
        attributes |= attr::READ_ONLY;
    }
    mount_setattr(tree.as_fd(), c"", attributes, Reach::Below).map_err(failed)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(tree, "", CWD, path, flags).map_err(|error| failed(error.into()))
}

/// Opens a terminal in the room; its command side three times over.
fn terminal(size: Size, report: &Wire) -> Result<Vec<OwnedFd>, Refused> {
    let failed = layer(Layer::Terminal);
    let flags = rustix::pty::OpenptFlags::RDWR
        | rustix::pty::OpenptFlags::NOCTTY
        | rustix::pty::OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags).map_err(&failed)?;
    rustix::pty::unlockpt(&master).map_err(&failed)?;
    let name = rustix::pty::ptsname(&master, Vec::new()).map_err(&failed)?;
    let open = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, open, Mode::empty()).map_err(&failed)?;
    let window = rustix::termios::Winsize {
        ws_col: size.cols,
        ws_row: size.rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&slave, window).map_err(&failed)?;
    let sent = report.send(&Report::Terminal, &[master.as_fd()]);
    sent.map_err(|error| (Layer::Terminal, error.to_string()))?;
    let copy = || {
        slave
            .try_clone()
            .map_err(|error| (Layer::Terminal, error.to_string()))
    };
    Ok(vec![copy()?, copy()?, copy()?])
}

/// Becomes the command. Returns only where that failed.
fn execute(room: &Room, spawn: &Spawn, report: &Wire, streams: &[OwnedFd]) -> Failure {
    match confine(room, spawn, report, streams) {
        Ok(()) => exec(spawn),
        Err((layer, why)) => Failure::Layer { layer, why },
    }
}

fn confine(room: &Room, spawn: &Spawn, report: &Wire, streams: &[OwnedFd]) -> Result<(), Refused> {
    for signal in [
        libc::SIGPIPE,
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
    ] {
        sys::on_signal(signal, libc::SIG_DFL);
    }
    sys::unblock_signals();
    if !spawn.keeps_terminal {
        rustix::process::setsid().map_err(layer(Layer::Terminal))?;
    }
    if spawn.terminal.is_some() {
        rustix::process::ioctl_tiocsctty(&streams[0]).map_err(layer(Layer::Terminal))?;
    }
    redirect(streams).map_err(layer(Layer::Terminal))?;
    if room.plan.trust == Trust::Full {
        return Ok(());
    }
    limit(room).map_err(layer(Layer::Limits))?;
    if on(Off::Capabilities) {
        sys::drop_capabilities().map_err(layer(Layer::Capabilities))?;
        rustix::thread::set_no_new_privs(true).map_err(layer(Layer::NoNewPrivileges))?;
    }
    if let Some(prepared) = &room.ruleset {
        let mut ruleset = if spawn.widened.is_empty() {
            prepared.try_clone().map_err(layer(Layer::Landlock))?
        } else {
            ruleset(&widened_rules(room, spawn)).map_err(layer(Layer::Landlock))?
        };
        if spawn.keeps_terminal {
            for stream in streams {
                ruleset = allow_stream(ruleset, stream).map_err(layer(Layer::Landlock))?;
            }
        }
        restrict(ruleset).map_err(layer(Layer::Landlock))?;
    }
    if let Some(filter) = &room.filter {
        let listener = sys::install_filter(filter).map_err(layer(Layer::Seccomp))?;
        let sent = report.send(&Report::Listening, &[listener.as_fd()]);
        sent.map_err(layer(Layer::Seccomp))?;
    }
    Ok(())
}

fn widened_rules(room: &Room, spawn: &Spawn) -> Rules {
    let mut rules = room.rules.clone();
    rules.granted.extend(spawn.widened.iter().cloned());
    rules
}

/// Puts the three streams in their places and closes everything else, on exec at the latest.
fn redirect(streams: &[OwnedFd]) -> std::io::Result<()> {
    let [input, output, error] = streams else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    // Lifted first, so that none lies where another has to go.
    let lift = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 10);
    let (input, output, error) = (
        lift(input.as_fd())?,
        lift(output.as_fd())?,
        lift(error.as_fd())?,
    );
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    rustix::stdio::dup2_stderr(&error)?;
    if on(Off::Descriptors) {
        sys::close_on_exec_from(3)?;
    }
    Ok(())
}

fn limit(room: &Room) -> std::io::Result<()> {
    if !on(Off::Limits) {
        return Ok(());
    }
    let set = |resource, most: u64| {
        let hard = rustix::process::getrlimit(resource)
            .maximum
            .unwrap_or(u64::MAX);
        let most = most.min(hard);
        rustix::process::setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )
    };
    set(Resource::Core, 0)?;
    set(Resource::Nproc, u64::from(room.plan.pids))?;
    // The watchdog and the cgroup hold the tree's memory; this only stops a single process that
    // asks for many times the limit at once.
    set(Resource::Data, room.plan.memory.saturating_mul(4))?;
    Ok(())
}

fn exec(spawn: &Spawn) -> Failure {
    let strings = |texts: &[OsText]| -> Vec<CString> {
        texts
            .iter()
            .filter_map(|t| CString::new(t.0.as_bytes()).ok())
            .collect()
    };
    let (arguments, environment) = (strings(&spawn.argv), strings(&spawn.environment));
    let Some(program) = spawn.argv.first() else {
        return Failure::Exec {
            errno: libc::ENOENT,
        };
    };
    if program.0.as_bytes().contains(&b'/') {
        return failed_exec(&sys::exec(&arguments[0], &arguments, &environment));
    }
    let path = spawn
        .environment
        .iter()
        .rev()
        .find_map(|pair| pair.0.as_bytes().strip_prefix(b"PATH="));
    let mut refused = None;
    for folder in path.unwrap_or(b"/usr/bin:/bin").split(|byte| *byte == b':') {
        let folder = Path::new(if folder.is_empty() {
            OsStr::new(".")
        } else {
            OsStr::from_bytes(folder)
        });
        let Ok(candidate) = CString::new(OsString::from(folder.join(&program.0)).into_vec()) else {
            continue;
        };
        let error = sys::exec(&candidate, &arguments, &environment);
        if !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)) {
            refused.get_or_insert(error);
        }
    }
    refused.as_ref().map_or(
        Failure::Exec {
            errno: libc::ENOENT,
        },
        failed_exec,
    )
}

fn failed_exec(error: &std::io::Error) -> Failure {
    Failure::Exec {
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}
