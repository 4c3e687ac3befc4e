//! The time, as it is written down.

use std::time::{SystemTime, UNIX_EPOCH};

use store::Millis;

/// Now.
#[must_use]
pub fn now() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
