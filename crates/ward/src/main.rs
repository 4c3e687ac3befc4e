//! The binary: command line and composition, nothing else.
#![forbid(unsafe_code)]

fn main() {}
