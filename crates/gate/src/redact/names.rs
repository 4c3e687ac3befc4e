//! Names, and other places, that say that what stands beside them is secret.

use std::ops::Range;

use super::REDACTED;
use super::spans::Spans;

/// Words that make a name of the environment or of a header one of a secret.
const WORDS: [&str; 18] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "secret",
    "secrets",
    "token",
    "tokens",
];

/// Names that have such a word without its beginning or its end.
const GLUED: [&str; 1] = ["SSHPASS"];

/// Names of the environment that look like a secret's and are none.
const HARMLESS: [&str; 2] = ["SSH_AUTH_SOCK", "GPG_KEY"];

/// Ends of names that mean a secret wherever they are, without what separates words.
const FIELDS: [&str; 12] = [
    "accesskey",
    "apikey",
    "authorization",
    "encryptionkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "signingkey",
    "token",
];

/// The length of the longest of them.
const LONGEST: usize = 13;

/// A value beside such a name that is shorter is none.
const SHORTEST: usize = 4;

/// A user's name in a URL that is as long as this is a token.
const TOKEN: usize = 20;

/// Whether a name of the environment, or of a header, is one of a secret: one of its words is, or it
/// ends as one does (`PGPASSWORD`).
pub(super) fn is_secret_name(name: &str) -> bool {
    let is_one_of = |known: &[&str], word: &str| known.iter().any(|k| k.eq_ignore_ascii_case(word));
    !HARMLESS.contains(&name)
        && (is_secret_field(name)
            || is_one_of(&GLUED, name)
            // `MYSQL_PWD`; by itself it is where one is.
            || name.len() > 4 && name.to_ascii_uppercase().ends_with("_PWD")
            || name
                .split(|c: char| !c.is_ascii_alphanumeric())
                .flat_map(words)
                .any(|word| is_one_of(&WORDS, word)))
}

/// The words of `apiKey`, `APIKey`, `APIKEY2`.
fn words(part: &str) -> impl Iterator<Item = &str> {
    let bytes = part.as_bytes();
    let mut from = 0;
    (1..=bytes.len()).filter_map(move |at| {
        let ends = match (bytes.get(at.wrapping_sub(1)), bytes.get(at)) {
            (_, None) => true,
            (Some(before), Some(here)) => {
                before.is_ascii_lowercase() && here.is_ascii_uppercase()
                    || before.is_ascii_alphabetic() != here.is_ascii_alphabetic()
                    || before.is_ascii_uppercase()
                        && here.is_ascii_uppercase()
                        && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)
            }
            (None, Some(_)) => false,
        };
        ends.then(|| part.get(std::mem::replace(&mut from, at)..at))?
    })
}

/// Whether a field of this name, wherever it is, holds a secret. Narrower than
/// [`is_secret_name`]: `key` is the name of many things.
pub(super) fn is_secret_field(name: &str) -> bool {
    // How they end tells most names from them at a glance.
    let last = name.as_bytes().last().map(u8::to_ascii_lowercase);
    if !last.is_some_and(|last| b"denty".contains(&last)) {
        return false;
    }
    let letters = name.bytes().rev().filter(u8::is_ascii_alphanumeric);
    let mut end = [0; LONGEST];
    let mut length = 0;
    for (place, letter) in end.iter_mut().rev().zip(letters) {
        *place = letter.to_ascii_lowercase();
        length += 1;
    }
    let end = end.get(LONGEST - length..).unwrap_or_default();
    FIELDS.iter().any(|known| end.ends_with(known.as_bytes()))
}

/// Finds `NAME=value`, `--name=value`, `name: value` and `://user:value@host`.
pub(super) fn find(text: &str, spans: &mut Spans) {
    let bytes = text.as_bytes();
    for at in memchr::memchr2_iter(b'=', b':', bytes) {
        if bytes.get(at..at + 3) == Some(b"://") {
            if let Some(password) = password_after(text, at + 3) {
                spans.add(password, "[redacted:password]");
            }
            continue;
        }
        let name = name_before(text, at);
        let is_variable = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let assigned = bytes.get(at) == Some(&b'=');
        if !(is_secret_field(name) || assigned && is_variable && is_secret_name(name)) {
            continue;
        }
        let (start, value) = value_after(text, at + 1, assigned);
        // After a colon there is often just more text.
        let is_secret = if assigned {
            value.len() >= SHORTEST && !value.starts_with('$')
        } else {
            value.len() >= 8 && value.bytes().any(|byte| byte.is_ascii_digit())
        };
        if is_secret {
            spans.add(start..start + value.len(), REDACTED);
        }
    }
}

/// The name that ends before `at`, maybe quoted.
fn name_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let before = before.trim_end_matches(['"', '\'', '\\']);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = before
        .bytes()
        .rev()
        .take(64)
        .take_while(|byte| is_name(byte))
        .count();
    let name = before.get(before.len() - length..).unwrap_or_default();
    name.trim_start_matches('-')
}

/// The value that begins at `at`, maybe after spaces, maybe quoted, and where it is.
fn value_after(text: &str, at: usize, assigned: bool) -> (usize, &str) {
    let rest = text.get(at..).unwrap_or_default();
    let value = match assigned {
        true => rest,
        false => rest.trim_start_matches(' '),
    };
    let value = value.trim_start_matches('\\');
    let quoted = value.strip_prefix(['"', '\'']);
    let end = match quoted {
        Some(value) => value.find(['"', '\'', '\\', '\n']),
        None => value.find(|c: char| c.is_whitespace() || "\"'`&;|<>(),{}\\".contains(c)),
    };
    let value = quoted.unwrap_or(value);
    let start = at + rest.len() - value.len();
    let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
    (start, value)
}

/// Where the password of a URL is whose user's name begins at `at`; a name that is long is a token.
fn password_after(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let end = rest.find(|c: char| c.is_whitespace() || "/\"'<>?#".contains(c));
    let (user, _) = rest.get(..end.unwrap_or(rest.len()))?.rsplit_once('@')?;
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let from = match (name.len() >= TOKEN, password) {
        (true, _) => 0,
        (false, "") => return None,
        (false, _) => name.len() + 1,
    };
    Some(at + from..at + user.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_secrets_by_one_of_its_words() {
        let secret = [
            "API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "DB_PASS",
            "apiKey",
            "MyAPIKey2",
            "X-Api-Key",
            "PROXY_AUTH",
            "GOOGLE_CREDENTIALS",
            "KEY2",
            "PGPASSWORD",
            "SSHPASS",
            "MYSQL_PWD",
            "NPM_AUTHTOKEN",
            "AWSSECRETKEY",
            "mysecret",
        ];
        let ordinary = [
            "PATH",
            "PWD",
            "KEYBOARD",
            "MONKEY",
            "AUTHOR",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "TOKENIZERS_PARALLELISM",
            "COMPASS_DIR",
            "COMPASS",
            "OLDPWD",
            "_PWD",
            "",
            "_",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ordinary {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_field_is_a_secrets_by_its_end() {
        for name in [
            "password",
            "api-key",
            "apiKey",
            "client_secret",
            "auth_token",
            "--token",
        ] {
            assert!(is_secret_field(name), "{name}");
        }
        assert_eq!(FIELDS.map(str::len).into_iter().max(), Some(LONGEST));
        for known in FIELDS {
            assert!(is_secret_field(known), "{known}");
        }
        for name in [
            "key",
            "keys",
            "tokens",
            "author",
            "secretary",
            "",
            "passwords_of",
        ] {
            assert!(!is_secret_field(name), "{name}");
        }
    }
}
