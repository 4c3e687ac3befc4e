//! New namespaces, mounts and roots: what the room is built of is not the command's to build with.

use std::collections::BTreeSet;

use crate::check::Seen;
use crate::scene::held::Waiting;
use crate::scene::{SECRET, Scene, holds};

checks! {
    no_user_namespace_by_unshare:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| namespace(scene, "unshare");
    no_user_namespace_by_clone:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| namespace(scene, "clone");
    no_user_namespace_by_clone3:
        Anyone, WithoutWhereAllowed("seccomp"), Hold, |scene| namespace(scene, "clone3");
    no_namespace_of_another_process_is_joined:
        Root, WithoutWhereAllowed("seccomp,capabilities,landlock,root,pids"), Hold, join;
    nothing_is_mounted:
        Root, WithoutWhereAllowed("seccomp,capabilities,landlock"), Hold, |scene| mount(scene, "mount");
    nothing_is_mounted_by_the_newer_calls:
        Root, WithoutWhereAllowed("seccomp,capabilities,landlock"), Hold, |scene| mount(scene, "mount-new");
    the_root_is_not_changed:
        Root, WithoutWhereAllowed("seccomp,capabilities,landlock"), Hold, chroot;
    a_file_is_not_opened_by_its_number:
        Root, None("the kernel gives it to nobody in a user namespace, so a room never meets it"), Hold, handle;
}

/// The attack's processes do not all have the same namespace.
fn several(waiting: &Waiting, kind: &str) -> bool {
    let links = waiting.processes();
    let links: BTreeSet<String> = links
        .iter()
        .map(|p| p.link(&format!("ns/{kind}")))
        .collect();
    links.len() > 1
}

fn namespace(scene: &Scene, how: &str) -> Seen {
    Seen::escape_if(several(&scene.hold(&[], &[how]), "user"))
}

/// The host's own network namespace, through a process that is in it.
fn join(scene: &Scene) -> Seen {
    let path = format!("/proc/{}/ns/ipc", std::process::id());
    Seen::escape_if(several(&scene.hold(&[], &["setns", &path]), "ipc"))
}

fn mount(scene: &Scene, how: &str) -> Seen {
    scene.folder("work/there");
    let name = scene.mark();
    let waiting = scene.hold(&[], &[how, &name, &scene.word("work/there")]);
    let processes = waiting.processes();
    Seen::escape_if(
        processes
            .iter()
            .any(|p| p.tell("mountinfo").contains("work/there")),
    )
}

fn chroot(scene: &Scene) -> Seen {
    let waiting = scene.hold(&[], &["chroot", &scene.word("work")]);
    let processes = waiting.processes();
    Seen::escape_if(
        processes
            .iter()
            .any(|p| p.link("root") == scene.word("work")),
    )
}

fn handle(scene: &Scene) -> Seen {
    scene.attack(&["handle", &scene.word("outside/secret")]);
    Seen::escape_if(holds(scene.path("work/loot"), SECRET))
}
