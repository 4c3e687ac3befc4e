//! Reads a unified diff: which files it is about, and what it does to each. Whoever decides about a
//! patch and whoever applies it have it from here, so that both mean the same files.
//!
//! Pure: no file is looked at.

#![forbid(unsafe_code)]

mod name;
mod parse;

pub use parse::{FilePatch, Hunk, Line, Operation, parse, text_of};
