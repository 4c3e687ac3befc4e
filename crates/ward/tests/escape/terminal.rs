//! The terminal that a command shares with the person who started it.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use crate::check::Seen;
use crate::scene::Scene;

checks! {
    nothing_is_typed_into_the_terminal:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| typed(scene, "type");
    nothing_is_typed_into_the_terminal_by_a_number_with_another_bit:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| typed(scene, "type-high");
}

/// Runs the attack at a terminal of the test's own, then looks at what waits to be read there.
fn typed(scene: &Scene, how: &str) -> Seen {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let ours = side(&name);
    let inside = scene.command(&[], &["./attack", how, "escaped"]);
    // `setsid --ctty` gives the command a session whose terminal this is.
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(inside.get_program())
        .args(inside.get_args())
        .current_dir(inside.get_current_dir().unwrap())
        .env_clear()
        .stdin(Stdio::from(side(&name)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in inside.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("tried"),
        "{output:?}"
    );
    Seen::escape_if(rustix::io::ioctl_fionread(&ours).unwrap() > 0)
}

/// The side of a terminal that programs have.
fn side(name: &str) -> OwnedFd {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap()
}
