//! Who may do what: roles, skills, modes, rules, grants and facts in, a [`Decision`] out.
//!
//! [`decide()`] is the whole of it, and `ward policy explain` prints the same answer the gate acts
//! on. Read in this order: [`touch`] (an action cut into the things it would touch), [`pattern`]
//! (what a rule or skill says), [`mod@decide`] (how the strictest voice wins), then
//! [`command`] (what a shell line would run).
//!
//! Invariants:
//! - Pure: no I/O, no clock, no async, no state. Files are read by the caller and come in as text;
//!   the time comes in as a value. It builds for wasm32.
//! - deny beats ask beats allow, for every single thing an action touches; the action gets the
//!   strictest of these answers. More rules, wrappers, redirections, commands or parents can only
//!   make it stricter.
//! - What is not known for sure is never allowed by a pattern that names something, and never
//!   escapes one that denies: both become a question ([`Fit::Maybe`]).
//! - Every decision names what made it, with file and line; every question, where a grant can
//!   answer it, the narrowest pattern that does.
//! - No input panics. Whatever cannot be read is a [`Mistake`] or makes a command opaque.
//!
//! Deliberately absent: approvals, the ledger, digests, where files are found. A rule about a
//! command says what a person expects of it; what a program really does once it runs is held by
//! the wall, not by this crate.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod command;
pub mod decide;
pub mod decision;
mod exact;
pub mod explain;
mod fit;
mod front_matter;
mod glob;
pub mod grant;
pub mod host;
pub mod mistake;
pub mod mode;
mod offer;
pub mod pattern;
pub mod place;
pub mod role;
pub mod roles;
pub mod rule;
mod rule_file;
pub mod skill;
mod tools;
pub mod touch;

pub use decide::{Asked, Authority, Verb, decide};
pub use decision::{Because, Decision, Verdict};
pub use grant::{Grant, Scope, Time};
pub use mistake::{Mistake, Weight};
pub use mode::{Confinement, Mode};
pub use pattern::{Fit, Pattern, Stance};
pub use place::{Place, Spot};
pub use role::{Role, RoleName};
pub use roles::Roles;
pub use rule::{Origin, Rule, Rules, Source};
pub use skill::SkillFile;
