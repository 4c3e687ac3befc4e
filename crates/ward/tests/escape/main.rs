//! Attempts to get out of the sandbox, each proved from the host's side: the file is not there, the
//! listener heard nothing, the process is gone. What the command itself says counts for nothing.
//!
//! Each line of a table names an attack, who could make it, the layers that cover it and what the
//! tier `walls` makes of it. It becomes four tests: it is held for whoever runs the tests, and for
//! a user without rights; without those layers it gets through, so that no check passes for
//! nothing; and `walls` holds it, or is known not to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

#[macro_use]
mod check;
#[path = "../scene/mod.rs"]
mod scene;

mod devices;
mod files;
mod kernel;
mod leftovers;
mod limits;
mod listeners;
mod namespaces;
mod network;
mod processes;
mod protected;
mod secrets;
mod shared;
mod sweep;
mod terminal;

use check::{Check, Walls};

const TABLES: &[&[&Check]] = &[
    secrets::CHECKS,
    files::CHECKS,
    protected::CHECKS,
    sweep::CHECKS,
    network::CHECKS,
    processes::CHECKS,
    shared::CHECKS,
    kernel::CHECKS,
    namespaces::CHECKS,
    devices::CHECKS,
    terminal::CHECKS,
    leftovers::CHECKS,
    limits::CHECKS,
];

#[test]
fn what_walls_do_not_hold_is_in_the_documentation() {
    // Tests run in their crate's folder.
    let page = std::fs::read_to_string("../../docs/sandbox.md").unwrap();
    let missing: Vec<&str> = TABLES
        .iter()
        .flat_map(|table| table.iter())
        .filter_map(|check| match check.walls {
            Walls::DoNotHold(words) => Some(words),
            Walls::Hold | Walls::Unsaid(_) => None,
        })
        .filter(|words| !page.contains(words))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
