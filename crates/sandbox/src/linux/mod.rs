//! How Linux holds a wall.
//!
//! [`plan`] works out what a room shall look like; [`launch`] starts its [`holder`], which builds
//! the [`root`] and forks an [`init`] for each command; `init` puts up [`landlock`] and the
//! seccomp [`filter`] and becomes the command. From outside, [`supervise`] watches over a command:
//! it hears through [`notify`] what the wall stopped and keeps the [`limits`]. [`scan`] finds what
//! is protected in the workspace.

mod bpf;
pub(crate) mod code;
mod filter;
mod gitconfig;
mod holder;
mod init;
mod landlock;
pub(crate) mod launch;
mod layers;
pub(crate) mod limits;
pub(crate) mod message;
pub(crate) mod notify;
mod places;
pub(crate) mod plan;
pub(crate) mod probe;
mod root;
mod scan;
pub(crate) mod supervise;
mod sweep;
pub(crate) mod sys;
mod toolchains;
pub(crate) mod widen;
pub(crate) mod wire;
pub(crate) mod workspace;
