//! For tests: leaves layers out, to show that a check would fail without them. In any other build
//! every layer is on and nothing is asked.

/// A layer that a test can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    /// The user namespace, and with it all that only a user namespace can have.
    User,
    Root,
    Network,
    Pids,
    Ipc,
    Landlock,
    Seccomp,
    Capabilities,
    Descriptors,
    Environment,
    Limits,
    Protection,
    Sweep,
}

/// Whether a layer shall be put up.
#[cfg(not(feature = "test-layers-off"))]
pub(crate) fn on(_layer: Off) -> bool {
    true
}

/// Whether a layer shall be put up: not where `WARD_TEST_LAYERS_OFF` names it.
#[cfg(feature = "test-layers-off")]
pub(crate) fn on(layer: Off) -> bool {
    static OFF: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let off = OFF.get_or_init(|| std::env::var("WARD_TEST_LAYERS_OFF").unwrap_or_default());
    let name = format!("{layer:?}");
    !off.split(',').any(|word| word.eq_ignore_ascii_case(&name))
}
