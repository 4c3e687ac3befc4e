//! What a body says: a request, a notification, a response, or why it is none of them.

use std::borrow::Cow;

use protocol::{ErrorKind, Failure};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure;
use crate::frame::write_frame;
use crate::id::Id;

/// What a handler answers.
pub type Answer = Result<Box<RawValue>, Failure>;

/// A body from the other side. Parameters and results stay unread JSON.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
    Response {
        /// Nothing where the other side could not tell which request it failed on.
        id: Option<Id>,
        answer: Answer,
    },
    /// None of them: what to answer, and to whom where that could be read.
    Invalid { id: Option<Id>, failure: Failure },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from nothing at all.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(json: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// Reads a body.
pub(crate) fn read(body: &[u8]) -> Incoming {
    // Serde would take an array for the envelope's fields in order; a batch is not that.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return invalid(body);
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(body) else {
        return invalid(body);
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return invalid(body);
    }
    let id = match envelope.id {
        None => None,
        Some(json) => match (Id::from_json(json.get()), envelope.method.is_some()) {
            (Some(id), _) => Some(id),
            (None, false) if json.get() == "null" => None,
            (None, _) => return invalid(body),
        },
    };
    let response = envelope.result.is_some() || envelope.error.is_some();
    match (envelope.method, id) {
        (Some(_), _) if response => invalid(body),
        (Some(method), id) => {
            let method = method.into_owned();
            let params = envelope.params.map(ToOwned::to_owned);
            match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            }
        }
        (None, id) => match (envelope.result, envelope.error) {
            (_, Some(error)) => Incoming::Response {
                id,
                answer: Err(failure::from_wire(error.get())),
            },
            (Some(result), None) if id.is_some() => Incoming::Response {
                id,
                answer: Ok(result.to_owned()),
            },
            (Some(_) | None, None) => invalid(body),
        },
    }
}

/// Says what is wrong with a body. Reads it again, because here only the answer matters.
fn invalid(body: &[u8]) -> Incoming {
    let value = match serde_json::from_slice::<Value>(body) {
        Ok(value) => value,
        Err(error) => {
            return Incoming::Invalid {
                id: None,
                failure: Failure::new(
                    ErrorKind::ParseError,
                    format!(
                        "The frame's body is not JSON ({error}). Send one JSON object a frame, in UTF-8."
                    ),
                ),
            };
        }
    };
    let refuse = |id, why: &str| Incoming::Invalid {
        id,
        failure: Failure::new(ErrorKind::InvalidRequest, why),
    };
    let object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return refuse(
                None,
                "Batches are not supported. Send each request in a frame of its own.",
            );
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return refuse(
                None,
                "A message has to be a JSON object with `jsonrpc` and `method`.",
            );
        }
    };
    let id = match object.get("id") {
        None => None,
        Some(Value::String(id)) => Some(Id::String(id.clone())),
        Some(Value::Number(id)) => Some(Id::Number(id.clone())),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            return refuse(None, "`id` has to be a string or a number.");
        }
    };
    let why = if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        "`jsonrpc` has to be \"2.0\"."
    } else if object
        .get("method")
        .is_some_and(|method| !method.is_string())
    {
        "`method` has to be a string."
    } else if object.contains_key("method")
        && (object.contains_key("result") || object.contains_key("error"))
    {
        "A message with `method` cannot have `result` or `error`."
    } else if object.contains_key("method") {
        "The message names a member twice."
    } else {
        "A message has to have `method`, or `id` with `result` or `error`."
    };
    refuse(id, why)
}

#[derive(Serialize)]
struct Call<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Success<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: &'a RawValue,
}

#[derive(Serialize)]
struct Error<'a> {
    jsonrpc: &'static str,
    id: Option<&'a Id>,
    error: failure::Wire<'a>,
}

