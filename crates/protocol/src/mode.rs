//! How an action is held: by the kernel, or by trust.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an action runs. The order is that of freedom, so that the smaller of two is the ceiling.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Confined by the kernel: what stays inside the wall needs no question, what would cross it
    /// asks.
    Sandbox,
    /// Trusted: skills and rules decide alone, and what they leave open asks.
    Full,
}

impl Mode {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Full => "full",
        }
    }

    /// The mode of this name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "sandbox" => Some(Self::Sandbox),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
