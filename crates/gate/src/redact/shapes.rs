//! Known shapes of keys, and of places where keys are.

use std::ops::Range;

use regex_automata::meta::{BuildError, Regex};

use super::spans::Spans;

/// Keys that say themselves what they are, and what comes in their place. Nothing ordinary looks
/// like them, so it does not matter what they stand beside.
const KEYS: [(&str, &str); 16] = [
    (
        r"ward_(?:person|agent|runtime)_[A-Za-z0-9_-]{16,}",
        "[redacted:ward]",
    ),
    (r"gh[pousr]_[A-Za-z0-9]{16,}", "[redacted:github]"),
    (r"github_pat_[A-Za-z0-9_]{16,}", "[redacted:github]"),
    (
        r"gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_-]{16,}",
        "[redacted:gitlab]",
    ),
    (r"A(?:KIA|SIA)[A-Z0-9]{16,}", "[redacted:aws]"),
    (r"AIza[A-Za-z0-9_-]{30,}", "[redacted:google]"),
    (r"ya29\.[A-Za-z0-9_-]{20,}", "[redacted:google]"),
    (r"GOCSPX-[A-Za-z0-9_-]{20,}", "[redacted:google]"),
    (r"xox[abeoprs]-[A-Za-z0-9-]{10,}", "[redacted:slack]"),
    (r"xapp-[A-Za-z0-9-]{16,}", "[redacted:slack]"),
    (r"npm_[A-Za-z0-9]{30,}", "[redacted:npm]"),
    (r"hf_[A-Za-z0-9]{30,}", "[redacted:huggingface]"),
    (r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", "[redacted:stripe]"),
    (r"pypi-[A-Za-z0-9_-]{40,}", "[redacted:pypi]"),
    (
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        "[redacted:private_key]",
    ),
    (
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*",
        "[redacted:jwt]",
    ),
];

/// What is shorter has none of the shapes.
pub(super) const SHORTEST: usize = 15;

/// Which part of what was found is a key, if it is one.
type Part = fn(&str, &Range<usize>) -> Option<Range<usize>>;

/// Places where keys are.
const PLACES: [(&str, &str, Part); 3] = [
    (r"sk-[A-Za-z0-9_-]{16,}", "[redacted:sk]", sk),
    (
        r#"(?i)authorization\\?["']?\s*[:=]\s*\\?["']?(?:[a-z]+\s+)?[^\s"'\\,;]+"#,
        "[redacted:authorization]",
        authorization,
    ),
    (
        r"(?i)bearer\s+[A-Za-z0-9._~+/=-]{12,}",
        "[redacted:bearer]",
        bearer,
    ),
];

/// Where none of these is, there is none of the shapes.
pub(super) const HINTS: [&str; 34] = [
    "ward_person_",
    "ward_agent_",
    "ward_runtime_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glptt-",
    "glsoat-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "xox",
    "xapp-",
    "npm_",
    "hf_",
    "k_live_",
    "k_test_",
    "pypi-",
    "-----BEGIN ",
    "eyJ",
    "sk-",
    "earer",
    "EARER",
    "uthorization",
    "UTHORIZATION",
];

#[derive(Debug)]
pub(super) struct Shapes {
    keys: Regex,
    places: Vec<Regex>,
}

impl Shapes {
    pub(super) fn new() -> Result<Self, Box<BuildError>> {
        let places = PLACES
            .iter()
            .map(|(pattern, ..)| Regex::new(pattern).map_err(Box::new));
        Ok(Self {
            keys: Regex::new_many(&KEYS.map(|(pattern, _)| pattern))?,
            places: places.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn find(&self, text: &str, spans: &mut Spans) {
        for found in self.keys.find_iter(text) {
            if let Some((_, instead)) = KEYS.get(found.pattern().as_usize()) {
                spans.add(found.range(), instead);
            }
        }
        for (regex, (_, instead, part)) in self.places.iter().zip(PLACES) {
            for found in regex.find_iter(text) {
                if let Some(part) = part(text, &found.range()) {
                    spans.add(part, instead);
                }
            }
        }
    }
}

/// `task-force` is no key: a part of one is long, and of letters and digits.
fn sk(text: &str, found: &Range<usize>) -> Option<Range<usize>> {
    let body = text.get(found.clone())?.get(3..)?;
    let stands_alone = !text
        .get(..found.start)?
        .ends_with(|c: char| c.is_ascii_alphanumeric());
    let has = |part: &str, what: fn(&u8) -> bool| part.bytes().any(|byte| what(&byte));
    let random = |part: &str| {
        part.len() >= 12 && has(part, u8::is_ascii_digit) && has(part, u8::is_ascii_alphabetic)
    };
    let is_key = body.split(['-', '_']).any(random)
        || stands_alone && has(body, u8::is_ascii_digit)
        || stands_alone
            && ["ant-", "proj-", "or-", "svcacct-"]
                .iter()
                .any(|known| body.starts_with(known));
    is_key.then(|| found.clone())
}

/// What follows the scheme; where there is none, what follows the name.
fn authorization(text: &str, found: &Range<usize>) -> Option<Range<usize>> {
    let whole = text.get(found.clone())?;
    let value = whole.get("authorization".len()..)?;
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || "\\\"':=".contains(c));
    let value = match value.split_once(char::is_whitespace) {
        Some((_, value)) => value.trim_start(),
        None => value,
    };
    Some(found.end - value.len()..found.end)
}

/// A word after `bearer` is a token if there is a digit in it.
fn bearer(text: &str, found: &Range<usize>) -> Option<Range<usize>> {
    let (_, token) = text.get(found.clone())?.split_once(char::is_whitespace)?;
    let token = token.trim_start();
    token
        .bytes()
        .any(|byte| byte.is_ascii_digit())
        .then(|| found.end - token.len()..found.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shape_is_shorter_than_the_shortest() {
        let keys = KEYS.iter().map(|(pattern, _)| *pattern);
        let places = PLACES.iter().map(|(pattern, ..)| *pattern);
        let lengths = keys.chain(places).map(|pattern| {
            let shape = regex_syntax::parse(pattern).unwrap();
            shape.properties().minimum_len().unwrap()
        });
        assert_eq!(lengths.min(), Some(SHORTEST));
    }
}
