//! For tests: leaves layers out, to show that a check would fail without them. In any other build
//! every layer is on and nothing is asked.

/// Whether a layer shall be put up.
#[cfg(not(feature = "test-layers-off"))]
pub(crate) fn on(_layer: &str) -> bool {
    true
}

/// Whether a layer shall be put up.
#[cfg(feature = "test-layers-off")]
pub(crate) fn on(layer: &str) -> bool {
    static OFF: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let off = OFF.get_or_init(|| std::env::var("WARD_TEST_LAYERS_OFF").unwrap_or_default());
    !off.split(',').any(|name| name == layer)
}
