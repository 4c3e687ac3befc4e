//! Other processes: their memory, environment, descriptors and lives.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::check::Seen;
use crate::scene::held::until;
use crate::scene::{Guard, SECRET, Scene, holds};

/// Each of these keeps other processes away by itself: the user namespace, the pid namespace with
/// its own /proc, Landlock, seccomp, the lack of capabilities.
const EVERY_NAMESPACE: &str = "user,root,network,pids,ipc,landlock,seccomp,capabilities";

checks! {
    the_environment_of_another_process_is_not_read:
        Anyone, Without(EVERY_NAMESPACE), Hold, environ;
    the_command_line_of_another_process_is_not_read:
        Anyone, Without(EVERY_NAMESPACE),
        DoNotHold("other processes and their command lines are seen in /proc"), command_line;
    the_memory_of_another_process_is_not_read_through_proc:
        Anyone, Without(EVERY_NAMESPACE), Hold, |scene| memory(scene, "memory-file");
    the_memory_of_another_process_is_not_read_by_a_call:
        Anyone, Without(EVERY_NAMESPACE), Hold, |scene| memory(scene, "memory-call");
    another_process_is_not_traced:
        Anyone, Without(EVERY_NAMESPACE), Hold, trace;
    a_descriptor_of_another_process_is_not_taken:
        Anyone, Without(EVERY_NAMESPACE), Hold, steal;
    another_process_is_not_killed:
        Anyone, Without(EVERY_NAMESPACE), Hold, |scene| kill(scene, "kill");
    another_process_is_not_killed_by_its_descriptor:
        Anyone, Without(EVERY_NAMESPACE), Hold, |scene| kill(scene, "kill-by-descriptor");
    ward_is_not_killed:
        Anyone, Without(EVERY_NAMESPACE), Hold, kill_ward;
    init_is_not_killed_or_stopped:
        Anyone, None("the kernel shields the first process of a pid namespace; without one it is the host's"),
        Unsaid("the first process is the host's, and the user's rights keep it"), kill_init;
}

/// A process of the same user outside, with a secret in its memory, environment and a descriptor.
struct Victim {
    guard: Guard,
    pid: String,
    address: String,
    length: String,
}

fn victim(scene: &Scene) -> Victim {
    let mut command = scene.on_host(&["./attack", "mark=victim", "victim", SECRET]);
    let mut child = command
        .env("THE_SECRET", SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (address, length) = line.trim().split_once(' ').unwrap();
    Victim {
        pid: child.id().to_string(),
        address: address.into(),
        length: length.into(),
        guard: Guard(child),
    }
}

impl Victim {
    fn runs(&mut self) -> bool {
        matches!(self.guard.0.try_wait(), Ok(None))
    }
}

fn looted(scene: &Scene) -> Seen {
    Seen::escape_if(holds(scene.path("work/loot"), SECRET))
}

fn environ(scene: &Scene) -> Seen {
    let victim = victim(scene);
    scene.attack(&["proc", &victim.pid, "environ"]);
    scene.sh("cat /proc/*/environ >>loot 2>/dev/null; true");
    looted(scene)
}

fn command_line(scene: &Scene) -> Seen {
    let victim = victim(scene);
    scene.attack(&["proc", &victim.pid, "cmdline"]);
    looted(scene)
}

fn memory(scene: &Scene, how: &str) -> Seen {
    let victim = victim(scene);
    scene.attack(&[how, &victim.pid, &victim.address, &victim.length]);
    looted(scene)
}

fn trace(scene: &Scene) -> Seen {
    let victim = victim(scene);
    let _waiting = scene.hold(&[], &["trace", &victim.pid]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", victim.pid)).unwrap();
    Seen::escape_if(!status.contains("TracerPid:\t0\n"))
}

fn steal(scene: &Scene) -> Seen {
    let secret = scene.path("outside/secret");
    let mut command = scene.on_host(&["sh", "-c", "echo ready; read end"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::open(secret).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let child = Guard(child);
    scene.attack(&["steal", &child.0.id().to_string(), "2"]);
    looted(scene)
}

fn kill(scene: &Scene, how: &str) -> Seen {
    let mut victim = victim(scene);
    scene.attack(&[how, &victim.pid, "9"]);
    let killed = until(scene.patience(), || !victim.runs());
    Seen::escape_if(killed.is_some())
}

fn kill_ward(scene: &Scene) -> Seen {
    // The command cannot know Ward's pid inside; the host tells it, to be fair.
    let line = "echo tried; read pid; kill -STOP $pid; kill -9 $pid; echo done; read end";
    let mut command = scene.command(&[], &["sh", "-c", line]);
    let mut ward = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(ward.stdout.take().unwrap());
    let mut text = String::new();
    said.read_line(&mut text).unwrap();
    let mut stdin = ward.stdin.take().unwrap();
    use std::io::Write as _;
    writeln!(stdin, "{}", ward.id()).unwrap();
    text.clear();
    said.read_line(&mut text).unwrap();
    let killed = until(scene.patience(), || matches!(ward.try_wait(), Ok(Some(_))));
    drop(stdin);
    drop(Guard(ward));
    Seen::escape_if(killed.is_some())
}

fn kill_init(scene: &Scene) -> Seen {
    let waiting = scene.hold(&[], &["kill-init"]);
    // Asked to end, init passes that on to its command, which ends itself. Killed, it would take
    // the command along without a word.
    let processes = waiting.processes().len();
    let status = waiting.finish();
    Seen::escape_if(processes == 0 && status.code() == Some(137))
}
