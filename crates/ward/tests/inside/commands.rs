//! Plain commands: pipelines, ownership, standard input, terminals, servers.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;

use crate::scene::{Held, Scene, User};
use crate::{in_a_room, said};

#[test]
fn pipelines_substitutions_and_here_documents_work() {
    in_a_room(|scene| {
        assert_eq!(
            said(scene, "seq 1 1000 | sort -rn | head -3 | paste -sd,"),
            "1000,999,998"
        );
        assert_eq!(
            said(
                scene,
                "x=$(printf 'a\\nb\\n' | wc -l); cat <<E\n$x lines\nE"
            ),
            "2 lines"
        );
        assert_eq!(
            said(scene, "mkfifo f; echo through >f & cat f; rm f"),
            "through"
        );
        assert_eq!(
            said(scene, "echo kept >$HOME/x; cp ~/x /tmp/y; cat /tmp/y"),
            "kept"
        );
    });
}

#[test]
fn files_belong_to_the_user_who_made_them() {
    in_a_room(|scene| {
        let owner = scene.path("work").metadata().unwrap();
        assert_eq!(said(scene, "touch mine; id -u"), owner.uid().to_string());
        assert_eq!(said(scene, "id -g"), owner.gid().to_string());
        assert_eq!(
            said(scene, "stat -c %u:%g mine"),
            format!("{}:{}", owner.uid(), owner.gid())
        );
        let made = scene.path("work/mine").metadata().unwrap();
        assert_eq!((made.uid(), made.gid()), (owner.uid(), owner.gid()));
    });
}

#[test]
fn standard_input_reaches_the_command() {
    in_a_room(|scene| {
        let mut command = scene.command(&[], &["sh", "-c", "tr a-z A-Z"]);
        let mut ward = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        ward.stdin.take().unwrap().write_all(b"shout\n").unwrap();
        let output = ward.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"SHOUT\n");
    });
}

// As the current user alone: a pipe or a file of root's is not another user's to open again, with
// Ward or without.
#[test]
fn standard_streams_have_their_names_in_dev() {
    let scene = Scene::new(User::Current, Held::Room);
    let line = "echo out >/dev/stdout; echo err >/dev/stderr; exec 7>there; echo seven >/dev/fd/7";
    let output = scene.sh(line);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"out\n");
    // Ward has nothing to add: nothing was stopped.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "err\n");
    assert_eq!(scene.read("work/there"), "seven\n");
}

#[test]
fn standard_streams_have_their_names_in_dev_where_they_are_files_outside() {
    let scene = Scene::new(User::Current, Held::Room);
    let file = std::fs::File::create(scene.path("outside/log")).unwrap();
    let mut command = scene.command(&[], &["sh", "-c", "echo err >>/dev/stderr"]);
    let status = command.stderr(file).status().unwrap();
    assert!(status.success(), "{}", scene.read("outside/log"));
    assert_eq!(scene.read("outside/log"), "err\n");
}

#[test]
fn a_server_and_its_client_meet_in_one_room() {
    in_a_room(|scene| {
        scene.attack(&["loopback"]);
        assert_eq!(scene.read("work/loot"), "arrived");
    });
}

#[test]
fn a_program_at_a_terminal_has_it() {
    let scene = Scene::new(User::Current, Held::Room);
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize {
        ws_row: 33,
        ws_col: 77,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || -> OwnedFd {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        rustix::fs::open(name.as_str(), flags, rustix::fs::Mode::empty()).unwrap()
    };
    let ours = side();
    rustix::termios::tcsetwinsize(&ours, size).unwrap();
    let line = "test -t 0 && test -t 1 && stty size && echo typed into >/dev/tty && echo complained >/dev/stderr && read word && echo \"got $word\"";
    let inside = scene.command(&[], &["sh", "-c", line]);
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(inside.get_program())
        .args(inside.get_args())
        .current_dir(inside.get_current_dir().unwrap())
        .env_clear()
        .stdin(side())
        .stdout(side())
        .stderr(side());
    for (name, value) in inside.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let mut child = command.spawn().unwrap();
    // With ours closed, the terminal ends when the command has.
    drop((command, ours));
    let mut terminal = std::fs::File::from(master);
    terminal.write_all(b"hello\n").unwrap();
    let mut seen = Vec::new();
    let mut part = [0; 256];
    while !String::from_utf8_lossy(&seen).contains("got hello") {
        match terminal.read(&mut part) {
            Ok(length @ 1..) => seen.extend_from_slice(&part[..length]),
            Ok(0) | Err(_) => break,
        }
    }
    let seen = String::from_utf8_lossy(&seen).replace('\r', "");
    assert!(child.wait().unwrap().success(), "{seen}");
    for word in ["33 77", "typed into", "complained", "got hello"] {
        assert!(seen.contains(word), "{seen}");
    }
}
