//! Secrets: in the home folder, elsewhere, in the environment, in descriptors that were left open.

use std::process::Command;

use crate::check::Seen;
use crate::scene::{SECRET, Scene, holds, ran};

checks! {
    a_key_in_the_home_folder_is_not_read:
        Anyone, Without("root,landlock"), Hold, key_in_home;
    credentials_beside_a_toolchain_are_not_read:
        Anyone, Without("root,landlock"), Hold, credentials_beside_a_toolchain;
    a_file_elsewhere_is_not_read_by_any_path:
        Anyone, Without("root,landlock"), Hold, file_elsewhere;
    what_only_root_may_read_in_etc_is_not_read_by_root:
        Root, Without("root,landlock"), Unsaid("walls read all of /etc that the user may"), shadow;
    the_state_of_another_room_is_not_read:
        Anyone, Without("root,landlock"), Hold, another_rooms_state;
    the_environment_carries_no_secrets:
        Anyone, Without("environment"), Hold, environment;
    a_file_left_open_is_closed:
        Anyone, Without("descriptors"), Hold, file_left_open;
    a_folder_left_open_leads_nowhere:
        Anyone, Without("descriptors,landlock"), Hold, folder_left_open;
    a_folder_as_standard_input_leads_nowhere:
        Anyone, Without("landlock"), Hold, folder_as_standard_input;
    names_and_sizes_outside_are_not_seen:
        Anyone, Without("root"),
        DoNotHold("names, sizes and times of files outside can be asked for by path"), metadata;
}

fn looted(scene: &Scene) -> Seen {
    Seen::escape_if(holds(scene.path("work/loot"), SECRET))
}

fn key_in_home(scene: &Scene) -> Seen {
    scene.file("home/.ssh/id_ed25519", SECRET);
    scene.sh(&format!(
        "cat ~/.ssh/id_ed25519 {} /proc/self/root{} >>loot 2>/dev/null; true",
        scene.word("home/.ssh/id_ed25519"),
        scene.word("home/.ssh/id_ed25519"),
    ));
    looted(scene)
}

fn credentials_beside_a_toolchain(scene: &Scene) -> Seen {
    for name in [
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".npmrc",
        ".netrc",
        ".pypirc",
    ] {
        scene.file(&format!("home/{name}"), &format!("token = \"{SECRET}\""));
    }
    scene.file("home/.cargo/bin/tool", "");
    scene.sh(&format!(
        "cd {} && cat .cargo/c* .npmrc .netrc .pypirc >>{} 2>/dev/null; true",
        scene.word("home"),
        scene.word("work/loot"),
    ));
    looted(scene)
}

fn file_elsewhere(scene: &Scene) -> Seen {
    let secret = scene.word("outside/secret");
    scene.sh(&format!(
        "ln -s {secret} link; cp link loot; cat ../outside/secret /proc/$$/cwd/../outside/secret \
         /proc/1/root{secret} /proc/$PPID/root{secret} /dev/fd/../cwd/../outside/secret \
         >>loot 2>/dev/null; true"
    ));
    looted(scene)
}

fn shadow(scene: &Scene) -> Seen {
    scene.sh("cat /etc/shadow /etc/gshadow >loot 2>/dev/null; true");
    Seen::escape_if(scene.read("work/loot").contains("root:"))
}

fn another_rooms_state(scene: &Scene) -> Seen {
    let state = "home/.local/state/ward";
    scene.file(&format!("{state}/rooms/1-0/home/kept"), SECRET);
    scene.file(&format!("{state}/aside/1-0/content"), SECRET);
    let state = scene.word(state);
    scene.sh(&format!(
        "cat {state}/*/*/content {state}/*/*/home/kept >loot 2>/dev/null; true"
    ));
    looted(scene)
}

fn environment(scene: &Scene) -> Seen {
    let mut command = scene.command(&[], &["sh", "-c", "env >loot"]);
    for name in [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "WARD_TOKEN",
        "LD_PRELOAD_",
        "PATHS",
    ] {
        command.env(name, SECRET);
    }
    ran(command);
    looted(scene)
}

/// A command that is started by a shell which leaves descriptors open to it.
fn with_left_open(scene: &Scene, redirections: &str, argv: &[&str]) -> Command {
    let inner = scene.command(&[], argv);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("exec \"$@\" {redirections}"))
        .arg("sh")
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

fn file_left_open(scene: &Scene) -> Seen {
    let left = format!("7<{}", scene.word("outside/secret"));
    ran(with_left_open(
        scene,
        &left,
        &["./attack", "descriptor", "7"],
    ));
    looted(scene)
}

fn folder_left_open(scene: &Scene) -> Seen {
    let left = format!("7<{}", scene.word("outside"));
    ran(with_left_open(
        scene,
        &left,
        &["./attack", "below", "7", "secret"],
    ));
    looted(scene)
}

fn folder_as_standard_input(scene: &Scene) -> Seen {
    let left = format!("<{}", scene.word("outside"));
    ran(with_left_open(
        scene,
        &left,
        &["./attack", "below", "0", "secret"],
    ));
    looted(scene)
}

fn metadata(scene: &Scene) -> Seen {
    scene.sh(&format!(
        "stat -c %s {} >loot 2>/dev/null; true",
        scene.word("outside/secret")
    ));
    Seen::escape_if(scene.read("work/loot").trim() == SECRET.len().to_string())
}
