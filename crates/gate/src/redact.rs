//! Takes secrets out of what is written down: values of the environment's secret-looking names, keys
//! that Ward was given otherwise, known shapes of keys, and what stands beside a name that says it is
//! one.
//!
//! It is a net, not a wall: what keeps secrets from commands is that they do not get them. It errs
//! on the side of taking out too much.

mod draft;
mod names;
mod shapes;
mod shorten;
mod spans;

use std::borrow::Cow;
use std::ffi::OsString;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

pub use self::draft::Clean;
use self::draft::is_flag;
use self::names::{is_secret_field, is_secret_name};
use self::shapes::Shapes;
use self::spans::Spans;

/// What is put in the place of a secret whose shape says nothing about it.
pub const REDACTED: &str = "[redacted]";

/// A value that is shorter is no secret worth the name, and would be found everywhere.
const SHORTEST: usize = 6;

/// A value that is shorter than this is one only where it does not look like a word or a number, and
/// is found only where it stands by itself.
const LONG: usize = 8;

/// Whether a value is long enough to be looked for.
fn is_worth_hiding(value: &str) -> bool {
    value.len() >= LONG || (value.len() >= SHORTEST && is_mixed(value))
}

/// Whether it is more than letters that make a word, or digits that make a number.
fn is_mixed(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|one| is(&one));
    let digits = has(char::is_ascii_digit);
    let letters = has(|one| one.is_alphabetic());
    let cases = has(|one| one.is_lowercase()) && value.chars().skip(1).any(char::is_uppercase);
    let odd = has(|one| one.is_ascii_punctuation() && !"-_./:".contains(*one));
    (digits && letters) || cases || odd
}

/// Whether what was found counts: what is short does where it stands by itself.
fn counts(text: &str, found: &std::ops::Range<usize>) -> bool {
    let before = text.get(..found.start).and_then(|text| text.chars().last());
    let after = text.get(found.end..).and_then(|text| text.chars().next());
    found.len() >= LONG
        || ![before, after]
            .into_iter()
            .flatten()
            .any(char::is_alphanumeric)
}

/// Fields whose own fields are names of a command's environment, or of a request's headers.
const MAPS: [&str; 3] = ["env", "environment", "headers"];

/// The secrets that a request gives to its own command: what it sets in the environment under such a
/// name.
pub(crate) fn given(params: &Value) -> Vec<String> {
    let Some(Value::Object(environment)) = params.get("env") else {
        return Vec::new();
    };
    let secret = environment.iter().filter(|(name, _)| is_secret_name(name));
    let values = secret.filter_map(|(_, value)| value.as_str());
    let parts = values.flat_map(|value| std::iter::once(value.trim()).chain(value.lines()));
    let parts = parts.filter(|part| is_worth_hiding(part));
    parts.map(ToOwned::to_owned).collect()
}

