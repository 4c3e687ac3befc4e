//! A turn as Chat Completions wants to be asked.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::provider::history::{Side, Told, data_url, sides};
use crate::provider::http::{Body, Call, Endpoint};
use crate::provider::verbatim::Piece;
use crate::provider::{
    Content, Effort, Image, Message, Part, ToolChoice, ToolResult, TurnRequest, Wire,
};

/// Who takes part of the wire's newer words; compatible servers may refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Compatible,
}

pub(in crate::provider) fn call(endpoint: &Endpoint, request: &TurnRequest) -> Call {
    let dialect = match endpoint.base().starts_with("https://api.openai.com") {
        true => Dialect::OpenAi,
        false => Dialect::Compatible,
    };
    Call {
        path: "/chat/completions".to_owned(),
        headers: endpoint.bearer().into_iter().collect(),
        body: body(endpoint.name(), dialect, request),
    }
}

#[derive(Serialize)]
struct Callable<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

pub(super) fn body(provider: &str, dialect: Dialect, request: &TurnRequest) -> Bytes {
    let mut body = Body::new();
    body.put("model", &request.model);
    body.put("stream", &true);
    body.put("stream_options", &json!({ "include_usage": true }));
    body.put("messages", &messages(provider, request));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| Callable {
            kind: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.input_schema,
            },
        });
        body.put("tools", &tools.collect::<Vec<_>>());
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.put("tool_choice", "required"),
            ToolChoice::None => body.put("tool_choice", "none"),
        }
    }
    if let Some(length) = request.max_output_tokens {
        let key = match dialect {
            Dialect::OpenAi => "max_completion_tokens",
            Dialect::Compatible => "max_tokens",
        };
        body.put(key, &length);
    }
    if let Some(temperature) = request.temperature {
        body.put("temperature", &temperature);
    }
    if let Some(effort) = request.effort {
        let effort = match effort {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        body.put("reasoning_effort", effort);
    }
    if let (Dialect::OpenAi, Some(key)) = (dialect, &request.cache_key) {
        body.put("prompt_cache_key", key);
    }
    body.done()
}

fn messages<'a>(provider: &str, request: &'a TurnRequest) -> Vec<Piece<'a>> {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        let system = json!({ "role": "system", "content": request.instructions });
        messages.push(Piece::Made(system));
    }
    for side in sides(&request.messages) {
        match side {
            Side::Told { results, mut rest } => {
                // A tool has words only; its pictures are shown right after.
                let pictures: Vec<&Image> =
                    results.iter().flat_map(|result| images(result)).collect();
                rest.splice(0..0, pictures.into_iter().map(Told::Image));
                messages.extend(results.into_iter().map(|result| {
                    Piece::Made(json!({
                        "role": "tool",
                        "tool_call_id": result.call_id,
                        "content": result.words(),
                    }))
                }));
                if !rest.is_empty() {
                    let told = json!({ "role": "user", "content": content(&rest) });
                    messages.push(Piece::Made(told));
                }
            }
            Side::Said(message) => messages.extend(said(provider, message)),
        }
    }
    messages
}

fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|content| match content {
        Content::Image(image) => Some(image),
        Content::Text { .. } => None,
    })
}

/// Plain text where that will do: small servers understand nothing else.
fn content(told: &[Told<'_>]) -> Value {
    let texts: Option<Vec<&str>> = told
        .iter()
        .map(|told| match told {
            Told::Text(text) => Some(*text),
            Told::Image(_) => None,
        })
        .collect();
    if let Some(texts) = texts {
        return texts.join("\n\n").into();
    }
    told.iter()
        .map(|told| match told {
            Told::Text(text) => json!({ "type": "text", "text": text }),
            Told::Image(image) => {
                json!({ "type": "image_url", "image_url": { "url": data_url(image) } })
            }
        })
        .collect()
}

fn said<'a>(provider: &str, message: &'a Message) -> Option<Piece<'a>> {
    if let Some([raw, ..]) = message.raw_of(provider, Wire::Chat) {
        return Some(Piece::Own(raw.as_raw()));
    }
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| {
            json!({
                "id": call.call_id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments.to_string() },
            })
        })
        .collect();
    let text: Vec<&str> = message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
            Part::Reasoning { .. } => None,
        })
        .collect();
    turn(&text.concat(), calls).map(Piece::Made)
}

/// An assistant's message, if there is anything in it.
pub(super) fn turn(text: &str, calls: Vec<Value>) -> Option<Value> {
    let mut message = json!({ "role": "assistant", "content": text });
    match (text.is_empty(), calls.is_empty()) {
        (true, true) => return None,
        (true, false) => message["content"] = Value::Null,
        (false, _) => {}
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Some(message)
}
