//! How a command is held: by the kernel, or by trust.

pub use protocol::Mode;

/// Whether the runtime can hold a wall at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It can: the local runtime server.
    Kernel,
    /// It cannot, so everything counts as [`Mode::Full`]: an editor's own terminal.
    Absent,
}
