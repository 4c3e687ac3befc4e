//! Commands that run others and change what that means: which they are, and whether they may run what
//! they read.

use super::variables::assigned;
use super::{Word, base_name};

const LAUNCHERS: &[&str] = &[
    "aa-exec",
    "abduco",
    "apptainer",
    "autossh",
    "bear",
    "busybox",
    "bwrap",
    "caffeinate",
    "capsh",
    "catchsegv",
    "ccache",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "concurrently",
    "coresched",
    "cpulimit",
    "cross-env",
    "cross-env-shell",
    "daemon",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "distcc",
    "distrobox",
    "distrobox-enter",
    "doas",
    "docker",
    "dotenvx",
    "dtach",
    "dumb-init",
    "dzdo",
    "eatmydata",
    "entr",
    "env-cmd",
    "envdir",
    "envuidgid",
    "fakechroot",
    "fakeroot",
    "fakeroot-sysv",
    "fakeroot-tcp",
    "faketime",
    "fd",
    "fdfind",
    "firejail",
    "flatpak-spawn",
    "flock",
    "fstab-decode",
    "gnome-terminal",
    "gosu",
    "gpg-agent",
    "gtime",
    "gtimeout",
    "heaptrack",
    "hyperfine",
    "i386",
    "icecc",
    "ifne",
    "jobs",
    "konsole",
    "kubectl",
    "lckdo",
    "linux32",
    "linux64",
    "logsave",
    "ltrace",
    "luit",
    "lxc-attach",
    "lxc-execute",
    "lxc-start",
    "lxterminal",
    "machinectl",
    "memusage",
    "mispipe",
    "mpiexec",
    "mpirun",
    "nerdctl",
    "newgrp",
    "nix",
    "nix-shell",
    "nodemon",
    "not",
    "npm-run-all",
    "nsenter",
    "nsjail",
    "numactl",
    "pdsh",
    "perf",
    "pfexec",
    "pg_virtualenv",
    "pidproxy",
    "pipesz",
    "pkexec",
    "please",
    "podman",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "pssh",
    "reflex",
    "rlwrap",
    "run0",
    "runcon",
    "runuser",
    "salloc",
    "sandbox-exec",
    "scan-build",
    "sccache",
    "schroot",
    "script",
    "setarch",
    "setlock",
    "setpriv",
    "setuidgid",
    "sg",
    "singularity",
    "slogin",
    "softlimit",
    "sotruss",
    "srun",
    "ssh",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-run",
    "taskset",
    "tini",
    "toolbox",
    "torsocks",
    "toybox",
    "tsh",
    "uclampset",
    "uftrace",
    "uname26",
    "unbuffer",
    "unshare",
    "urxvt",
    "valgrind",
    "valgrind.bin",
    "watch",
    "watchexec",
    "wsl",
    "x-terminal-emulator",
    "x86_64",
    "xfce4-terminal",
    "xterm",
    "xvfb-run",
];

/// Whether a command of this name runs others and changes what that means. The system's loader is
/// one: `ld-linux-x86-64.so.2 /usr/bin/git push`.
pub(super) fn is_launcher(name: &str) -> bool {
    let family = name.split_once('-').map_or(name, |(family, _)| family);
    LAUNCHERS.contains(&name)
        || matches!(family, "busybox" | "not" | "qemu" | "toybox" | "valgrind")
        || name == "ld.so"
        || name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
}

/// Runs tools of a project, also others, where one of its verbs says so; without verbs always.
pub(super) struct Runner {
    name: &'static str,
    pub(super) verbs: &'static [&'static str],
    /// Words of its own before the command.
    pub(super) own: usize,
}

