//! The sub-commands: one file each, with its arguments and what it does.

pub(crate) mod aside;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod exec;
mod exec_report;
pub(crate) mod gate;
pub(crate) mod policy;
mod policy_files;
pub(crate) mod roles;
pub(crate) mod runtime;
pub(crate) mod serve;
pub(crate) mod trust;
