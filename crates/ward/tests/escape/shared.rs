//! What processes of one machine share by a number or a name.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use crate::check::Seen;
use crate::scene::held::Waiting;
use crate::scene::{SECRET, Scene, holds};

/// What walls cannot hold, in the words of docs/sandbox.md.
const SHARED: &str = "shared memory, semaphores and message queues are the machine's";

checks! {
    shared_memory_of_the_host_is_not_read:
        Anyone, Without("ipc"), DoNotHold(SHARED), |scene| read(scene, "segment", number(scene));
    a_message_queue_of_the_host_is_not_read:
        Anyone, Without("ipc"), DoNotHold(SHARED), |scene| read(scene, "queue", number(scene));
    a_posix_message_queue_of_the_host_is_not_read:
        Anyone, Without("ipc,landlock"), Hold, |scene| read(scene, "posix", format!("/{}", scene.name()));
    a_file_in_shared_memory_is_not_read:
        Anyone, Without("root,landlock"), Hold, shm_file;
    a_key_in_the_session_keyring_is_not_read:
        Anyone, Without("seccomp"), Hold, keyring;
}

/// A number that no other scene has, in all likelihood.
fn number(scene: &Scene) -> String {
    let mut hasher = DefaultHasher::new();
    scene.name().hash(&mut hasher);
    (hasher.finish() & 0x7fff_ffff).to_string()
}

fn looted(scene: &Scene) -> Seen {
    Seen::escape_if(holds(scene.path("work/loot"), SECRET))
}

/// A process of the same user outside keeps a secret; the command asks for it by its name.
fn read(scene: &Scene, kind: &str, name: String) -> Seen {
    let (keep, read) = (format!("keep-{kind}"), format!("read-{kind}"));
    let keeper = scene.on_host(&["./attack", "mark=keeper", &keep, &name, SECRET]);
    let keeper = Waiting::start(keeper, "mark=keeper".into());
    assert!(keeper.said.ends_with("tried\n"));
    scene.attack(&[&read, &name]);
    keeper.finish();
    looted(scene)
}

fn shm_file(scene: &Scene) -> Seen {
    let path = format!("/dev/shm/{}", scene.name());
    std::fs::write(&path, SECRET).unwrap();
    scene.sh(&format!("cat {path} >loot 2>/dev/null; true"));
    std::fs::remove_file(path).unwrap();
    looted(scene)
}

fn keyring(scene: &Scene) -> Seen {
    let inside = scene.command(&[], &["./attack", "read-key", "ward-scene"]);
    let words = std::iter::once(inside.get_program()).chain(inside.get_args());
    // Whoever starts Ward has the key in the keyring of their session.
    let mut command = std::process::Command::new("./attack");
    command
        .args(["keep-key", "ward-scene", SECRET])
        .args(words)
        .current_dir(inside.get_current_dir().unwrap())
        .env_clear();
    for (name, value) in inside.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    crate::scene::ran(command);
    looted(scene)
}
