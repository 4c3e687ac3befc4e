//! What a command leaves running is ended with it, however it tries to stay.

use crate::check::Seen;
use crate::scene::Scene;
use crate::scene::held::{LONG, processes, until};

checks! {
    a_child_left_behind_is_ended:
        Anyone, Without("root,pids"), Hold, |scene| left(scene, &["child", "15"]);
    a_daemon_that_cut_every_tie_is_ended:
        Anyone, Without("root,pids"), Hold, |scene| left(scene, &["daemon", "15"]);
    a_daemon_is_ended_when_time_is_up:
        Anyone, Without("root,pids"), Hold, timed_out;
    a_daemon_is_ended_with_a_killed_ward:
        Anyone, Without("root,pids"), Hold, ward_killed;
}

/// Ends what an attack without its layers left, by id, and tells whether there was any.
fn remains(scene: &Scene) -> Seen {
    let left = processes(&scene.mark());
    for process in &left {
        let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    Seen::escape_if(!left.is_empty())
}

fn left(scene: &Scene, words: &[&str]) -> Seen {
    scene.hold(&[], words).finish();
    remains(scene)
}

fn timed_out(scene: &Scene) -> Seen {
    let mark = scene.mark();
    let line = format!("./attack {mark} daemon 15; sleep 15");
    scene.run(&["--timeout", "300ms"], &["sh", "-c", &line]);
    remains(scene)
}

/// Nobody is left to wait for it then; the kernel ends it a moment later.
fn ward_killed(scene: &Scene) -> Seen {
    let mark = scene.mark();
    let waiting = scene.hold(&[], &["daemon", "15"]);
    let ward = ward_of(waiting.id());
    rustix::process::kill_process(ward, rustix::process::Signal::KILL).unwrap();
    drop(waiting);
    let gone = until(LONG / 10, || processes(&mark).is_empty());
    remains(scene);
    Seen::escape_if(gone.is_none())
}

/// `ward exec` replaces the programs that lead to it, so it has their pid.
fn ward_of(started: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(started as i32).unwrap()
}
