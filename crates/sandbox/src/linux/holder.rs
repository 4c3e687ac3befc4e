//! The holder of a room: the first process in its namespaces. It builds the room, then forks an
//! init for each command that Ward asks for. When it ends, the kernel ends everything in the room;
//! it ends when Ward lets go of the wire, however Ward itself ended.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use landlock::RulesetCreated;
use protocol::sandbox::Tier;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::DumpableBehavior;

use super::bpf::Instruction;
use super::filter::{Arch, Memory, Sockets, filter};
use super::init;
use super::landlock::{Rules, ruleset};
use super::layers::{Off, on};
use super::message::{Failure, Layer, Ready, Report, Spawn};
use super::places::Places;
use super::plan::{Plan, Trust};
use super::sys::{self, Side, new};
use super::wire::Wire;
use super::{limits, root};

/// The namespaces that a plan needs.
pub(crate) fn namespaces(plan: &Plan) -> u64 {
    if plan.tier != Tier::Room || !on(Off::User) {
        return 0;
    }
    let unless = |layer, namespace| if on(layer) { namespace } else { 0 };
    new::USER
        | new::MOUNT
        | new::UTS
        | new::CGROUP
        | unless(Off::Pids, new::PID)
        | unless(Off::Network, new::NET)
        | unless(Off::Ipc, new::IPC)
}

/// What the holder keeps ready for every command.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) plan: Plan,
    pub(crate) rules: Rules,
    pub(crate) ruleset: Option<RulesetCreated>,
    pub(crate) filter: Option<Vec<Instruction>>,
    /// A copy of the whole tree outside, for widening.
    pub(crate) host: Option<OwnedFd>,
}

/// Runs the holder to its end. The caller has just been forked into the plan's namespaces.
pub(crate) fn run(plan: Plan, wire: &Wire, keep_host: bool) -> ! {
    let room = match build(plan, wire, keep_host) {
        Ok(room) => room,
        Err((layer, why)) => {
            let _ = wire.send(&Ready::Failed { layer, why }, &[]);
            sys::exit_now(125);
        }
    };
    if room.plan.is_for_one_command() {
        become_init(&room, wire);
    }
    let mut orphans = Orphans::new(room.plan.tier);
    let mut places = Places::default();
    loop {
        match wire.receive_with(|| orphans.end()) {
            Ok(Some((spawn, fds))) => {
                if let Some(init) = fork_init(&room, &mut places, &spawn, fds) {
                    orphans.inits.push(init);
                }
            }
            Ok(None) | Err(_) => sys::exit_now(0),
        }
    }
}

/// For the one command of a room, the holder is init itself: its namespaces are the command's own
/// already.
fn become_init(room: &Room, wire: &Wire) -> ! {
    let Ok(Some((spawn, fds))) = wire.receive::<Spawn>() else {
        sys::exit_now(0)
    };
    let Some(connections) = Connections::of(fds) else {
        sys::exit_now(125)
    };
    init::run(room, &spawn, connections, init::Shown::default())
}

/// What connects a command with Ward.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) report: Wire,
    /// Ward looks at the reports when nobody holds this any more.
    pub(crate) undecided: OwnedFd,
    pub(crate) streams: Vec<OwnedFd>,
}

impl Connections {
    fn of(fds: Vec<OwnedFd>) -> Option<Self> {
        let mut fds = fds.into_iter();
        Some(Self {
            report: Wire::from_fd(fds.next()?),
            undecided: fds.next()?,
            streams: fds.collect(),
        })
    }
}

/// Keeps the room free of what commands leave behind. In a room the kernel does that; where there
/// are only walls, what outlives its init becomes the holder's child and is ended here.
#[derive(Debug)]
struct Orphans {
    inits: Vec<i32>,
}

impl Orphans {
    fn new(tier: Tier) -> Self {
        if tier == Tier::Room {
            // Reaped by the kernel; each init tells its end itself.
            sys::on_signal(libc::SIGCHLD, libc::SIG_IGN);
        } else {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            sys::interrupt_on(libc::SIGCHLD);
        }
        Self { inits: Vec::new() }
    }

