//! What an answer that is no turn says went wrong.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::Endpoint;
use crate::provider::ProviderError;

/// How much of a provider's words is repeated.
const LONGEST: usize = 600;

/// What those say for whom a conversation is too long and who have no word for it: Anthropic, where
/// only room for the answer is missing; Google; vLLM, DeepSeek and OpenRouter; llama.cpp of old.
const TOO_LONG: [&str; 5] = [
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "maximum context length is",
    "exceeds the available context size",
];

/// What a reader finds wrong in an answer that began well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::provider) enum Fault {
    /// It ended before its end; what was missing.
    Cut(&'static str),
    /// It cannot be read; why.
    Unreadable(String),
    /// The provider says so itself.
    Said {
        /// Its word for it.
        code: String,
        /// Its sentence.
        said: String,
    },
}

impl Fault {
    /// An error in the shape that all wires share in the end: an object with a message and some
    /// word for it.
    pub(in crate::provider) fn told(error: &Value) -> Self {
        let word = |key: &str| match &error[key] {
            Value::String(word) => Some(word.clone()),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        };
        let words: Vec<String> = ["type", "status", "code"]
            .into_iter()
            .filter_map(word)
            .collect();
        Self::Said {
            code: words.join(" "),
            said: said(error),
        }
    }

    pub(in crate::provider) fn into_error(self, endpoint: &Endpoint) -> ProviderError {
        let provider = endpoint.name().to_owned();
        match self {
            Self::Cut(what) => ProviderError::StreamCut {
                provider,
                why: what.to_owned(),
            },
            Self::Unreadable(why) => ProviderError::BadStream { provider, why },
            Self::Said { code, said } => {
                // Some say it with the status that it would have been.
                let mut words = code.split(' ').filter_map(|word| word.parse().ok());
                let status = words.find(|status| (400..600).contains(status));
                let known = known(endpoint, status.unwrap_or(200), &code, &said, None);
                known.unwrap_or_else(|| match status {
                    Some(status @ 400..500) => ProviderError::BadRequest {
                        provider,
                        status,
                        said,
                    },
                    Some(_) | None => ProviderError::InStream {
                        provider,
                        said: match code.is_empty() {
                            true => said,
                            false => format!("{said} ({code})"),
                        },
                    },
                })
            }
        }
    }
}

/// What a status other than 200 means.
pub(super) fn refused(
    endpoint: &Endpoint,
    model: &str,
    status: u16,
    headers: &HeaderMap,
    body: &str,
) -> ProviderError {
    // Some compatible servers wrap their error into a list.
    let body: Value = match serde_json::from_str(body) {
        Ok(Value::Array(mut list)) if !list.is_empty() => list.swap_remove(0),
        Ok(value) => value,
        Err(_) => Value::String(body.trim().to_owned()),
    };
    let error = match &body["error"] {
        Value::Null => &body,
        error => error,
    };
    let Fault::Said { code, said } = Fault::told(error) else {
        return ProviderError::Failed {
            provider: endpoint.name().to_owned(),
            status,
            said: String::new(),
        };
    };
    let after = retry_after(headers, error, SystemTime::now());
    if let Some(error) = known(endpoint, status, &code, &said, after) {
        return error;
    }
    let provider = endpoint.name().to_owned();
    match status {
        404 => ProviderError::UnknownModel {
            model: model.to_owned(),
            why: format!(
                "{provider} says: {said}. Check the name and {}.",
                endpoint.base()
            ),
        },
        300..=399 => ProviderError::BadEndpoint {
            provider,
            why: format!(
                "{} sends to another address, and keys do not follow. Set the address itself.",
                endpoint.base()
            ),
        },
        500.. => ProviderError::Failed {
            provider,
            status,
            said,
        },
        _ => ProviderError::BadRequest {
            provider,
            status,
            said,
        },
    }
}

/// The failures that are known by their status or their word, wherever they turn up.
fn known(
    endpoint: &Endpoint,
    status: u16,
    code: &str,
    said: &str,
    retry_after: Option<Duration>,
) -> Option<ProviderError> {
    let provider = endpoint.name().to_owned();
    let said = said.to_owned();
    let has = |word: &str| code.contains(word);
    let lower = said.to_ascii_lowercase();
    let error = if has("insufficient_quota") || has("billing_error") || status == 402 {
        ProviderError::QuotaExhausted { provider, said }
    } else if status == 401
        || status == 403
        || has("authentication_error")
        || has("permission_error")
        || has("invalid_api_key")
        || lower.contains("api key not valid")
    {
        ProviderError::Unauthorized {
            provider,
            place: endpoint.place().to_owned(),
            said,
        }
    } else if status == 429 || has("rate_limit") || has("RESOURCE_EXHAUSTED") {
        ProviderError::RateLimited {
            provider,
            said,
            retry_after,
        }
    } else if status == 529 || status == 503 || has("overloaded") || has("UNAVAILABLE") {
        ProviderError::Overloaded {
            provider,
            said,
            retry_after,
        }
    } else if status == 413
        || has("context_length_exceeded")
        || has("request_too_large")
        || has("exceed_context_size")
        || TOO_LONG.iter().any(|words| lower.contains(words))
    {
        ProviderError::ContextFull { provider, said }
    } else {
        return None;
    };
    Some(error)
}

/// A provider's words, cut to a bearable length and without the full stop.
fn said(error: &Value) -> String {
    let words = match (&error["message"], error) {
        (Value::String(message), _) => message.clone(),
        (_, Value::String(words)) => words.clone(),
        (_, Value::Null) => String::new(),
        (_, other) => other.to_string(),
    };
    let words = words.trim().trim_end_matches('.');
    if words.is_empty() {
        return "it did not say why".to_owned();
    }
    match words.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words.to_owned(),
    }
}

/// When to ask again: a header, in seconds or as a date, or Google's `RetryInfo` in the body.
fn retry_after(headers: &HeaderMap, error: &Value, now: SystemTime) -> Option<Duration> {
    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let number = |name: &str| header(name)?.parse::<f64>().ok();
    let date = || {
        let date = httpdate::parse_http_date(header("retry-after")?).ok()?;
        // One that is past says nothing about how long to wait.
        let left = date.duration_since(now).ok()?;
        Some(left.as_secs_f64())
    };
    let seconds = number("retry-after-ms")
        .map(|ms| ms / 1000.0)
        .or_else(|| number("retry-after"))
        .or_else(date)
        .or_else(|| {
            let details = error["details"].as_array()?;
            let delay = details
                .iter()
                .find_map(|detail| detail["retryDelay"].as_str())?;
            delay.strip_suffix('s')?.parse().ok()
        })?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_ask_again_is_read_in_seconds_and_as_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (name, value, after) in [
            ("retry-after-ms", "1500", Some(1_500)),
            ("retry-after", " 7 ", Some(7_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT", Some(20_000)),
            (
                "retry-after",
                "Sunday, 06-Nov-94 08:49:57 GMT",
                Some(20_000),
            ),
            ("retry-after", "Sun, 06 Nov 1994 08:49:17 GMT", None),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(
                retry_after(&headers, &Value::Null, now),
                after.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
    }
}
