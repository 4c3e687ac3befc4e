//! Which provider answers for a model's name.
//!
//! `claude-…`, `gemini-…`, `gpt-…` and `o3` say it themselves; `provider/model` says it outright;
//! `offline` is always there. Everything else is looked for among the endpoints of the settings and
//! on this machine.

mod local;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{Endpoint, HttpProvider, Offline, Provider, ProviderError, Retries, Timeouts, Wire};
pub use settings::{EndpointSettings, Key, Settings};

/// The variable that names the model where neither a role nor a request does.
const MODEL: &str = "WARD_MODEL";

/// A provider that Ward knows by name.
struct Known {
    name: &'static str,
    wire: Wire,
    key: &'static str,
    base: &'static str,
    /// Where it is, if nobody says otherwise.
    usual: Option<&'static str>,
    /// Which model, if nobody says which.
    model: Option<&'static str>,
    /// How the names of its models begin.
    models: &'static str,
}

const KNOWN: [Known; 4] = [
    Known {
        name: "anthropic",
        wire: Wire::Anthropic,
        key: "ANTHROPIC_API_KEY",
        base: "ANTHROPIC_BASE_URL",
        usual: Some("https://api.anthropic.com"),
        model: Some("claude-sonnet-4-5"),
        models: "claude-…",
    },
    Known {
        name: "openai",
        wire: Wire::Responses,
        key: "OPENAI_API_KEY",
        base: "OPENAI_BASE_URL",
        usual: Some("https://api.openai.com"),
        model: Some("gpt-5"),
        models: "gpt-…",
    },
    Known {
        name: "gemini",
        wire: Wire::Gemini,
        key: "GEMINI_API_KEY",
        base: "GEMINI_BASE_URL",
        usual: Some("https://generativelanguage.googleapis.com"),
        model: Some("gemini-2.5-pro"),
        models: "gemini-…",
    },
    Known {
        name: "chat",
        wire: Wire::Chat,
        key: "WARD_CHAT_API_KEY",
        base: "WARD_CHAT_BASE_URL",
        usual: None,
        model: None,
        models: "chat/…",
    },
];

/// The provider of a model, and the model's name there.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// Whom to ask.
    pub provider: Arc<dyn Provider>,
    /// What to ask for.
    pub model: String,
}

/// One provider, as people are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What stands before the slash.
    pub provider: String,
    /// Its language.
    pub wire: Wire,
    /// Its address, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Its models: by name where they are known, otherwise how their names begin.
    pub models: Vec<String>,
    /// Why it cannot be used, and what to do; nothing if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// One place to ask.
struct Place {
    wire: Wire,
    models: Vec<String>,
    /// Its key, also where nothing can be asked with it.
    key: Option<Key>,
    provider: Result<(Endpoint, Arc<HttpProvider>), ProviderError>,
}

impl Place {
    fn new(
        wire: Wire,
        models: Vec<String>,
        key: Option<Key>,
        endpoint: Result<Endpoint, ProviderError>,
    ) -> Self {
        let provider = endpoint.map(|endpoint| {
            let provider = Arc::new(HttpProvider::new(endpoint.clone(), wire));
            (endpoint, provider)
        });
        Self {
            wire,
            models,
            key,
            provider,
        }
    }
}

/// All that can be asked.
pub struct Registry {
    places: BTreeMap<String, Place>,
    /// On this machine; whether they are there is seen when they are needed.
    local: BTreeMap<String, Place>,
    model: String,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("places", &self.places.keys())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// What the settings and the environment offer. Nothing is asked, and nothing fails: what is
    /// wrong with an endpoint is told when it is needed, and by [`list`](Self::list).
    #[must_use]
    pub fn new(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Self {
        Self::with_local(settings, variable, &local::USUAL)
    }

    fn with_local(
        settings: &Settings,
        variable: impl Fn(&str) -> Option<String>,
        local: &[(&str, &str)],
    ) -> Self {
        let variable = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let mut places = BTreeMap::new();
        let mut usual = None;
        for known in &KNOWN {
            let written = settings
                .endpoints
                .get(known.name)
                .cloned()
                .unwrap_or_default();
            let place = known_place(known, written, &variable);
            if place.provider.is_ok() && usual.is_none() {
                usual = known.model;
            }
            places.insert(known.name.to_owned(), place);
        }
        for (name, written) in &settings.endpoints {
            if !places.contains_key(name) {
                places.insert(name.clone(), own_place(name, written, &variable));
            }
        }
        let local = local
            .iter()
            .filter(|(name, _)| !places.contains_key(*name))
            .map(|(name, base)| {
                let place = place_of_key(name, &None, None);
                let endpoint = endpoint(name, Wire::Chat, base, None, &place);
                (
                    (*name).to_owned(),
                    Place::new(Wire::Chat, Vec::new(), None, endpoint),
                )
            });
        let local = local.collect();
        Self {
            places,
            local,
            model: variable(MODEL)
                .or_else(|| settings.model.clone())
                .or_else(|| usual.map(str::to_owned))
                .unwrap_or_else(|| Offline::NAME.to_owned()),
        }
    }

    /// The model where neither a role nor a request names one: the one in WARD_MODEL or of the
    /// settings, or one of the first provider that has a key, or `offline`.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.model
    }

