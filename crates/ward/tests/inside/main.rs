//! What people and agents do all day just works inside: git, builds, tests, servers, terminals.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

#[path = "../scene/mod.rs"]
mod scene;

mod afterwards;
mod commands;
mod ending;
mod git;
mod toolchains;

use scene::{Held, Scene, User, skip};

/// Proves something in a room, for whoever runs the tests and for a user without rights.
fn in_a_room(prove: impl Fn(&Scene)) {
    for user in [User::Current, User::Unprivileged] {
        match user.missing() {
            None => prove(&Scene::new(user, Held::Room)),
            Some(why) => skip(why),
        }
    }
}

/// Runs a shell line; what it wrote, where it succeeded.
fn said(scene: &Scene, line: &str) -> String {
    let output = scene.sh(&format!("set -e; {line}"));
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
