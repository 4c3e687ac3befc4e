//! Rooms from the outside: what the commands of a session share, what they do not, what a wall
//! stops and what widens it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test whose functions are not marked as such"
)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use protocol::sandbox::{Limit, Stopped, StoppedAccess, Tier};
use sandbox::aside::Aside;
use sandbox::{
    Command, End, Limits, Net, Outcome, Room, RoomOptions, SandboxError, Stdio, Wall,
    WidenedAccess, Widening,
};

fn main() -> std::process::ExitCode {
    sandbox::enter_if_holder();
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($name:ident),* $(,)?) => {
            $(trials.push(Trial::test(stringify!($name), || { $name(); Ok(()) }));)*
        };
    }
    trials!(
        commands_of_a_room_share_tmp_and_home_and_rooms_do_not,
        a_command_sees_its_own_processes_and_no_others,
        a_widened_path_can_be_read_by_that_command_alone,
        a_widened_path_can_be_written_where_that_was_said,
        what_was_made_to_mount_upon_takes_no_write_of_another_command,
        a_command_that_runs_beside_a_widened_one_is_told_what_was_stopped,
        what_a_command_put_where_a_widening_was_stays,
        two_that_are_widened_alike_have_it_each_to_its_own_end,
        a_widening_opens_one_protected_file,
        git_can_change_its_settings_where_that_was_granted,
        a_widening_follows_no_link,
        a_trusted_room_confines_nothing,
        many_rooms_open_at_once_in_the_strongest_tier,
        what_the_wall_stopped_is_told_by_path,
        what_is_written_to_the_home_folder_lands_in_scratch_and_is_told,
        a_hook_made_in_a_new_repository_is_set_aside_and_can_be_put_back,
        what_a_person_makes_between_commands_is_left_alone,
        what_a_command_that_runs_has_made_is_set_aside_each_time_it_makes_it,
        a_terminal_belongs_to_the_room,
        a_command_over_its_memory_is_ended_and_told,
        a_program_that_is_not_there_is_told_before_anything_runs,
        a_command_line_over_the_limit_is_refused_with_a_way_out,
        dropping_a_room_ends_what_runs_in_it,
        stopping_a_command_gives_it_time_to_clean_up,
    );
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A room with a workspace of its own.
struct Scene {
    room: Room,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        let mut limits = Limits {
            memory: 4 << 30,
            pids: 512,
            tmp: 64 << 20,
        };
        change(&mut limits);
        let room = Room::open(RoomOptions {
            wall: Wall {
                workspace,
                net: Net::None,
                limits,
            },
            state: folder.path().join("state"),
            own: Vec::new(),
            minimum: Tier::Room,
        });
        Self {
            room: room.unwrap(),
            folder,
        }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("workspace")
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("outside")
            .join(name)
    }

    fn command(&self, line: &str) -> Command {
        Command {
            argv: ["sh", "-c", line].map(Into::into).into(),
            cwd: self.workspace(),
            env: Vec::new(),
            stdio: Stdio::Piped { stdin: false },
            timeout: Some(Duration::from_secs(30)),
            widened: Vec::new(),
        }
    }

    fn run(&self, line: &str) -> (String, Outcome) {
        self.run_with(self.command(line))
    }

    fn run_with(&self, command: Command) -> (String, Outcome) {
        let mut running = self.room.spawn(command).unwrap();
        let (mut stdout, mut stderr) = (
            running.stdout.take().unwrap(),
            running.stderr.take().unwrap(),
        );
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        let outcome = running.wait();
        (output.join().unwrap() + &errors.join().unwrap(), outcome)
    }
}

fn commands_of_a_room_share_tmp_and_home_and_rooms_do_not() {
    let scene = Scene::new();
    let (_, outcome) = scene.run("echo one > /tmp/a; echo two > ~/b");
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(scene.run("cat /tmp/a ~/b").0, "one\ntwo\n");
    let other = Scene::new();
    assert_eq!(other.run("cat /tmp/a ~/b 2>/dev/null").0, "");
}