    /// The keys of all providers, for whoever has to keep them out of something.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.places.values().filter_map(|place| place.key.as_ref());
        keys.map(Key::expose)
    }

    /// Who answers for this model.
    ///
    /// # Errors
    /// [`ProviderError::MissingKey`] with the variable to set, [`ProviderError::UnknownModel`] with
    /// what could be asked for, [`ProviderError::BadEndpoint`]. No model was asked anything.
    pub async fn resolve(&self, model: &str) -> Result<Resolved, ProviderError> {
        let model = model.trim();
        if model == Offline::NAME {
            return Ok(Resolved {
                provider: Arc::new(Offline),
                model: model.to_owned(),
            });
        }
        if let Some((name, model)) = model.split_once('/')
            && let Some(place) = self.places.get(name).or_else(|| self.local.get(name))
        {
            return take(place, model);
        }
        if let Some(name) = by_its_name(model) {
            return match self.places.get(name) {
                Some(place) => take(place, model),
                None => Err(self.unknown(model)),
            };
        }
        let listed = |place: &&Place| place.models.iter().any(|listed| listed == model);
        if let Some(place) = self.places.values().find(listed) {
            return take(place, model);
        }
        for place in self.local.values() {
            if let Ok((endpoint, _)) = &place.provider
                && let Some(models) = local::models(endpoint).await
                && models.iter().any(|served| served == model)
            {
                return take(place, model);
            }
        }
        Err(self.unknown(model))
    }

    /// Everything that can be asked, and why the rest cannot. Only this machine is asked.
    pub async fn list(&self) -> Vec<Listing> {
        let mut list = vec![Listing {
            provider: Offline::NAME.to_owned(),
            wire: Wire::Offline,
            base_url: None,
            models: vec![Offline::NAME.to_owned()],
            unusable: None,
        }];
        for (name, place) in &self.places {
            list.push(Listing {
                provider: name.clone(),
                wire: place.wire,
                base_url: base_of(place),
                models: place.models.clone(),
                unusable: place.provider.as_ref().err().map(ToString::to_string),
            });
        }
        for (name, place) in &self.local {
            let found = match &place.provider {
                Ok((endpoint, _)) => local::models(endpoint).await,
                Err(_) => None,
            };
            let unusable = found.is_none().then(|| {
                let base = base_of(place).unwrap_or_default();
                format!("Nothing that serves models answers at {base}. Start it there, or set WARD_CHAT_BASE_URL.")
            });
            list.push(Listing {
                provider: name.clone(),
                wire: place.wire,
                base_url: base_of(place),
                models: found.unwrap_or_default(),
                unusable,
            });
        }
        list
    }

    fn unknown(&self, model: &str) -> ProviderError {
        let names: Vec<&str> = self
            .places
            .keys()
            .chain(self.local.keys())
            .map(String::as_str)
            .collect();
        ProviderError::UnknownModel {
            model: model.to_owned(),
            why: format!(
                "its name does not say whose it is. Write it as provider/model; the providers are {}. `offline` is always there.",
                names.join(", ")
            ),
        }
    }
}

fn base_of(place: &Place) -> Option<String> {
    place
        .provider
        .as_ref()
        .ok()
        .map(|(endpoint, _)| endpoint.base().to_owned())
}