    fn end(&mut self) {
        while let Ok(Some((pid, _))) = sys::ended_child() {
            self.inits.retain(|init| *init != pid);
        }
        for pid in limits::children(std::process::id() as i32) {
            if !self.inits.contains(&pid) {
                sys::kill(pid, libc::SIGKILL);
            }
        }
    }
}

fn build(plan: Plan, wire: &Wire, keep_host: bool) -> Result<Room, (Layer, String)> {
    let in_room = plan.tier == Tier::Room;
    let mut host = None;
    if in_room && on(Off::User) {
        map_user(&plan).map_err(|error| (Layer::Namespaces, error.to_string()))?;
        if on(Off::Root) {
            host = root::assemble(&plan, keep_host)
                .map_err(|(what, error)| (Layer::Root, format!("{what}: {error}")))?;
        }
    }
    if !in_room && plan.trust == Trust::None {
        root::furnish(plan.scratch_folder(), &plan)
            .map_err(|(what, error)| (Layer::Root, format!("{what}: {error}")))?;
    }
    if in_room && on(Off::Limits) {
        limits::shared_memory(plan.memory);
    }
    let loopback = |error: std::io::Error| (Layer::Loopback, error.to_string());
    if in_room && on(Off::Network) {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = rustix::net::socket(family, kind, None).map_err(|e| loopback(e.into()))?;
        sys::raise_loopback(socket).map_err(loopback)?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(loopback)?;
    let port = listener.local_addr().map_err(loopback)?.port();

    let rules = plan.rules(port);
    let ruleset = if on(Off::Landlock) && plan.tier != Tier::None {
        Some(ruleset(&rules).map_err(|why| (Layer::Landlock, why))?)
    } else {
        None
    };
    let sockets = match (plan.tier, plan.reaches_hosts, plan.listens) {
        (Tier::Room, _, _) => Sockets::Held,
        (Tier::Walls | Tier::None, true, _) => Sockets::PairsAndTcp,
        (Tier::Walls | Tier::None, false, true) => Sockets::PairsAndServers,
        (Tier::Walls | Tier::None, false, false) => Sockets::PairsOnly,
    };
    let wanted = on(Off::Seccomp) && plan.tier != Tier::None;
    let memory = if plan.grouped || !on(Off::Limits) {
        Memory::Grouped
    } else {
        Memory::Watched
    };
    let filter = wanted.then(|| filter(Arch::HERE, sockets, memory));
    if on(Off::Capabilities) && plan.trust == Trust::None {
        sys::bound_capabilities();
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| (Layer::Namespaces, error.to_string()))?;
    let told = wire.send(&Ready::Built, &[listener.as_fd()]);
    told.map_err(|error| (Layer::Namespaces, error.to_string()))?;
    Ok(Room {
        plan,
        rules,
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

/// Forks an init for a command; its pid, as the holder sees it.
fn fork_init(room: &Room, places: &mut Places, spawn: &Spawn, fds: Vec<OwnedFd>) -> Option<i32> {
    // Where Ward has gone, nobody hears this, and the next `receive` ends the room.
    let connections = Connections::of(fds)?;
    let refuse = |layer, why| {
        let failed = Report::Failed(Failure::Layer { layer, why });
        let _ = connections.report.send(&failed, &[]);
        None
    };
    let trees = match init::widenings(room, spawn) {
        Ok(trees) => trees,
        Err((layer, why)) => return refuse(layer, why),
    };
    places.tidy();
    let held = match places.make(&spawn.widened, &trees) {
        Ok(held) => held,
        Err((path, error)) => {
            return refuse(Layer::Widening, format!("{}: {error}", path.display()));
        }
    };
    let flags = namespaces(&room.plan) & (new::PID | new::MOUNT);
    // SAFETY: the holder has one thread.
    match unsafe { sys::fork_with(flags) } {
        Ok(Side::Child) => init::run(room, spawn, connections, init::Shown { trees, held }),
        Ok(Side::Parent(pid, pidfd)) => {
            let _ = connections.report.send(&Report::Forked, &[pidfd.as_fd()]);
            Some(pid)
        }
        Err(error) => refuse(Layer::Namespaces, error.to_string()),
    }
}
