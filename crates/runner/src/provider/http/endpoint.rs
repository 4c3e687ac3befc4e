//! Who is asked: an address, a key, and how long to wait.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;

use super::Retries;
use crate::provider::ProviderError;

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the first byte of an answer. A model may think, or load, before it says anything.
    pub first_byte: Duration,
    /// For more of it.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            between_bytes: Duration::from_secs(120),
        }
    }
}

/// An address that can be asked, with its key.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    base: String,
    address: String,
    key: Option<String>,
    place: String,
    timeouts: Timeouts,
    retries: Retries,
    /// Made when it is first needed: it reads the machine's certificates.
    client: OnceLock<reqwest::Client>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.inner.name)
            .field("base", &self.inner.base)
            .field("key", &self.inner.key.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint called `name` at `base`, such as `https://api.openai.com/v1`. `place` is where
    /// people are told to look when the key is not taken: a variable, or what the settings say.
    ///
    /// # Errors
    /// [`ProviderError::BadEndpoint`] if the address is none, or not of HTTP, or carries a key that
    /// belongs elsewhere, or the key cannot be sent.
    pub fn new(
        name: &str,
        base: &str,
        key: Option<&str>,
        place: &str,
        timeouts: Timeouts,
        retries: Retries,
    ) -> Result<Self, ProviderError> {
        let bad = |why: String| ProviderError::BadEndpoint {
            provider: name.to_owned(),
            why,
        };
        let url = Url::parse(base)
            .map_err(|error| bad(format!("`{base}` is not an address ({error}).")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!(
                "`{base}` has to begin with http:// or https://."
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad(
                "its address carries a password; keys have a setting of their own.".to_owned(),
            ));
        }
        let Some(host) = url.host_str() else {
            return Err(bad(format!("`{base}` names no host.")));
        };
        if key.is_some_and(|key| !key.chars().all(|c| c.is_ascii_graphic())) {
            return Err(bad(format!(
                "the key has characters that no key has. Check {place}."
            )));
        }
        let address = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                base: base.trim_end_matches('/').to_owned(),
                address,
                key: key.map(str::to_owned),
                place: place.to_owned(),
                timeouts,
                retries,
                client: OnceLock::new(),
            }),
        })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Where it is, without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.inner.base
    }

    pub(in crate::provider) fn key(&self) -> Option<&str> {
        self.inner.key.as_deref()
    }

    /// `Authorization`, where there is a key.
    pub(in crate::provider) fn bearer(&self) -> Option<(&'static str, String)> {
        let key = self.key()?;
        Some(("authorization", format!("Bearer {key}")))
    }

    pub(super) fn address(&self) -> &str {
        &self.inner.address
    }

    /// Where its key is.
    pub(super) fn place(&self) -> &str {
        &self.inner.place
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.inner.timeouts
    }

    pub(super) fn retries(&self) -> Retries {
        self.inner.retries
    }

    pub(in crate::provider) fn client(&self) -> Result<reqwest::Client, ProviderError> {
        if let Some(client) = self.inner.client.get() {
            return Ok(client.clone());
        }
        let client = client(&self.inner.base, self.inner.timeouts.connect).map_err(|error| {
            ProviderError::BadEndpoint {
                provider: self.name().to_owned(),
                why: format!("{}.", super::events::root(&error)),
            }
        })?;
        Ok(self.inner.client.get_or_init(|| client).clone())
    }
}

fn client(base: &str, connect: Duration) -> Result<reqwest::Client, reqwest::Error> {
    // Whoever came first has chosen already, and that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(concat!("ward/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        // A key goes where it was meant to go, and nowhere else.
        .redirect(Policy::none())
        .retry(reqwest::retry::never());
    let base = Url::parse(base).ok();
    let host = base.as_ref().and_then(Url::host_str).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    // What is on this machine is not looked for behind a proxy.
    let client = match loopback {
        true => client.no_proxy(),
        false => client,
    };
    client.build()
}
