//! A turn as Chat Completions wants to be asked.

use serde_json::{Map, Value, json};

use crate::provider::history::{Side, Told, data_url, sides};
use crate::provider::http::{Call, Endpoint};
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

pub(super) fn body(provider: &str, dialect: Dialect, request: &TurnRequest) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", request.model.as_str().into());
    put("stream", true.into());
    put("stream_options", json!({ "include_usage": true }));
    put("messages", messages(provider, request).into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            })
        });
        put("tools", tools.collect());
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => put("tool_choice", "required".into()),
            ToolChoice::None => put("tool_choice", "none".into()),
        }
    }
    if let Some(length) = request.max_output_tokens {
        let key = match dialect {
            Dialect::OpenAi => "max_completion_tokens",
            Dialect::Compatible => "max_tokens",
        };
        put(key, length.into());
    }
    if let Some(temperature) = request.temperature {
        put("temperature", temperature.into());
    }
    if let Some(effort) = request.effort {
        let effort = match effort {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        put("reasoning_effort", effort.into());
    }
    if let (Dialect::OpenAi, Some(key)) = (dialect, &request.cache_key) {
        put("prompt_cache_key", key.as_str().into());
    }
    Value::Object(body)
}

fn messages(provider: &str, request: &TurnRequest) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        messages.push(json!({ "role": "system", "content": request.instructions }));
    }
    for side in sides(&request.messages) {
        match side {
            Side::Told { results, mut rest } => {
                // A tool has words only; its pictures are shown right after.
                let pictures: Vec<&Image> =
                    results.iter().flat_map(|result| images(result)).collect();
                rest.splice(0..0, pictures.into_iter().map(Told::Image));
                messages.extend(results.into_iter().map(|result| {
                    json!({
                        "role": "tool",
                        "tool_call_id": result.call_id,
                        "content": result.words(),
                    })
                }));
                if !rest.is_empty() {
                    messages.push(json!({ "role": "user", "content": content(&rest) }));
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

fn said(provider: &str, message: &Message) -> Option<Value> {
    if let Some(raw) = message.raw_of(provider, Wire::Chat) {
        return Some(raw.clone());
    }
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| {
            let arguments = match &call.malformed {
                Some(written) => written.clone(),
                None => call.arguments.to_string(),
            };
            json!({
                "id": call.call_id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
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
    turn(&text.concat(), calls)
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