fn a_command_sees_its_own_processes_and_no_others() {
    let scene = Scene::new();
    let background = scene.room.spawn(scene.command("sleep 60")).unwrap();
    let (seen, _) = scene.run("cd /proc && echo [0-9]*");
    let pids: Vec<&str> = seen.split_whitespace().collect();
    assert_eq!(pids, ["1", "2"]);
    background.stopper().kill();
    assert_eq!(background.wait().end, End::Signalled(9));
}

fn a_widened_path_can_be_read_by_that_command_alone() {
    let scene = Scene::new();
    let notes = scene.outside("notes");
    std::fs::write(&notes, "for this one").unwrap();
    let mut command = scene.command(&format!("cat {0}; echo changed > {0}", notes.display()));
    command.widened = vec![Widening {
        path: notes.clone(),
        access: WidenedAccess::Read,
    }];
    let (seen, _) = scene.run_with(command);
    assert!(seen.starts_with("for this one"), "{seen}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "for this one");
    let (seen, _) = scene.run(&format!("cat {} 2>/dev/null", notes.display()));
    assert_eq!(seen, "");
}

fn a_widened_path_can_be_written_where_that_was_said() {
    let scene = Scene::new();
    let folder = scene.outside("shared");
    std::fs::create_dir(&folder).unwrap();
    let mut command = scene.command(&format!("echo new > {}/file", folder.display()));
    command.widened = vec![Widening {
        path: folder.clone(),
        access: WidenedAccess::Write,
    }];
    let (said, outcome) = scene.run_with(command);
    assert_eq!((said.as_str(), outcome.end), ("", End::Exited(0)));
    assert_eq!(
        std::fs::read_to_string(folder.join("file")).unwrap(),
        "new\n"
    );
}

fn written(path: &Path) -> Vec<Widening> {
    vec![Widening {
        path: path.to_owned(),
        access: WidenedAccess::Write,
    }]
}

fn stopped(paths: &[&PathBuf]) -> Vec<Stopped> {
    let stopped = |path: &&PathBuf| Stopped {
        access: StoppedAccess::Write,
        target: path.display().to_string(),
    };
    paths.iter().map(stopped).collect()
}

fn what_was_made_to_mount_upon_takes_no_write_of_another_command() {
    let scene = Scene::new();
    let (there, beside) = (scene.outside("sub/there"), scene.outside("sub/beside"));
    std::fs::create_dir(scene.outside("sub")).unwrap();
    std::fs::write(&there, "").unwrap();
    let look = |line: &str| scene.run(&format!("{line} {}", there.parent().unwrap().display()));
    let before = look("ls").0;
    for line in ["echo 1 >>", "exit 3; echo", "no-such-program"] {
        let mut command = scene.command(&format!("{line} {}", there.display()));
        command.widened = written(&there);
        scene.run_with(command);
        let (_, outcome) = scene.run(&format!(
            "echo 2 >> {}; echo 3 >> {}",
            there.display(),
            beside.display()
        ));
        assert_eq!(outcome.report.stopped, stopped(&[&there, &beside]));
        assert_eq!(look("ls").0, before);
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "1\n");
    assert!(!beside.exists());
}

fn a_command_that_runs_beside_a_widened_one_is_told_what_was_stopped() {
    let scene = Scene::new();
    let (there, beside) = (scene.outside("sub/there"), scene.outside("sub/beside"));
    std::fs::create_dir(scene.outside("sub")).unwrap();
    std::fs::write(&there, "").unwrap();
    let mut command = scene.command(&format!(
        "echo 1 >> {}; echo begun; sleep 100",
        there.display()
    ));
    command.widened = written(&there);
    let mut widened = scene.room.spawn(command).unwrap();
    let (mut output, stopper) = (widened.stdout.take().unwrap(), widened.stopper());
    let widened = std::thread::spawn(move || widened.wait());
    output.read_exact(&mut [0; 5]).unwrap();
    let (_, outcome) = scene.run(&format!(
        "echo 2 >> {}; echo 3 >> {}",
        there.display(),
        beside.display()
    ));
    assert_eq!(outcome.report.stopped, stopped(&[&there, &beside]));
    assert_ne!(outcome.end, End::Exited(0));
    stopper.kill();
    widened.join().unwrap();
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "1\n");
}

