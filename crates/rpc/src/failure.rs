//! A [`Failure`] as a JSON-RPC error, and back.

use protocol::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A failure as it is written: `data` carries the kind beside the details.
#[derive(Serialize)]
pub(crate) struct Wire<'a> {
    code: i64,
    message: &'a str,
    data: Value,
}

impl<'a> Wire<'a> {
    pub(crate) fn new(failure: &'a Failure) -> Self {
        Self {
            code: failure.kind.code(),
            message: &failure.message,
            data: failure.data(),
        }
    }
}

#[derive(Deserialize)]
struct Received {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

/// The failure that an error of the other side means. One we cannot read is still a failure; a
/// kind we do not know becomes `internal` and is kept as the detail `remote_kind`.
pub(crate) fn from_wire(json: &str) -> Failure {
    let Ok(received) = serde_json::from_str::<Received>(json) else {
        return Failure::new(
            ErrorKind::Internal,
            "The other side failed, and its error cannot be read.",
        );
    };
    let mut details = match received.data {
        Value::Object(details) => details,
        Value::Null => Map::new(),
        data @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([("data".to_owned(), data)])
        }
    };
    let kind = match details.remove("kind") {
        None => from_code(received.code),
        Some(word) => serde_json::from_value(word.clone()).map_err(|_| word),
    };
    let kind = kind.unwrap_or_else(|word| {
        details.insert("remote_code".to_owned(), received.code.into());
        if !word.is_null() {
            details.insert("remote_kind".to_owned(), word);
        }
        ErrorKind::Internal
    });
    Failure {
        kind,
        message: received.message,
        details,
    }
}

/// The kind of an error that does not name one.
fn from_code(code: i64) -> Result<ErrorKind, Value> {
    [
        ErrorKind::ParseError,
        ErrorKind::InvalidRequest,
        ErrorKind::MethodNotFound,
        ErrorKind::InvalidParams,
        ErrorKind::Internal,
        ErrorKind::NotInitialized,
        ErrorKind::Cancelled,
        ErrorKind::Changed,
    ]
    .into_iter()
    .find(|kind| kind.code() == code)
    .ok_or(Value::Null)
}

pub(crate) fn disconnected() -> Failure {
    Failure::new(
        ErrorKind::Disconnected,
        "The connection ended before there was an answer.",
    )
}

pub(crate) fn cancelled() -> Failure {
    Failure::new(ErrorKind::Cancelled, "The request was cancelled.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_way_there_and_back() {
        let failure = Failure::new(ErrorKind::OutsideWorkspace, "No.").with("path", "../x");
        let wire = serde_json::to_string(&Wire::new(&failure)).unwrap();
        assert_eq!(
            wire,
            r#"{"code":-32000,"message":"No.","data":{"kind":"outside_workspace","path":"../x"}}"#
        );
        assert_eq!(from_wire(&wire), failure);
    }

    #[test]
    fn errors_of_others_are_understood_as_far_as_they_can_be() {
        let cases = [
            (
                r#"{"code":-32601,"message":"Unhandled method x"}"#,
                Failure::new(ErrorKind::MethodNotFound, "Unhandled method x"),
            ),
            (
                r#"{"code":7,"message":"no","data":"why"}"#,
                Failure::new(ErrorKind::Internal, "no")
                    .with("data", "why")
                    .with("remote_code", 7),
            ),
            (
                r#"{"code":-32000,"message":"no","data":{"kind":"from_the_future","x":1}}"#,
                Failure::new(ErrorKind::Internal, "no")
                    .with("remote_kind", "from_the_future")
                    .with("remote_code", -32000)
                    .with("x", 1),
            ),
            (
                "7",
                Failure::new(
                    ErrorKind::Internal,
                    "The other side failed, and its error cannot be read.",
                ),
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(from_wire(json), expected, "{json}");
        }
    }
}
