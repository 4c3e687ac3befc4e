//! Landlock: the kernel's own rule of what a process and all its children may open.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus,
    Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};

use crate::wall::{WidenedAccess, Widening};

/// The oldest version that holds what Ward needs: truncation came with the third.
const OLDEST: ABI = ABI::V3;
/// The newest one that is asked for; what a kernel does not know yet is left out.
const NEWEST: ABI = ABI::V6;

/// What one command may open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// To read and execute.
    pub(crate) readable: Vec<PathBuf>,
    /// To read, execute and write.
    pub(crate) writable: Vec<PathBuf>,
    /// Devices: to read, write and control, not to make.
    pub(crate) devices: Vec<PathBuf>,
    /// What one command is granted beyond the wall, and how far. These are real paths: one that has
    /// a link in it by now is not what was granted.
    pub(crate) granted: Vec<Widening>,
    /// What TCP is, where no network namespace holds it.
    pub(crate) tcp: Tcp,
}

/// What Landlock says of TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tcp {
    /// Nothing: the network namespace holds.
    #[default]
    Elsewhere,
    /// This port, on any address of this machine that listens there.
    OnlyTo(u16),
    /// No connection and no listener.
    Closed,
}

/// Makes the rule; it holds from `restrict_self` on.
pub(crate) fn ruleset(rules: &Rules) -> Result<RulesetCreated, String> {
    build(rules).map_err(|error| error.to_string())
}

fn build(rules: &Rules) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let read = AccessFs::from_read(OLDEST);
    let all = AccessFs::from_all(NEWEST);
    let device = AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::ReadDir
        | AccessFs::IoctlDev
        | AccessFs::Truncate;

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?;
    if rules.tcp != Tcp::Elsewhere {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessNet::from_all(ABI::V4))?
            .set_compatibility(CompatLevel::BestEffort);
    }
    let mut created = ruleset.create()?;
    for path in &rules.readable {
        created = allow(created, path, read)?;
    }
    for path in &rules.writable {
        created = allow(created, path, all)?;
    }
    for path in &rules.devices {
        created = allow(created, path, device)?;
    }
    for widening in &rules.granted {
        let access = match widening.access {
            WidenedAccess::Read => read,
            WidenedAccess::Write => all,
        };
        created = allow_exactly(created, &widening.path, access)?;
    }
    if let Tcp::OnlyTo(port) = rules.tcp {
        created = created.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    Ok(created)
}

fn allow(
    created: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    // A path that is not there needs no rule.
    let Ok(fd) = PathFd::new(path) else {
        return Ok(created);
    };
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(NEWEST)
    };
    Ok(created.add_rule(PathBeneath::new(fd, access))?)
}

fn allow_exactly(
    created: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(fd) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
        return Ok(created);
    };
    let stat = rustix::fs::fstat(&fd)?;
    let access = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => access,
        _ => access & AccessFs::from_file(NEWEST),
    };
    Ok(created.add_rule(PathBeneath::new(fd, access))?)
}

/// Allows what a person has handed over themselves: a file or a terminal as a standard stream, which
/// programs open again by its name in `/dev`. A pipe has no place in any folder and needs no rule.
pub(crate) fn allow_stream(
    created: RulesetCreated,
    stream: &OwnedFd,
) -> Result<RulesetCreated, String> {
    let regular = rustix::fs::fstat(stream).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::CharacterDevice)
    });
    if !regular {
        return Ok(created);
    }
    let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    created
        .add_rule(PathBeneath::new(stream, access))
        .map_err(|error| error.to_string())
}

/// Puts the rule on this process and all it will start.
pub(crate) fn restrict(ruleset: RulesetCreated) -> Result<(), String> {
    match ruleset.restrict_self() {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            Err("the kernel did not enforce the rule".into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The version the kernel has; none where Landlock is missing or switched off.
pub(crate) fn version() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel takes no structure and answers a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}
