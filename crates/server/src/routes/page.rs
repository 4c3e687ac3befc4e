//! `GET /`: the chat page for a browser that has signed in, and what is there as text for `curl`.
//! Who has not signed in is told how to, on a plain page; so is everybody where the chat page was
//! not built in. `GET /notebook` is the same page, in a document that may also run what is compiled
//! for it and have frames.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use protocol::ErrorKind;
use protocol::sandbox::{LayerStatus, Tier};
use sha2::Digest as _;
use store::Store;

use crate::About;
use crate::app::App;
use crate::assets::PAGE as PAGE_BUILT;
use crate::auth::Caller;
use crate::failure::HttpFailure;

const PAGE: &str = include_str!("page.html");
const PAGE_SIGNED_IN: &str = include_str!("page_signed_in.html");
const PAGE_SIGNED_OUT: &str = include_str!("page_signed_out.html");
const TEXT: &str = include_str!("page.txt");
const TEXT_SIGNED_IN: &str = include_str!("page_signed_in.txt");
const TEXT_SIGNED_OUT: &str = include_str!("page_signed_out.txt");
const STYLE: &str = include_str!("page.css");

/// The browser may use the page's own style sheet, known by its digest, and fetch nothing.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// What a document of the page may do beyond the others.
#[derive(Debug, Clone, Copy)]
enum May {
    /// Nothing: the chat.
    Plain,
    /// Run WebAssembly, and show frames of Ward's own: a notebook.
    Notebook,
}

pub(crate) async fn show<S: Store>(
    state: State<Arc<App<S>>>,
    caller: Result<Caller, HttpFailure>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    document(state, caller, headers, May::Plain).await
}

pub(crate) async fn notebook<S: Store>(
    state: State<Arc<App<S>>>,
    caller: Result<Caller, HttpFailure>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    document(state, caller, headers, May::Notebook).await
}

async fn document<S: Store>(
    State(app): State<Arc<App<S>>>,
    caller: Result<Caller, HttpFailure>,
    headers: HeaderMap,
    may: May,
) -> Result<Response, HttpFailure> {
    let html_asked = asks_for_html(&headers);
    if let (Ok(_), true, Some(template)) = (&caller, html_asked, PAGE_BUILT) {
        return chat(template, may);
    }
    let events = match caller {
        Ok(_) => Some(app.gate.store().count().await?),
        Err(_) => None,
    };
    let (kind, body) = if html_asked {
        ("text/html; charset=utf-8", html(&app.about, events))
    } else {
        ("text/plain; charset=utf-8", text(&app.about, events))
    };
    let policy = HeaderValue::from_str(&POLICY).ok();
    let mut response = (
        [
            (CONTENT_TYPE, kind),
            (VARY, "accept, authorization, cookie"),
        ],
        body,
    )
        .into_response();
    if let Some(policy) = policy {
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// The chat page. Its parts are its own (`assets`); a nonce lets the editor and the terminal add
/// their style sheets; strings never become scripts or markup (Trusted Types).
fn chat(template: &str, may: May) -> Result<Response, HttpFailure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| HttpFailure::new(ErrorKind::Internal, error.to_string()))?;
    let nonce = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random);
    let (scripts, frames) = match may {
        May::Plain => ("'self'", "'none'"),
        // It compiles WebAssembly; strings still do not become scripts.
        May::Notebook => ("'self' 'wasm-unsafe-eval'", "'self'"),
    };
    let policy = format!(
        "default-src 'none'; script-src {scripts}; frame-src {frames}; style-src 'self' 'nonce-{nonce}'; \
         img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    );
    let body = fill(template, &[("nonce", &nonce)]);
    let head = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (VARY, "accept, authorization, cookie"),
    ];
    let mut response = (head, body).into_response();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

fn asks_for_html(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// The page; `events` is how many the store has, for who has signed in.
fn html(about: &About, events: Option<u64>) -> String {
    let signed = match events {
        Some(events) => signed_in_html(about, events),
        None => PAGE_SIGNED_OUT.to_owned(),
    };
    fill(
        PAGE,
        &[
            ("style", STYLE),
            ("version", &escape(&about.version)),
            ("about", &signed),
        ],
    )
}

fn signed_in_html(about: &About, events: u64) -> String {
    let mut layers = String::new();
    for layer in &about.sandbox.layers {
        let (class, word) = state(layer);
        let hint = layer.hint.as_deref().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(
            layers,
            "<li class=\"{class}\"><b>{}</b> <span>{word}</span><p>{}</p><p class=\"hint\">{}</p></li>",
            escape(&layer.name),
            escape(&layer.detail),
            escape(hint),
        );
    }
    let tier = match about.sandbox.tier {
        tier if tier < about.sandbox.minimum => "no",
        Tier::Room => "ok",
        Tier::Walls | Tier::None => "ask",
    };
    fill(
        PAGE_SIGNED_IN,
        &[
            ("workspace", &escape(&about.workspace)),
            ("store", &escape(&about.store)),
            ("events", &events.to_string()),
            ("tier", about.sandbox.tier.as_str()),
            ("tier_class", tier),
            ("layers", &layers),
        ],
    )
}

fn text(about: &About, events: Option<u64>) -> String {
    let signed = match events {
        Some(events) => signed_in_text(about, events),
        None => TEXT_SIGNED_OUT.to_owned(),
    };
    fill(TEXT, &[("version", &about.version), ("about", &signed)])
}

fn signed_in_text(about: &About, events: u64) -> String {
    let mut layers = String::new();
    for layer in &about.sandbox.layers {
        let (_, word) = state(layer);
        let _ = writeln!(layers, "  {word:8} {}: {}", layer.name, layer.detail);
    }
    fill(
        TEXT_SIGNED_IN,
        &[
            ("workspace", &about.workspace),
            ("store", &about.store),
            ("events", &events.to_string()),
            ("tier", about.sandbox.tier.as_str()),
            ("layers", &layers),
        ],
    )
}

fn state(layer: &LayerStatus) -> (&'static str, &'static str) {
    if layer.available {
        ("ok", "holds")
    } else {
        ("ask", "missing")
    }
}

/// Puts values into the places that a template names, in one pass: what a value says is never
/// taken for a place.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(template.len() + 4096);
    let mut pieces = template.split("{{");
    filled.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let known = piece.split_once("}}").and_then(|(place, rest)| {
            let (_, value) = values.iter().find(|(name, _)| *name == place)?;
            Some([*value, rest])
        });
        for part in known.unwrap_or(["{{", piece]) {
            filled.push_str(part);
        }
    }
    filled
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_neither_markup_nor_a_place() {
        assert_eq!(
            fill(
                "<p>{{a}}{{b}}</p>",
                &[("a", &escape("<b>{{b}}")), ("b", "!")]
            ),
            "<p>&lt;b&gt;{{b}}!</p>"
        );
    }

    #[test]
    fn every_place_in_the_templates_has_a_value() {
        let about = About {
            version: "0.1.0".into(),
            workspace: "/w".into(),
            sandbox: protocol::sandbox::SandboxStatus {
                tier: Tier::Room,
                minimum: Tier::Room,
                layers: Vec::new(),
            },
            store: "/s".into(),
        };
        for filled in [html(&about, Some(1)), text(&about, Some(1))] {
            assert!(!filled.contains("{{"));
            assert!(filled.contains("/w") && filled.contains("/s"));
        }
        for filled in [html(&about, None), text(&about, None)] {
            assert!(!filled.contains("{{"));
        }
        assert!(html(&about, None).contains(&format!("<style>{STYLE}</style>")));
    }
}