/// The frame of a request, or of a notification where there is no id.
pub(crate) fn call<P: Serialize>(
    id: Option<u64>,
    method: &str,
    params: &P,
) -> Result<Vec<u8>, Failure> {
    let call = Call {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    let body = serde_json::to_vec(&call).map_err(|error| {
        Failure::new(
            ErrorKind::Internal,
            format!("The parameters of `{method}` cannot be written as JSON ({error})."),
        )
    })?;
    let mut frame = Vec::new();
    write_frame(&mut frame, &body);
    Ok(frame)
}

/// Appends the frame of a response; `scratch` is used on the way.
pub(crate) fn respond(out: &mut Vec<u8>, scratch: &mut Vec<u8>, id: Option<&Id>, answer: &Answer) {
    scratch.clear();
    let written = match (id, answer) {
        (Some(id), Ok(result)) => serde_json::to_writer(
            &mut *scratch,
            &Success {
                jsonrpc: "2.0",
                id,
                result,
            },
        ),
        (None, Ok(_)) => return,
        (id, Err(failure)) => serde_json::to_writer(
            &mut *scratch,
            &Error {
                jsonrpc: "2.0",
                id,
                error: failure::Wire::new(failure),
            },
        ),
    };
    match written {
        Ok(()) => write_frame(out, scratch),
        // JSON that was read or made as JSON can be written; a vector takes it.
        Err(error) => tracing::error!(%error, "a response could not be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message as one line, so that whole values are compared.
    fn seen(body: &str) -> String {
        let raw = |raw: Option<Box<RawValue>>| raw.map_or("-".into(), |raw| raw.get().to_owned());
        let id = |id: Option<Id>| id.map_or("-".into(), |id| id.to_string());
        match read(body.as_bytes()) {
            Incoming::Request { id, method, params } => {
                format!("request {id} {method} {}", raw(params))
            }
            Incoming::Notification { method, params } => {
                format!("notification {method} {}", raw(params))
            }
            Incoming::Response {
                id: of,
                answer: Ok(result),
            } => format!("result {} {}", id(of), result.get()),
            Incoming::Response {
                id: of,
                answer: Err(failure),
            } => format!("error {} {:?} {}", id(of), failure.kind, failure.message),
            Incoming::Invalid { id: of, failure } => {
                format!("invalid {} {:?} {}", id(of), failure.kind, failure.message)
            }
        }
    }

    #[test]
    fn each_kind_of_message_is_told_apart() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b": [1]}}"#,
                r#"request 1 a {"b": [1]}"#,
            ),
            (
                r#" {"method":"a\/b","id":"x","jsonrpc":"2.0"}"#,
                r#"request "x" a/b -"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
                "request 1 a -",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"a","params":[]}"#,
                "notification a []",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
                "error - ParseError no",
            ),
            (
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no","data":{"kind":"busy"}}}"#,
                "error 2 Busy no",
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(seen(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        let cases = [
            (
                "[]",
                "invalid - InvalidRequest Batches are not supported. Send each request in a frame of its own.",
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
                "invalid - InvalidRequest Batches are not supported. Send each request in a frame of its own.",
            ),
            (
                "7",
                "invalid - InvalidRequest A message has to be a JSON object with `jsonrpc` and `method`.",
            ),
            (
                r#"{"id":1,"method":"a"}"#,
                "invalid 1 InvalidRequest `jsonrpc` has to be \"2.0\".",
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
                "invalid 1 InvalidRequest `jsonrpc` has to be \"2.0\".",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1}"#,
                "invalid 1 InvalidRequest A message has to have `method`, or `id` with `result` or `error`.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
                "invalid 1 InvalidRequest `method` has to be a string.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
                "invalid - InvalidRequest `id` has to be a string or a number.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
                "invalid - InvalidRequest `id` has to be a string or a number.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","result":1}"#,
                "invalid 1 InvalidRequest A message with `method` cannot have `result` or `error`.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
                "invalid 1 InvalidRequest The message names a member twice.",
            ),
            (
                r#"{"jsonrpc":"#,
                "invalid - ParseError The frame's body is not JSON (EOF while parsing a value at line 1 column 11). Send one JSON object a frame, in UTF-8.",
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(seen(body), expected, "{body}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_a_parse_error() {
        let Incoming::Invalid { id, failure } =
            read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}")
        else {
            panic!("taken for a message");
        };
        assert_eq!((id, failure.kind), (None, ErrorKind::ParseError));
    }
}
