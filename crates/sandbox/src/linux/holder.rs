//! The holder of a room: the first process in its namespaces. It builds the room, then forks an
//! init for each command that Ward asks for. When it ends, the kernel ends everything in the room;
//! it ends when Ward lets go of the wire, however Ward itself ended.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use landlock::RulesetCreated;
use rustix::process::DumpableBehavior;

use super::bpf::Instruction;
use super::filter::{Arch, Sockets, Telling, filter};
use super::init;
use super::landlock::{Rules, ruleset};
use super::message::{Forked, Layer, Ready, Spawn};
use super::plan::Plan;
use super::sys::{self, Side, new};
use super::wire::Wire;
use super::{layers, root};

/// The namespaces of a room.
pub(crate) const ROOM: u64 =
    new::USER | new::MOUNT | new::PID | new::NET | new::IPC | new::UTS | new::CGROUP;

/// What the holder keeps ready for every command.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) plan: Plan,
    pub(crate) ruleset: Option<RulesetCreated>,
    pub(crate) filter: Vec<Instruction>,
    /// A copy of the whole tree outside, for widening.
    pub(crate) host: Option<OwnedFd>,
}

/// Runs the holder to its end. The caller has just been forked into the namespaces of [`ROOM`].
pub(crate) fn run(plan: Plan, wire: &Wire, keep_host: bool) -> ! {
    let room = match build(plan, wire, keep_host) {
        Ok(room) => room,
        Err((layer, why)) => {
            let _ = wire.send(&Ready::Failed { layer, why }, &[]);
            sys::exit_now(125);
        }
    };
    // Children are reaped by the kernel; each tells its end itself.
    sys::on_signal(libc::SIGCHLD, libc::SIG_IGN);
    loop {
        match wire.receive::<Spawn>() {
            Ok(Some((spawn, fds))) => fork_init(&room, &spawn, fds, wire),
            Ok(None) | Err(_) => sys::exit_now(0),
        }
    }
}

fn build(plan: Plan, wire: &Wire, keep_host: bool) -> Result<Room, (Layer, String)> {
    map_user(&plan).map_err(|error| (Layer::Namespaces, error.to_string()))?;
    let host = if layers::on("root") {
        root::assemble(&plan, keep_host)
            .map_err(|(what, error)| (Layer::Root, format!("{what}: {error}")))?
    } else {
        None
    };
    let loopback = |error: std::io::Error| (Layer::Loopback, error.to_string());
    let listener = {
        let address = (Ipv4Addr::LOCALHOST, 0);
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        );
        sys::raise_loopback(socket.map_err(|e| loopback(e.into()))?).map_err(loopback)?;
        TcpListener::bind(address).map_err(loopback)?
    };
    let proxy_port = listener.local_addr().map_err(loopback)?.port();

    let rules = Rules {
        readable: vec!["/".into()],
        writable: plan.writable(),
        devices: vec!["/dev".into()],
        ..Rules::default()
    };
    let ruleset = if layers::on("landlock") {
        Some(ruleset(&rules).map_err(|why| (Layer::Landlock, why))?)
    } else {
        None
    };
    let filter = filter(Arch::HERE, Sockets::Held, Telling::On);
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| (Layer::Namespaces, error.to_string()))?;
    let told = wire.send(&Ready::Built { proxy_port }, &[listener.as_fd()]);
    told.map_err(|error| (Layer::Namespaces, error.to_string()))?;
    Ok(Room {
        plan,
        ruleset,
        filter,
        host,
    })
}

/// Inside, the user is who they are outside; nobody else exists.
fn map_user(plan: &Plan) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", plan.uid))?;
    std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", plan.gid))
}

fn fork_init(room: &Room, spawn: &Spawn, mut fds: Vec<OwnedFd>, wire: &Wire) {
    // SAFETY: the holder has one thread.
    match unsafe { sys::fork_with(new::PID | new::MOUNT) } {
        Ok(Side::Child) => {
            let streams = fds.split_off(1.min(fds.len()));
            let Some(report) = fds.pop() else {
                sys::exit_now(125)
            };
            init::run(room, spawn, Wire::from_fd(report), streams)
        }
        Ok(Side::Parent(_, pidfd)) => {
            // Where Ward has gone, the next `receive` ends the room.
            let _ = wire.send(&Forked::Yes, &[pidfd.as_fd()]);
        }
        Err(error) => {
            let _ = wire.send(
                &Forked::No {
                    why: error.to_string(),
                },
                &[],
            );
        }
    }
}
