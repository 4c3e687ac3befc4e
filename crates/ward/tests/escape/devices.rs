//! Devices, the kernel's switches, and rights that a program file carries.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use crate::check::Seen;
use crate::scene::{Held, Scene, is_root, skip, tools};

/// A switch of the kernel's that nothing here depends on.
const SWITCH: &str = "/proc/sys/fs/lease-break-time";

checks! {
    a_switch_of_the_kernel_is_not_turned:
        Root, WithoutWhereAllowed("root,landlock"), Hold, switch;
    the_kernels_log_is_not_written:
        Root, WithoutWhereAllowed("root,landlock"), Hold, kernel_log;
    a_disk_is_not_opened:
        Root, None("the kernel opens no disk that a user namespace made, and to write one here would be too much"),
        Hold, disk;
    no_device_is_made:
        Root, None("the kernel makes no device in a user namespace"), Hold, device;
    nothing_in_sys_is_written:
        Root, None("what could be written there as root would change this machine"), Hold, sys;
    a_program_that_belongs_to_root_runs_with_no_more_rights:
        Unprivileged, None("root is nobody in the user namespace of a room, whatever its layers"), Hold, set_user;
    nobody_becomes_somebody_else:
        Root, None("nobody else exists in the user namespace of a room"), Hold, become_other;
    the_own_control_group_is_not_left:
        Root, WithoutWhereAllowed("root,landlock,limits"), Hold, control_group;
}

fn switch(scene: &Scene) -> Seen {
    // One switch for the whole machine: the counter-proof must not turn it while another looks.
    let lock = std::fs::File::create(std::env::temp_dir().join("ward-escape-switch.lock")).unwrap();
    lock.lock().unwrap();
    let before = std::fs::read_to_string(SWITCH).unwrap();
    let other = before.trim().parse::<u32>().unwrap() + 1;
    scene.attack(&["write-to", SWITCH, &other.to_string()]);
    // In vain as well: /proc/sys as the host's first process sees it.
    scene.attack(&[
        "write-to",
        &format!("/proc/1/root{SWITCH}"),
        &other.to_string(),
    ]);
    let after = std::fs::read_to_string(SWITCH).unwrap();
    if after != before {
        std::fs::write(SWITCH, before.trim()).unwrap();
    }
    Seen::escape_if(after != before)
}

fn kernel_log(scene: &Scene) -> Seen {
    let mark = scene.mark();
    scene.attack(&["write-to", "/dev/kmsg", &mark]);
    let output = std::process::Command::new("dmesg").output();
    let log = output.map(|output| output.stdout).unwrap_or_default();
    Seen::escape_if(String::from_utf8_lossy(&log).contains(&mark))
}

fn disk(scene: &Scene) -> Seen {
    let waiting = scene.hold(&[], &["device", "disk", "b", "254", "0"]);
    let opened = waiting.has_descriptor("work/disk");
    drop(waiting);
    let line = "for d in /dev/vd? /dev/sd? /dev/nvme* /dev/mem /dev/port; do [ -e $d ] && echo $d; done >loot; true";
    scene.sh(line);
    Seen::escape_if(opened || (scene.held != Held::Walls && !scene.read("work/loot").is_empty()))
}

fn device(scene: &Scene) -> Seen {
    scene.attack(&["device", "made", "c", "1", "5"]);
    let kind = scene
        .path("work/made")
        .metadata()
        .map(|m| m.mode() & 0o170_000);
    Seen::escape_if(kind.is_ok_and(|kind| kind == 0o020_000))
}

fn sys(scene: &Scene) -> Seen {
    let line = "exec 2>/dev/null; for f in /proc/sysrq-trigger /sys/power/state /sys/devices/system/cpu/cpu1/online \
                /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /sys/kernel/uevent_helper /proc/1/oom_score_adj; \
                do (: >>$f) && echo $f; done >loot; true";
    scene.sh(line);
    Seen::escape_if(!scene.read("work/loot").is_empty())
}

fn set_user(scene: &Scene) -> Seen {
    if !is_root() {
        skip("only root can make such a program");
        return Seen::Nothing;
    }
    let program = scene.path("work/raised");
    tools::copy(&scene.path("work/attack"), &program);
    std::os::unix::fs::chown(&program, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o6755)).unwrap();
    scene.run(&[], &["./raised", "whoami"]);
    let loot = scene.path("work/loot").metadata().unwrap();
    Seen::escape_if(loot.uid() == 0 || loot.gid() == 0)
}

fn become_other(scene: &Scene) -> Seen {
    scene.attack(&["become", "65534"]);
    Seen::escape_if(scene.path("work/loot").exists())
}

fn control_group(scene: &Scene) -> Seen {
    let line = "for f in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs 2>/dev/null); do \
                echo $$ 2>/dev/null >$f && echo $f; done >loot; true";
    scene.sh(line);
    Seen::escape_if(!scene.read("work/loot").is_empty())
}
