//! What this machine can hold, found out by trying it.

use std::path::Path;

use protocol::sandbox::{LayerStatus, SandboxStatus, Tier};

use super::launch::launch;
use super::limits::Cgroup;
use super::plan::{Plan, Scratch};
use super::{landlock, sys};
use crate::error::SandboxError;
use crate::state::OwnFolder;
use crate::wall::{Limits, Net, Wall};

/// Tries every layer. `state` is Ward's own folder.
pub(crate) fn probe(minimum: Tier, state: &Path) -> SandboxStatus {
    let room = try_tier(Tier::Room, state);
    let walls = room.is_ok() || try_tier(Tier::Walls, state).is_ok();
    let tier = match (&room, walls) {
        (Ok(()), _) => Tier::Room,
        (Err(_), true) => Tier::Walls,
        (Err(_), false) => Tier::None,
    };
    let layers = vec![
        namespaces(room.as_ref().err()),
        landlock_layer(),
        seccomp(),
        cgroup(),
        processes(),
    ];
    SandboxStatus {
        tier,
        minimum,
        layers,
    }
}

/// Opens an empty room for a moment.
fn try_tier(tier: Tier, state: &Path) -> Result<(), SandboxError> {
    let (workspace, scratch) = (OwnFolder::of_room(state)?, OwnFolder::of_room(state)?);
    let limits = Limits {
        memory: 64 << 20,
        pids: 64,
        tmp: 1 << 20,
    };
    let wall = Wall {
        workspace: workspace.path().to_owned(),
        net: Net::None,
        limits,
    };
    let kept = Scratch::Folder(scratch.path().to_owned());
    launch(Plan::new(tier, &wall, &[], kept)?, || ()).map(drop)
}

fn layer(
    name: &str,
    available: bool,
    detail: impl Into<String>,
    hint: Option<&str>,
) -> LayerStatus {
    LayerStatus {
        name: name.into(),
        available,
        detail: detail.into(),
        hint: hint.filter(|_| !available).map(Into::into),
    }
}

fn namespaces(missing: Option<&SandboxError>) -> LayerStatus {
    let Some(error) = missing else {
        let detail =
            "an assembled root of its own, no network but the proxy, no other process in sight";
        return layer("namespaces", true, detail, None);
    };
    let why = match error {
        SandboxError::Layer { layer, why } => format!("{layer}: {why}"),
        other => other.to_string(),
    };
    layer("namespaces", false, why, Some(namespace_hint()))
}

fn namespace_hint() -> &'static str {
    let is = |switch: &str, value: &str| {
        std::fs::read_to_string(switch).is_ok_and(|text| text.trim() == value)
    };
    if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        "AppArmor keeps user namespaces from programs without a profile. As root: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or give ward a profile with `userns,`."
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "User namespaces are switched off. As root: `sysctl user.max_user_namespaces=15000`."
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "User namespaces are for root only. As root: `sysctl kernel.unprivileged_userns_clone=1`."
    } else {
        "A container often forbids new namespaces: run it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or run Ward outside of it."
    }
}

fn landlock_layer() -> LayerStatus {
    match landlock::version() {
        Some(version) if version >= 3 => layer(
            "Landlock",
            true,
            format!("version {version}: what may be opened and written"),
            None,
        ),
        Some(version) => layer(
            "Landlock",
            false,
            format!("version {version}, and Ward needs 3"),
            Some("Use Linux 6.2 or later."),
        ),
        None => layer(
            "Landlock",
            false,
            "not in this kernel, or switched off",
            Some("Use Linux 6.2 or later with `landlock` in the kernel's `lsm=` list."),
        ),
    }
}

fn seccomp() -> LayerStatus {
    let detail = "closes what no build needs, and tells what the wall stopped";
    let hint = "The kernel needs CONFIG_SECCOMP_FILTER, and USER_NOTIF of Linux 5.5.";
    layer("seccomp", sys::can_notify(), detail, Some(hint))
}

fn cgroup() -> LayerStatus {
    let made = Cgroup::make(64 << 20, 64);
    let detail = if made.is_some() {
        "a control group of the room's own"
    } else {
        "no control group to be had: a watchdog looks at the tree's memory instead"
    };
    let hint = "Start Ward in a systemd user session (`systemd-run --user --scope ward …`), where one is delegated.";
    layer("memory limit", made.is_some(), detail, Some(hint))
}

fn processes() -> LayerStatus {
    // What the pid namespace itself can bound, Linux 6.14 and later; else RLIMIT_NPROC does.
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .filter_map(|n| n.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let own = version >= (6, 14);
    let detail = if own {
        "bounded by the pid namespace and by RLIMIT_NPROC"
    } else {
        "bounded by RLIMIT_NPROC, which does not bind root"
    };
    layer(
        "process limit",
        own,
        detail,
        Some("Use Linux 6.14 or later, or run Ward as an ordinary user."),
    )
}