fn what_a_command_put_where_a_widening_was_stays() {
    let scene = Scene::new();
    let there = scene.outside("there");
    std::fs::write(&there, "").unwrap();
    let own = there.parent().unwrap().join("own");
    // Whoever insists can: it is their own /tmp.
    let mut command = scene.command(&format!(
        "chmod u+w {0}; echo mine > {1}",
        there.parent().unwrap().display(),
        own.display()
    ));
    command.widened = written(&there);
    scene.run_with(command);
    let (seen, _) = scene.run(&format!("cat {}", own.display()));
    assert_eq!(seen, "mine\n");
    assert!(!own.exists());
}

fn two_that_are_widened_alike_have_it_each_to_its_own_end() {
    let scene = Scene::new();
    let there = scene.outside("there");
    std::fs::write(&there, "").unwrap();
    let start = |line: &str| {
        let mut command = scene.command(line);
        command.widened = written(&there);
        command.stdio = Stdio::Piped { stdin: true };
        scene.room.spawn(command).unwrap()
    };
    let line = format!("read x; echo $x >> {}", there.display());
    let (mut one, mut other) = (start(&line), start(&line));
    one.stdin.take().unwrap().write_all(b"one\n").unwrap();
    assert_eq!(one.wait().end, End::Exited(0));
    // The next command comes after what was made for the first could have gone.
    scene.run("true");
    other.stdin.take().unwrap().write_all(b"other\n").unwrap();
    assert_eq!(other.wait().end, End::Exited(0));
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "one\nother\n");
}

fn a_widening_opens_one_protected_file() {
    let scene = Scene::new();
    let rules = scene.workspace().join("ward.toml");
    std::fs::write(&rules, "old").unwrap();
    let line = "printf new > ward.toml";
    assert_eq!(scene.run(line).1.end, End::Exited(2));
    let mut command = scene.command(line);
    command.widened = vec![Widening {
        path: rules.clone(),
        access: WidenedAccess::Write,
    }];
    assert_eq!(scene.run_with(command).1.end, End::Exited(0));
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), "new");
}

fn git_can_change_its_settings_where_that_was_granted() {
    let scene = Scene::new();
    let config = scene.workspace().join(".git/config");
    let line = "git remote add origin https://example.com/x.git";
    assert_eq!(scene.run("git init -q .").1.end, End::Exited(0));
    assert_ne!(scene.run(line).1.end, End::Exited(0));
    let mut command = scene.command(line);
    command.widened = vec![Widening {
        path: config.clone(),
        access: WidenedAccess::Write,
    }];
    let (_, outcome) = scene.run_with(command);
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.report.set_aside, []);
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("https://example.com/x.git"), "{text}");
    assert_ne!(
        scene.run("git remote add other https://x").1.end,
        End::Exited(0)
    );
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
}

fn a_widening_follows_no_link() {
    let scene = Scene::new();
    std::fs::create_dir(scene.outside("real")).unwrap();
    std::fs::write(scene.outside("real/file"), "secret").unwrap();
    std::os::unix::fs::symlink(scene.outside("real"), scene.outside("link")).unwrap();
    for path in ["link", "link/file"] {
        let mut command = scene.command("true");
        command.widened = vec![Widening {
            path: scene.outside(path),
            access: WidenedAccess::Read,
        }];
        let refused = scene.room.spawn(command).map(drop).unwrap_err();
        let layer = matches!(
            refused,
            SandboxError::Layer {
                layer: "widening",
                ..
            }
        );
        assert!(layer, "{refused:?}");
    }
}

