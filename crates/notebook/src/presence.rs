//! Who is looking, and where: told to the others, and never kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::CellId;

/// Where somebody is in a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// Which of their windows, in its own words.
    pub client: String,
    /// Which cell they are at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
    /// Where in its source, in UTF-16 units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u32>,
    /// They went.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}
