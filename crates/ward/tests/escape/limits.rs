//! How much a command may use: processes, memory, /tmp. Every attack here is bounded by itself, so
//! that it can be let through without harm.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use crate::check::Seen;
use crate::scene::held::{LONG, Waiting, until};
use crate::scene::{Held, Scene, User, is_root};

checks! {
    a_fork_bomb_is_bounded:
        Anyone, Without("limits"), Hold, forks;
    memory_of_one_process_is_bounded:
        Anyone, Without("limits"), Hold, memory;
    memory_over_a_tree_is_bounded:
        Anyone, Without("limits"), Hold, memory_tree;
    memory_in_files_without_a_name_is_bounded:
        Anyone, Without("limits"), Hold, memory_hidden;
    memory_that_was_let_go_of_is_bounded:
        Anyone, WithoutWhereAllowed("limits"), Hold, memory_let_go;
    a_full_tmp_is_bounded_and_private:
        Anyone, Without("root,landlock"),
        DoNotHold("what is temporary lies on the disk, and its size is not bounded"), full_tmp;
    endless_output_is_not_kept:
        Anyone, None("no layer: output goes straight to whoever reads it"), Hold, endless_output;
}

const MEGABYTE: u64 = 1 << 20;

/// 600 are tried and 128 allowed. To root the bound is that of the pid namespace, whose least is 301.
fn forks(scene: &Scene) -> Seen {
    let waiting = scene.hold(&["--pids", "128"], &["forks", "600"]);
    let most = if scene.user == User::Current && is_root() {
        301
    } else {
        128
    };
    let count = waiting.processes().len();
    // The host still answers.
    assert!(
        std::process::Command::new("true")
            .status()
            .unwrap()
            .success()
    );
    let mark = scene.mark();
    waiting.finish();
    assert_eq!(crate::scene::held::processes(&mark).len(), 0);
    Seen::escape_if(count > most)
}

/// Whether the attack still holds more than it may after it was given time to be ended.
fn outlives(waiting: &Waiting, held: impl Fn() -> u64, most: u64) -> Seen {
    let ended = until(Duration::from_secs(3), || {
        waiting.processes().is_empty() || held() <= most
    });
    Seen::escape_if(ended.is_none())
}

fn resident(waiting: &Waiting) -> u64 {
    let processes = waiting.processes();
    processes
        .iter()
        .map(|p| p.kilobytes("RssAnon:") << 10)
        .sum()
}

fn memory(scene: &Scene) -> Seen {
    let waiting = scene.hold(&["--memory", "64M"], &["memory", "200"]);
    outlives(&waiting, || resident(&waiting), 80 * MEGABYTE)
}

fn memory_tree(scene: &Scene) -> Seen {
    let waiting = scene.hold(&["--memory", "100M"], &["memory-tree", "6", "50"]);
    outlives(&waiting, || resident(&waiting), 120 * MEGABYTE)
}

/// Memory that no process has mapped counts for none of them.
fn memory_hidden(scene: &Scene) -> Seen {
    let waiting = scene.hold(&["--memory", "64M"], &["memory-hidden", "200"]);
    let held = || {
        let processes = waiting.processes();
        let files = processes.iter().flat_map(|p| {
            let fd = format!("/proc/{}/fd", p.pid);
            std::fs::read_dir(fd).into_iter().flatten().flatten()
        });
        let hidden = files.filter(|entry| {
            let link = std::fs::read_link(entry.path()).unwrap_or_default();
            link.to_string_lossy().starts_with("/memfd:hidden")
        });
        hidden
            .filter_map(|entry| entry.path().metadata().ok())
            .map(|metadata| metadata.blocks() * 512)
            .max()
            .unwrap_or(0)
    };
    outlives(&waiting, held, 80 * MEGABYTE)
}

/// A shared mapping without a name keeps its pages when the process lets go of them, and then they
/// count for nobody. Only root can look at such a mapping from outside.
fn memory_let_go(scene: &Scene) -> Seen {
    let waiting = scene.hold(&["--memory", "64M"], &["memory-let-go", "200"]);
    let held = || {
        let processes = waiting.processes();
        let maps = processes.iter().flat_map(|p| {
            let maps = format!("/proc/{}/map_files", p.pid);
            std::fs::read_dir(maps).into_iter().flatten().flatten()
        });
        let shared = maps.filter(|entry| {
            let link = std::fs::read_link(entry.path()).unwrap_or_default();
            link.to_string_lossy().starts_with("/dev/zero")
        });
        shared
            .filter_map(|entry| entry.path().metadata().ok())
            .map(|metadata| metadata.blocks() * 512)
            .max()
            .unwrap_or(0)
    };
    outlives(&waiting, held, 80 * MEGABYTE)
}

fn full_tmp(scene: &Scene) -> Seen {
    scene.file(
        "home/.config/ward/settings.toml",
        "[limits]\ntmp = \"32M\"\n",
    );
    let name = format!("{}-full", scene.name());
    let line = format!(
        "exec ./attack {} fill ${{TMPDIR:-/tmp}}/{name} 100",
        scene.mark()
    );
    let waiting = Waiting::start(scene.command(&[], &["sh", "-c", &line]), scene.mark());
    let temporary = match scene.held {
        Held::Walls => temporary(&waiting),
        Held::Room | Held::Without(_) | Held::Nothing => "/tmp".into(),
    };
    let size = |path: std::path::PathBuf| path.metadata().map_or(0, |m| m.blocks() * 512);
    let processes = waiting.processes();
    let inside = processes
        .iter()
        .map(|p| size(p.inside(&format!("{temporary}/{name}"))))
        .max();
    let on_host = std::path::Path::new("/tmp").join(name);
    let leaked = on_host.exists();
    drop(waiting);
    let _ = std::fs::remove_file(on_host);
    assert!(inside.is_some_and(|size| size > 0), "nothing was written");
    Seen::escape_if(leaked || inside.is_some_and(|size| size > 33 * MEGABYTE))
}

/// Where an attack in walls has what is temporary.
fn temporary(waiting: &Waiting) -> String {
    let environment = waiting.processes()[0].tell("environ");
    let variable = environment
        .split('\0')
        .find_map(|pair| pair.strip_prefix("TMPDIR="));
    variable.unwrap().to_owned()
}

fn endless_output(scene: &Scene) -> Seen {
    use std::io::Read as _;
    let mut command = scene.command(&[], &["./attack", "flood"]);
    let mut ward = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = ward.stdout.take().unwrap();
    let mut part = vec![0; 1 << 20];
    let mut read = 0;
    while read < 200 * MEGABYTE {
        read += output.read(&mut part).unwrap() as u64;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", ward.id())).unwrap();
    let most = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let most: u64 = most.split_whitespace().next().unwrap().parse().unwrap();
    drop(output);
    let ended = until(LONG, || matches!(ward.try_wait(), Ok(Some(_))));
    assert!(ended.is_some(), "it did not end with its reader");
    Seen::escape_if(most << 10 > 64 * MEGABYTE)
}