fn a_trusted_room_confines_nothing() {
    let scene = Scene::new();
    let room = Room::open_trusted().unwrap();
    assert_eq!(room.tier(), Tier::None);
    let file = scene.outside("file");
    let line = format!(
        "echo x > {}; pwd; readlink /proc/self/ns/mnt",
        file.display()
    );
    let mut command = scene.command(&line);
    command.cwd = "/".into();
    let mut running = room.spawn(command).unwrap();
    let mut said = String::new();
    let mut stdout = running.stdout.take().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    let outcome = running.wait();
    let here = std::fs::read_link("/proc/self/ns/mnt").unwrap();
    assert_eq!(said, format!("/\n{}\n", here.display()));
    assert_eq!(
        (outcome.end, outcome.report.tier),
        (End::Exited(0), Tier::None)
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
}

/// The launcher of a room and its holder share a wire, and either may be the quicker one.
fn many_rooms_open_at_once_in_the_strongest_tier() {
    let opened: Vec<_> = (0..24)
        .map(|_| std::thread::spawn(Scene::new))
        .map(std::thread::JoinHandle::join)
        .collect();
    assert!(
        opened
            .iter()
            .all(|scene| scene.as_ref().unwrap().room.tier() == Tier::Room)
    );
}

fn what_the_wall_stopped_is_told_by_path() {
    let scene = Scene::new();
    let rules = scene.workspace().join("AGENTS.md");
    std::fs::write(&rules, "rules").unwrap();
    std::fs::create_dir(scene.workspace().join("sub")).unwrap();
    let beside = scene.outside("file");
    let line = format!(
        "echo x > AGENTS.md; cd sub; echo y > ../AGENTS.md; : > fine; mkdir -p /usr/lib; : > {}",
        beside.display()
    );
    let (_, outcome) = scene.run(&line);
    let stopped = [&rules, &beside].map(|path| Stopped {
        access: StoppedAccess::Write,
        target: path.display().to_string(),
    });
    assert_eq!(outcome.report.stopped, stopped);
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), "rules");
}

fn what_is_written_to_the_home_folder_lands_in_scratch_and_is_told() {
    let scene = Scene::new();
    let (home, outcome) = scene.run("echo $HOME; echo x > ~/ward-test-file");
    let path = Path::new(home.trim()).join("ward-test-file");
    assert_eq!(outcome.report.scratch, [path.display().to_string()]);
    assert!(!path.exists());
}

fn a_hook_made_in_a_new_repository_is_set_aside_and_can_be_put_back() {
    let scene = Scene::new();
    let (_, outcome) = scene.run(
        "mkdir -p new/.git/hooks; cd new/.git; : > HEAD; echo '#!/bin/sh' > hooks/post-commit; \
         chmod +x hooks/post-commit; printf '[core]\\n\\tfsmonitor = ./x\\n\\tbare = false\\n' > config",
    );
    let new = scene.workspace().join("new/.git");
    let paths: Vec<_> = outcome
        .report
        .set_aside
        .iter()
        .map(|aside| aside.path.clone())
        .collect();
    let expected = ["config", "hooks/post-commit"].map(|name| new.join(name).display().to_string());
    assert_eq!(paths, expected);
    assert!(!new.join("hooks/post-commit").exists());
    let config = || std::fs::read_to_string(new.join("config")).unwrap();
    assert_eq!(config(), "[core]\n\tbare = false\n");
    let aside = Aside::new(&scene.folder.path().join("state"));
    for one in &outcome.report.set_aside {
        aside.restore(&one.id).unwrap();
    }
    let hook = std::fs::read_to_string(new.join("hooks/post-commit")).unwrap();
    assert_eq!(hook, "#!/bin/sh\n");
    assert_eq!(config(), "[core]\n\tfsmonitor = ./x\n\tbare = false\n");
}

fn what_a_person_makes_between_commands_is_left_alone() {
    let scene = Scene::new();
    scene.run("true");
    let own = scene.workspace().join(".envrc");
    std::fs::write(&own, "export A=1").unwrap();
    let (_, outcome) = scene.run("true");
    assert_eq!(outcome.report.set_aside, []);
    assert_eq!(scene.run("echo x > .envrc").1.end, End::Exited(2));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "export A=1");
}

