//! Every chore: serve, test, bench.
#![forbid(unsafe_code)]

fn main() {}
