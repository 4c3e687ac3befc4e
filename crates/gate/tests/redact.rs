//! What is taken out of what is written down, and what is left alone.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::ffi::OsString;
use std::sync::LazyLock;

use gate::redact::Redactor;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Secrets by their shape alone.
const KEYS: [&str; 24] = [
    "sk-1234567890abcdef1234",
    "sk-proj-Ab3dEf6hIjKlMnOpQrStUvWxYz012345",
    "sk-ant-api03-aB3_dEf6hIjKlMn-pQrStUvWxYz0123456789AbCdEfGhIj",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789",
    "glpat-aB3dEf6hIjKlMnOpQrSt",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA1bC2dE3fG4hI5jK6lM7nO8pQ9rS0tU1v",
    "ya29.a0AfH6SMBx3yZ4wVuTsRqPoNmLkJi",
    "xoxb-123456789012-abcdefABCDEF",
    "xoxp-123456789012-abcdefABCDEF",
    "npm_aB3dEf6hIjKlMnOpQrStUvWxYz0123456789",
    "hf_aB3dEf6hIjKlMnOpQrStUvWxYz01234567",
    "sk_live_aB3dEf6hIjKlMnOpQrStUv",
    "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAw",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
    "GOCSPX-aB3dEf6hIjKlMnOpQrStUvWx",
];

/// Secrets because the environment has them.
const VALUES: [(&str, &str); 5] = [
    ("MY_TOKEN", "correct horse battery"),
    ("DB_PASSWORD", "pässwörd-☃"),
    ("SIGNING_KEY", "line one of it\nline two of it"),
    ("SHORT_SECRET", "1234567"),
    ("PIN_SECRET", "20260731"),
];

/// Secret because Ward was told so.
const KEY: &str = "a key without any shape";

fn redactor() -> &'static Redactor {
    static MADE: LazyLock<Redactor> = LazyLock::new(|| {
        let harmless = [("HOME", "/home/somebody"), ("EDITOR", "editor-of-choice")];
        let environment = VALUES.into_iter().chain(harmless);
        let environment = environment.map(|(name, value)| (OsString::from(name), value.into()));
        Redactor::new(environment, [KEY, "short"]).unwrap()
    });
    &MADE
}

fn clean(value: Value) -> Value {
    let mut value = value;
    redactor().redact(&mut value);
    value
}

#[test]
fn a_short_secret_is_found_where_it_stands_by_itself_and_looks_like_no_word() {
    let of = |secret: &str| {
        let environment = [(OsString::from("DB_PASSWORD"), secret.into())];
        Redactor::new(environment, []).unwrap()
    };
    for secret in ["pw9f8a7", "pw9f8a", "hunTer", "p@sswd"] {
        let redactor = of(secret);
        for (text, expected) in [
            (secret.to_owned(), "[redacted]"),
            (format!("psql -W '{secret}'!"), "psql -W '[redacted]'!"),
            (
                format!("postgres://me:{secret}@db"),
                "postgres://me:[redacted]@db",
            ),
        ] {
            assert_eq!(redactor.redact_str(&text), expected, "{secret}");
        }
        let longer = format!("x{secret} {secret}y");
        assert_eq!(redactor.redact_str(&longer), longer);
    }
    for word in ["secret", "Secret", "SECRET", "123456", "pw9f8", "my-key"] {
        let text = format!("the {word} is out");
        assert_eq!(of(word).redact_str(&text), text);
    }
}

#[test]
fn a_secret_is_replaced_by_what_it_was() {
    for (text, expected) in [
        (
            "run with ghp_16C7e42F292c6912E7710c838347Ae178B4a!",
            "run with [redacted:github]!",
        ),
        (
            "Authorization: Bearer abc",
            "Authorization: Bearer [redacted:authorization]",
        ),
        (
            "-H 'authorization: Basic dXNlcjpwYXNz'",
            "-H 'authorization: Basic [redacted:authorization]'",
        ),
        (
            "{\"Authorization\":\"Bearer a.b-c\"}",
            "{\"Authorization\":\"Bearer [redacted:authorization]\"}",
        ),
        ("bearer abcdef0123456789", "bearer [redacted:bearer]"),
        (
            "git clone https://me:pa:ss@w0rd@host/x.git",
            "git clone https://me:[redacted:password]@host/x.git",
        ),
        (
            "https://0123456789abcdef0123456789abcdef@host/",
            "https://[redacted:password]@host/",
        ),
        (
            "psql postgres://u:hunter2@db:5432/x?y=a@b",
            "psql postgres://u:[redacted:password]@db:5432/x?y=a@b",
        ),
        ("say correct horse battery staple", "say [redacted] staple"),
        ("just line two of it", "just [redacted]"),
        ("with a key without any shape!", "with [redacted]!"),
        ("a short key", "a short key"),
        (
            "export API_KEY=abcd1234 && deploy",
            "export API_KEY=[redacted] && deploy",
        ),
        (
            "deploy --password='two words' --dry-run",
            "deploy --password='[redacted]' --dry-run",
        ),
        (
            "curl 'https://x/?access_token=abcd&n=1'",
            "curl 'https://x/?access_token=[redacted]&n=1'",
        ),
        (
            "{\"api_key\": \"abcd1234\", \"n\": 1}",
            "{\"api_key\": \"[redacted]\", \"n\": 1}",
        ),
        (
            "token:sk-ant-api03-aB3dEf6hIjKlMnOpQrSt",
            "token:[redacted:sk]",
        ),
    ] {
        assert_eq!(redactor().redact_str(text), expected);
    }
}