/// Takes them out of a value.
pub(crate) fn hide(secrets: &[String], value: &mut Value) {
    if secrets.is_empty() {
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            for secret in secrets {
                let mut spans = Spans::default();
                for (at, found) in text.match_indices(secret.as_str()) {
                    let found = at..at + found.len();
                    if counts(text, &found) {
                        spans.add(found, REDACTED);
                    }
                }
                if let Cow::Owned(clean) = spans.replace(text) {
                    *text = clean;
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(secrets, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide(secrets, field)),
    }
}

/// Why a redactor could not be made.
#[derive(Debug, thiserror::Error)]
#[error("The secrets to be kept out of the record could not be prepared: {0}.")]
pub struct RedactError(String);

/// Knows what is secret; made once.
pub struct Redactor {
    /// Something of every secret: where nothing of it is found, there is none. Most texts are done
    /// with this, so it is what has to be fast.
    hints: AhoCorasick,
    /// The environment's secrets, and the keys.
    values: AhoCorasick,
    /// The lengths of the longest of them, and of the shortest of what could be found.
    longest: usize,
    shortest: usize,
    /// Whether one of them could be written as a number.
    numeric: bool,
    shapes: Shapes,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// For this process's environment, and for these keys.
    pub fn from_environment<'a>(
        keys: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, RedactError> {
        // What is the name of a file is none, and is often named in what is written.
        let is_file = |value: &str| value.starts_with('/') && std::path::Path::new(value).exists();
        Self::new(
            std::env::vars_os()
                .filter(|(_, value)| value.to_str().is_none_or(|value| !is_file(value))),
            keys,
        )
    }

    /// For an environment, of which only some is secret, and for keys, all of which are.
    pub fn new<'a>(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, RedactError> {
        let named = environment
            .into_iter()
            .filter(|(name, _)| is_secret_name(&name.to_string_lossy()))
            .map(|(_, value)| value.to_string_lossy().into_owned());
        let keys = keys.into_iter().map(str::to_owned);
        let mut secrets = Vec::new();
        for value in named.chain(keys) {
            // A key of several lines is also found when one of them is shown.
            for part in std::iter::once(value.trim()).chain(value.lines().map(str::trim)) {
                if is_worth_hiding(part) && !secrets.iter().any(|known| known == part) {
                    secrets.push(part.to_owned());
                }
            }
        }
        let failed = |error: &dyn std::fmt::Display| RedactError(error.to_string());
        let hints = shapes::HINTS
            .into_iter()
            .chain(secrets.iter().map(String::as_str));
        Ok(Self {
            // Of this kind, a few patterns are looked for many bytes at a time.
            hints: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(hints)
                .map_err(|error| failed(&error))?,
            values: AhoCorasick::builder()
                .prefilter(false)
                .build(&secrets)
                .map_err(|error| failed(&error))?,
            longest: secrets.iter().map(String::len).max().unwrap_or(0),
            shortest: {
                let lengths = secrets.iter().map(String::len);
                lengths.min().unwrap_or(usize::MAX).min(shapes::SHORTEST)
            },
            numeric: secrets.iter().any(|secret| secret.parse::<f64>().is_ok()),
            shapes: Shapes::new().map_err(|error| failed(&error))?,
        })
    }

    /// Makes a value fit to be written down: long strings are cut, and secrets taken out.
    pub fn clean(&self, value: &mut Value) {
        self.shorten(value);
        self.redact(value);
    }

    /// Takes the secrets out of all strings and names of fields in a value.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.numeric
                    && let Cow::Owned(clean) = self.redact_str(&number.to_string())
                {
                    *value = clean.into();
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact_str(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => self.redact_items(items),
            Value::Object(fields) => self.redact_fields(fields, is_secret_field),
        }
    }

    /// The text without secrets.
    #[must_use]
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.len() < SHORTEST {
            return Cow::Borrowed(text);
        }
        let mut spans = Spans::default();
        if text.len() >= self.shortest && self.hints.is_match(text) {
            for found in self.values.find_overlapping_iter(text) {
                if counts(text, &found.range()) {
                    spans.add(found.range(), REDACTED);
                }
            }
            self.shapes.find(text, &mut spans);
        }
        names::find(text, &mut spans);
        spans.replace(text)
    }

    fn redact_items(&self, items: &mut [Value]) {
        let mut flag = false;
        for item in items {
            // `--token`, `abc`: two arguments of a command.
            let text = item.as_str();
            let secret = flag && text.is_some_and(|text| !text.starts_with('-'));
            flag = text.is_some_and(is_flag);
            if secret {
                *item = REDACTED.into();
            } else {
                self.redact(item);
            }
        }
    }

    fn redact_fields(&self, fields: &mut Map<String, Value>, is_secret: fn(&str) -> bool) {
        for (name, value) in fields.iter_mut() {
            match value {
                Value::String(text) if !text.is_empty() && is_secret(name) => {
                    *value = REDACTED.into();
                }
                Value::Object(inner) if MAPS.contains(&name.as_str()) => {
                    self.redact_fields(inner, is_secret_name);
                }
                _ => self.redact(value),
            }
        }
        let shown = |name: &String| matches!(self.redact_str(name), Cow::Borrowed(_));
        if !fields.keys().all(shown) {
            let named = std::mem::take(fields).into_iter();
            *fields = named
                .map(|(name, value)| (self.redact_str(&name).into_owned(), value))
                .collect();
        }
    }
}