fn take(place: &Place, model: &str) -> Result<Resolved, ProviderError> {
    let (_, provider) = place.provider.as_ref().map_err(Clone::clone)?;
    if model.is_empty() {
        return Err(ProviderError::UnknownModel {
            model: format!("{}/", provider.name()),
            why: "there is nothing behind the slash.".to_owned(),
        });
    }
    Ok(Resolved {
        provider: Arc::clone(provider) as Arc<dyn Provider>,
        model: model.to_owned(),
    })
}

/// Whose model this is, if its name says so.
fn by_its_name(model: &str) -> Option<&'static str> {
    let o = model
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if model.starts_with("claude-") {
        Some("anthropic")
    } else if model.starts_with("gemini-") {
        Some("gemini")
    } else if model.starts_with("gpt-") || o {
        Some("openai")
    } else {
        None
    }
}

fn known_place(
    known: &Known,
    written: EndpointSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Place {
    let key_variable = written.key_variable.as_deref().unwrap_or(known.key);
    let key = written
        .key
        .clone()
        .or_else(|| variable(key_variable).map(Key::from));
    let base = written
        .base_url
        .or_else(|| variable(known.base))
        .or_else(|| known.usual.map(str::to_owned));
    let made = match (base, &key) {
        (None, _) => Err(ProviderError::BadEndpoint {
            provider: known.name.to_owned(),
            why: format!("no address is set. Set {}.", known.base),
        }),
        (Some(_), None) if known.usual.is_some() => Err(ProviderError::MissingKey {
            provider: known.name.to_owned(),
            variable: key_variable.to_owned(),
        }),
        (Some(base), key) => {
            let place = place_of_key(known.name, &written.key, Some(key_variable));
            endpoint(known.name, known.wire, &base, key.as_ref(), &place)
        }
    };
    let models = match written.models.is_empty() {
        true => vec![known.models.to_owned()],
        false => written.models,
    };
    Place::new(known.wire, models, key, made)
}

fn own_place(
    name: &str,
    written: &EndpointSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Place {
    let wire = written.wire.unwrap_or(Wire::Chat);
    let named = written.key_variable.as_deref();
    let key = written
        .key
        .clone()
        .or_else(|| named.and_then(variable).map(Key::from));
    let bad = |why: String| ProviderError::BadEndpoint {
        provider: name.to_owned(),
        why,
    };
    let made = match (&written.base_url, &key, named) {
        (_, None, Some(named)) => Err(ProviderError::MissingKey {
            provider: name.to_owned(),
            variable: named.to_owned(),
        }),
        _ if wire == Wire::Offline || name == Offline::NAME => Err(bad(
            "`offline` needs no endpoint; choose another name and wire.".to_owned(),
        )),
        (None, ..) => Err(bad(format!(
            "no address is set. Set `base_url` in [providers.{name}] of the settings."
        ))),
        (Some(base), key, named) => {
            let place = place_of_key(name, &written.key, named);
            endpoint(name, wire, base, key.as_ref(), &place)
        }
    };
    Place::new(wire, written.models.clone(), key, made)
}

/// Where to look when a key is not taken: what is written goes before what is in a variable.
fn place_of_key(name: &str, written: &Option<Key>, variable: Option<&str>) -> String {
    match (written, variable) {
        (None, Some(variable)) => variable.to_owned(),
        (Some(_), _) | (None, None) => format!("`key` in [providers.{name}] of the settings"),
    }
}

fn endpoint(
    name: &str,
    wire: Wire,
    base: &str,
    key: Option<&Key>,
    place: &str,
) -> Result<Endpoint, ProviderError> {
    let base = versioned(wire, base);
    Endpoint::new(
        name,
        &base,
        key.map(Key::expose),
        place,
        Timeouts::default(),
        Retries::default(),
    )
}

/// The address with its version, which people write or leave out as each maker's own tools do.
fn versioned(wire: Wire, base: &str) -> String {
    let base = base.trim_end_matches('/');
    let bare = Url::parse(base).is_ok_and(|url| url.path() == "/");
    let ends = |versions: &[&str]| versions.iter().any(|version| base.ends_with(version));
    match wire {
        Wire::Anthropic if !ends(&["/v1"]) => format!("{base}/v1"),
        Wire::Gemini if !ends(&["/v1", "/v1beta", "/v1alpha"]) => format!("{base}/v1beta"),
        Wire::Responses | Wire::Chat if bare => format!("{base}/v1"),
        Wire::Anthropic | Wire::Gemini | Wire::Responses | Wire::Chat | Wire::Offline => {
            base.to_owned()
        }
    }
}
