//! What held an action, and what was stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How strongly a command is held; ordered from the weakest to the strongest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Not held at all.
    None,
    /// No namespaces: Landlock, seccomp, no new privileges, limits.
    Walls,
    /// Everything: its own root, namespaces, Landlock, seccomp, limits.
    Room,
}

impl Tier {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Walls => "walls",
            Self::Room => "room",
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the sandbox can enforce on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxStatus {
    /// The strongest tier that can be had.
    pub tier: Tier,
    /// The weakest tier that the settings allow.
    pub minimum: Tier,
    /// Every layer, in the order it is put up.
    pub layers: Vec<LayerStatus>,
}

/// One layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerStatus {
    /// Its name.
    pub name: String,
    /// Whether it can be put up here.
    pub available: bool,
    /// What it holds, or why it is missing.
    pub detail: String,
    /// How to get it, where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What held one command, and what was stopped: part of its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxReport {
    /// The tier it ran in.
    pub tier: Tier,
    /// What the wall stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Stopped>,
    /// What it made that runs code by itself, and was set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
    /// Writes meant for the real home folder that landed in the session's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<String>,
    /// The limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

impl SandboxReport {
    /// A report with nothing to tell but the tier.
    #[must_use]
    pub fn quiet(tier: Tier) -> Self {
        Self {
            tier,
            stopped: Vec::new(),
            set_aside: Vec::new(),
            scratch: Vec::new(),
            limit: None,
        }
    }
}

/// Something the wall stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// The kind of access.
    pub access: StoppedAccess,
    /// The path, or `host:port`.
    pub target: String,
}

/// The kind of access that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedAccess {
    /// Making, changing, renaming or deleting at a path.
    Write,
    /// Reaching a host or an address.
    Connect,
}

/// Something that was moved out of the way because it would run by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// What to give `ward aside restore` to put it back.
    pub id: String,
    /// Where it was.
    pub path: String,
    /// Why: what would have run it.
    pub reason: String,
}

/// A limit that ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The memory of the whole tree.
    Memory,
    /// The time.
    Time,
}
