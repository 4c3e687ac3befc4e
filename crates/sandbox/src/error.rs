//! What can go wrong when a room is opened or a command is started.

/// Why a command was not run. Nothing of it has run when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A layer could not be put up; the sandbox fails closed.
    #[error(
        "The sandbox layer `{layer}` could not be set up: {why}. Nothing was run; `ward doctor` shows what this machine offers."
    )]
    Layer {
        /// Which one.
        layer: &'static str,
        /// The system's words.
        why: String,
    },
    /// The folder cannot be a workspace.
    #[error("{0}")]
    Workspace(String),
    /// The program could not be started.
    #[error("`{program}` could not be started: {why}.")]
    Exec {
        /// The program.
        program: String,
        /// The system's words.
        why: String,
        /// Whether no such program was found.
        not_found: bool,
    },
    /// The command cannot be described to the kernel.
    #[error("{0}")]
    Command(String),
    /// The room is gone.
    #[error("The room has closed{0}.")]
    Closed(String),
}
