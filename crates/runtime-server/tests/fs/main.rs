//! The file actions from the outside: what a client asks, what it is answered, what is on disk.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in what it shares with others"
)]

mod edit;
mod find;
mod moves;
mod params;
mod patch;
mod properties;
mod protected;
mod race;
mod read;
mod refusals;
mod support;
mod write;
