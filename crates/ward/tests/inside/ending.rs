//! How a command ends, and that nothing is left when it does.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, kill_process};

use crate::in_a_room;
use crate::scene::held::{LONG, processes, until};
use crate::scene::{Held, Scene, User, WITHOUT_NAMESPACES, skip, tools};

#[test]
fn exit_codes_are_those_of_a_shell() {
    in_a_room(|scene| {
        scene.file("work/plain", "no program");
        let code = |flags: &[&str], argv: &[&str]| {
            scene.command(flags, argv).output().unwrap().status.code()
        };
        assert_eq!(code(&[], &["true"]), Some(0));
        assert_eq!(code(&[], &["false"]), Some(1));
        assert_eq!(code(&[], &["sh", "-c", "exit 42"]), Some(42));
        assert_eq!(code(&[], &["sh", "-c", "kill -SEGV $$"]), Some(128 + 11));
        assert_eq!(code(&[], &["no-such-program"]), Some(127));
        assert_eq!(code(&[], &["./plain"]), Some(126));
        assert_eq!(code(&["--workspace", "/"], &["true"]), Some(125));
    });
}

/// A signal to `ward exec` ends what it started, however deep it sits.
#[test]
fn a_signal_to_ward_leaves_no_process() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        in_a_room(|scene| {
            let waiting = scene.hold(&[], &["daemon", "15"]);
            assert!(processes(&scene.mark()).len() >= 2);
            kill_process(Pid::from_raw(waiting.id() as i32).unwrap(), signal).unwrap();
            // After a kill nobody waits for the end; the kernel brings it about.
            let gone = until(LONG, || processes(&scene.mark()).is_empty());
            assert!(gone.is_some(), "{signal:?}");
            let status = waiting.finish();
            if signal == Signal::KILL {
                assert_eq!(status.signal(), Some(9));
            } else {
                assert!(status.code().is_some_and(|code| code > 128), "{status:?}");
            }
        });
    }
}

#[test]
fn without_namespaces_nothing_runs_unless_the_settings_allow_walls() {
    if let Some(why) = tools::missing("unshare") {
        return skip(why);
    }
    let scene = Scene::new(User::Current, Held::Room);
    let ward = tools::ward();
    let argv = [
        WITHOUT_NAMESPACES,
        &[ward.to_str().unwrap(), "exec", "--", "touch", "made"],
    ]
    .concat();
    let output = scene.on_host(&argv).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{told}");
    assert!(
        told.contains("The sandbox layer `namespaces` could not be set up"),
        "{told}"
    );
    assert!(!scene.path("work/made").exists());

    let output = scene
        .on_host(&argv)
        .env("WARD_SANDBOX_MINIMUM", "walls")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("held by the tier `walls` only"), "{told}");
    assert!(scene.path("work/made").exists());
}

#[test]
fn commands_work_in_walls_too() {
    if let Some(why) = tools::missing("unshare") {
        return skip(why);
    }
    let scene = Scene::new(User::Current, Held::Walls);
    scene.file("home/.gitconfig", "[user]\n\tname = A B\n\temail = a@b.c\n");
    let line = "set -e; git init -q r; cd r; echo 1 >a; git add a; git commit -qm one; echo x >$TMPDIR/t; \
                cat $TMPDIR/t >$HOME/h; printf 'int main(void){return 0;}' >m.c; cc -o m m.c; ./m; exit 3";
    let output = scene.sh(line);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