fn what_a_command_that_runs_has_made_is_set_aside_each_time_it_makes_it() {
    let scene = Scene::new();
    let line = "while read -r name; do echo x > $name; echo made; done";
    let mut command = scene.command(line);
    command.stdio = Stdio::Piped { stdin: true };
    let mut running = scene.room.spawn(command).unwrap();
    let (mut stdin, mut stdout) = (
        running.stdin.take().unwrap(),
        running.stdout.take().unwrap(),
    );
    let running = std::thread::spawn(move || running.wait());
    let mut make = |name: &str| {
        writeln!(stdin, "{name}").unwrap();
        let mut said = [0; 5];
        stdout.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"made\n");
    };
    let taken = || {
        let taken = scene.room.sweep().into_iter();
        taken.map(|taken| taken.path).collect::<Vec<_>>()
    };
    let path = |name: &str| scene.workspace().join(name).display().to_string();
    make("plain");
    assert_eq!(taken(), Vec::<String>::new());
    for _ in 0..2 {
        make("ward.toml");
        assert_eq!(taken(), [path("ward.toml")]);
    }
    make(".envrc");
    drop(stdin);
    let outcome = running.join().unwrap();
    let left = outcome.report.set_aside.into_iter().map(|taken| taken.path);
    assert_eq!(left.collect::<Vec<_>>(), [path(".envrc")]);
    assert!(scene.workspace().join("plain").exists());
}

fn a_terminal_belongs_to_the_room() {
    let scene = Scene::new();
    let mut command = scene.command("tty; stty size; read line; echo got $line");
    command.stdio = Stdio::Pty { cols: 91, rows: 17 };
    let mut running = scene.room.spawn(command).unwrap();
    let mut terminal = running.terminal.take().unwrap();
    terminal.write_all(b"hello\n").unwrap();
    let ended = std::thread::spawn(move || running.wait());
    let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
    // The end of a terminal reads as an error.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..count]);
    }
    let seen = String::from_utf8(seen).unwrap();
    for expected in ["/dev/pts/0", "17 91", "got hello"] {
        assert!(seen.contains(expected), "{expected} in {seen:?}");
    }
    assert_eq!(ended.join().unwrap().end, End::Exited(0));
}

fn a_command_over_its_memory_is_ended_and_told() {
    let scene = Scene::with(|limits| limits.memory = 64 << 20);
    // A string that doubles until it is far over the limit.
    let (said, outcome) = scene
        .run("a=xxxxxxxxxxxxxxxx; while [ ${#a} -lt 400000000 ]; do a=$a$a; done; echo survived");
    assert_eq!(said, "");
    assert_eq!(
        (outcome.end, outcome.report.limit),
        (End::Signalled(9), Some(Limit::Memory))
    );
}

fn a_program_that_is_not_there_is_told_before_anything_runs() {
    let scene = Scene::new();
    let mut command = scene.command("");
    command.argv = vec!["no-such-program".into()];
    let refused = scene.room.spawn(command).map(drop).unwrap_err();
    assert!(
        matches!(
            refused,
            SandboxError::Exec {
                not_found: true,
                ..
            }
        ),
        "{refused:?}"
    );
}

fn a_command_line_over_the_limit_is_refused_with_a_way_out() {
    let scene = Scene::new();
    let command = scene.command(&"x".repeat(1 << 20));
    let refused = scene.room.spawn(command).map(drop).unwrap_err();
    assert!(refused.to_string().contains("stdin"), "{refused}");
}

fn dropping_a_room_ends_what_runs_in_it() {
    let scene = Scene::new();
    let running = scene
        .room
        .spawn(scene.command("setsid sleep 300 & sleep 300"))
        .unwrap();
    drop(scene);
    assert_eq!(running.wait().end, End::Signalled(9));
}

fn stopping_a_command_gives_it_time_to_clean_up() {
    let scene = Scene::new();
    let line = "trap 'echo bye > said; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = scene.room.spawn(scene.command(line)).unwrap();
    running
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 6])
        .unwrap();
    let stopper = running.stopper();
    let ended = std::thread::spawn(move || running.wait());
    stopper.stop();
    assert_eq!(ended.join().unwrap().end, End::Exited(7));
    let said = std::fs::read_to_string(scene.workspace().join("said")).unwrap();
    assert_eq!(said, "bye\n");
}