const RUNNERS: &[Runner] = &[
    runner("asdf", &["exec"], 0),
    runner("aws-vault", &["exec"], 1),
    runner("bun", &["exec", "run", "x"], 0),
    runner("bundle", &["exec"], 0),
    runner("bunx", &[], 0),
    runner("chamber", &["exec"], 1),
    runner("conda", &["run"], 0),
    runner("corepack", &[], 0),
    runner("direnv", &["exec"], 1),
    runner("doppler", &["run"], 0),
    runner("dotenv", &[], 0),
    runner("fnm", &["exec"], 0),
    runner("foreman", &["run"], 0),
    runner("hatch", &["run"], 0),
    runner("honcho", &["run"], 0),
    runner("mamba", &["run"], 0),
    runner("micromamba", &["run"], 0),
    runner("mise", &["exec", "x"], 0),
    // `npm` takes the beginnings of its verbs as well.
    runner("npm", &["ex", "exe", "exec", "x"], 0),
    runner("npx", &[], 0),
    runner("nvm", &["exec", "run"], 1),
    runner("op", &["run"], 0),
    runner("pdm", &["run"], 0),
    runner("pipenv", &["run"], 0),
    runner("pipx", &["run"], 0),
    runner("pixi", &["exec", "run"], 0),
    runner("pnpm", &["dlx", "exec"], 0),
    runner("pnpx", &[], 0),
    runner("poetry", &["run"], 0),
    runner("pyenv", &["exec"], 0),
    runner("rbenv", &["exec"], 0),
    runner("rustup", &["run"], 1),
    runner("rye", &["run"], 0),
    runner("uv", &["run"], 0),
    runner("uvx", &[], 0),
    runner("volta", &["run"], 0),
    runner("yarn", &["dlx", "exec"], 0),
    runner("yarnpkg", &["dlx", "exec"], 0),
];

const fn runner(name: &'static str, verbs: &'static [&'static str], own: usize) -> Runner {
    Runner { name, verbs, own }
}

pub(super) fn runner_of(name: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|runner| runner.name == name)
}

/// Options of these that take no value; of another the word behind may be one.
pub(super) const SWITCHES: &[&str] = &[
    "-q",
    "-y",
    "--all-extras",
    "--frozen",
    "--isolated",
    "--locked",
    "--no-install",
    "--no-project",
    "--no-sync",
    "--offline",
    "--quiet",
    "--silent",
    "--yes",
];

/// Launchers that run nothing where they are not told what, or not here.
const IDLE: &[&str] = &[
    "docker",
    "fd",
    "fdfind",
    "jobs",
    "kubectl",
    "pipesz",
    "podman",
    "systemd-cat",
];

/// Whether this is a launcher that may have been left without a command: then it starts a shell,
/// which runs what it reads.
pub(super) fn may_start_shell(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::known).map(base_name);
    let Some(name) = name.filter(|name| is_launcher(name) && !IDLE.contains(name)) else {
        return false;
    };
    let own = match name {
        // Where a command stands among their words says nothing about what reads.
        "apptainer" | "capsh" | "distrobox" | "machinectl" | "newgrp" | "runuser" | "script"
        | "singularity" | "su" | "toolbox" => return true,
        "autossh" | "chroot" | "faketime" | "schroot" | "setarch" | "sg" | "slogin" | "ssh"
        | "tsh" => 1,
        _ => 0,
    };
    operands(words, &[]).nth(own).is_none()
}

/// Where words stand that are surely no options and no values of one, unless of these.
pub(super) fn operands(words: &[Word], switches: &[&str]) -> impl Iterator<Item = usize> {
    let is_taken = move |index: usize| index > 1 && takes_next(words[index - 1].shown(), switches);
    let is_last = |index: &usize| words[*index].known() == Some("--") && !is_taken(*index);
    let last = (1..words.len()).find(is_last);
    let is_operand = move |index: &usize| {
        let Some(text) = words[*index].known() else {
            return false;
        };
        if last.is_some_and(|last| *index > last) {
            return true;
        }
        // Some options that mostly take no value take these.
        let may_be_value = text.is_empty() || matches!(text, "true" | "false");
        !is_taken(*index) && !may_be_value && !text.starts_with('-') && assigned(text).is_none()
    };
    (1..words.len()).filter(is_operand)
}

fn takes_next(option: &str, switches: &[&str]) -> bool {
    option.starts_with('-') && !option.contains('=') && !switches.contains(&option)
}
