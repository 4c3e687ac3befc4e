//! What the settings say about providers.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::provider::Wire;

/// `[providers]` of the settings.
///
/// ```toml
/// [providers]
/// model = "claude-sonnet-4-5"        # where neither role nor request names one
///
/// [providers.anthropic]              # also gemini, openai, chat
/// key = "…"                          # or ANTHROPIC_API_KEY
/// base_url = "https://…"             # or ANTHROPIC_BASE_URL
///
/// [providers.work]                   # an endpoint of one's own: `work/some-model`
/// wire = "chat"                      # or anthropic, responses, gemini
/// base_url = "https://…/v1"
/// key_variable = "WORK_KEY"
/// models = ["some-model"]            # may then be named without `work/`
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Settings {
    /// The model where nothing else names one.
    #[serde(default)]
    pub model: Option<String>,
    /// Endpoints by name.
    #[serde(default, flatten)]
    pub endpoints: BTreeMap<String, EndpointSettings>,
}

/// One endpoint of the settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointSettings {
    /// Its language; `chat` where nothing is said, and fixed for the providers Ward knows by name.
    pub wire: Option<Wire>,
    /// Its address.
    pub base_url: Option<String>,
    /// Its key.
    pub key: Option<Key>,
    /// The variable that has its key.
    pub key_variable: Option<String>,
    /// What it has, to be named without the endpoint.
    pub models: Vec<String>,
}

/// A key. Nothing shows it.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// The key itself, for the header it belongs into.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}