#[test]
fn in_values_names_say_what_is_secret() {
    let value = json!({
        "env": { "AWS_SECRET_ACCESS_KEY": "x", "PATH": "/bin", "KEY": "k", "EMPTY_TOKEN": "" },
        "headers": { "X-Api-Key": "x", "Accept": "*/*" },
        "argv": ["deploy", "--token", "abc", "--verbose", "--password", "--dry-run"],
        "password": "x",
        "nested": [{ "client_secret": "y", "key": "Enter", "tokens": 12 }],
        "pin": 20_260_731,
        "count": 20_260_730,
        "correct horse battery": true,
    });
    assert_eq!(
        clean(value),
        json!({
            "env": {
                "AWS_SECRET_ACCESS_KEY": "[redacted]",
                "PATH": "/bin",
                "KEY": "[redacted]",
                "EMPTY_TOKEN": "",
            },
            "headers": { "X-Api-Key": "[redacted]", "Accept": "*/*" },
            "argv": ["deploy", "--token", "[redacted]", "--verbose", "--password", "--dry-run"],
            "password": "[redacted]",
            "nested": [{ "client_secret": "[redacted]", "key": "Enter", "tokens": 12 }],
            "pin": "[redacted]",
            "count": 20_260_730,
            "[redacted]": true,
        })
    );
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "the task-force-management-system is at risk-of-everything-going-wrong",
        "disk-usage-report-2024-in-the-kitchen",
        "the bearer of this certificate; a bearer certificates",
        "Password: please enter it below",
        "sorted(xs, key=operator.itemgetter(1))",
        "let token = next_token(input);",
        "https://example.org:8080/a@b?c=d#e",
        "git@github.com:someone/something.git",
        "ssh://git@github.com/someone/something.git",
        "npm_config_registry=https://registry.npmjs.org/",
        "SSH_AUTH_SOCK=/tmp/agent.1",
        "KEY=$OTHER TOKEN=${X} TOKENIZERS_PARALLELISM=false",
        "cargo test -p gate --test ledger -- --nocapture",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "4f2a8c1e-90ab-4cde-8f01-23456789abcd",
        "/home/somebody/src/editor-of-choice/main.rs:12:7: 1234567",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJ is how they begin, ghp_ too, and AKIA, and sk-, xoxb-",
    ] {
        assert_eq!(redactor().redact_str(text), text);
    }
}

#[test]
fn a_long_string_is_its_digest_its_length_and_its_start_without_secrets() {
    let redactor = redactor();
    // The secret lies across the cut.
    let text = format!(
        "{}correct horse battery{}",
        "é".repeat(190),
        "x".repeat(5_000)
    );
    let mut value = json!({ "long": text, "short": "x".repeat(4_096) });
    redactor.shorten(&mut value);
    assert_eq!(
        value,
        json!({
            "long": {
                "sha256": protocol::Digest::of(text.as_bytes()),
                "bytes": text.len(),
                "start": format!("{}[redacted]", "é".repeat(190)),
            },
            "short": "x".repeat(4_096),
        })
    );
}

#[test]
fn what_was_redacted_once_stays_as_it_is() {
    for key in KEYS {
        let text = format!("https://me:{key}@host/ API_KEY={key} {key}");
        let once = redactor().redact_str(&text).into_owned();
        assert_eq!(redactor().redact_str(&once), once);
    }
}

proptest! {
    #[test]
    fn no_key_survives_whatever_it_stands_beside(
        at in 0..KEYS.len(),
        before in "\\PC{0,20}|[a-zA-Z0-9_=:/@. -]{0,30}",
        after in "\\PC{0,20}|[a-zA-Z0-9_=:/@. -]{0,30}",
        again in 0..KEYS.len(),
    ) {
        let (key, other) = (KEYS[at], KEYS[again]);
        let text = format!("{before}{key}{after}{other}");
        let value = clean(json!({ "text": text, text.clone(): [[text]] }));
        let shown = value.to_string();
        for key in [key, other] {
            let key = json!(key).to_string();
            prop_assert!(!shown.contains(key.trim_matches('"')), "{}", shown);
        }
    }

    #[test]
    fn no_secret_of_the_environment_survives_whatever_it_stands_beside(
        at in prop::sample::select(vec![0_usize, 1, 2, 4]),
        before in "\\PC{0,20}|[a-zA-Z0-9_=:/@. -]{0,30}",
        after in "\\PC{0,20}|[a-zA-Z0-9_=:/@. -]{0,30}",
    ) {
        let secret = VALUES[at].1;
        let text = format!("{before}{secret}{after}");
        let value = clean(json!({ "text": text, text.clone(): [[text]] }));
        let secret = json!(secret).to_string();
        prop_assert!(!value.to_string().contains(secret.trim_matches('"')), "{}", value);
    }

    #[test]
    fn any_text_can_be_redacted_and_words_are_left_alone(
        any in "\\PC{0,200}",
        words in "([a-z]{1,9} ){0,20}",
    ) {
        let redactor = redactor();
        let _ = redactor.redact_str(&any);
        prop_assert_eq!(redactor.redact_str(&words), words.as_str());
    }
}
