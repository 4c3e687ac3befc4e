//! A turn as OpenAI Responses wants to be asked. Nothing is kept there: the whole conversation
//! goes along every time, with the reasoning as it was encrypted.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::provider::history::{Side, Told, data_url, sides};
use crate::provider::http::{Body, Call, Endpoint};
use crate::provider::verbatim::Piece;
use crate::provider::{
    Content, Effort, Message, Part, ToolChoice, ToolResult, TurnRequest, Verbatim, Wire,
};

pub(in crate::provider) fn call(endpoint: &Endpoint, request: &TurnRequest) -> Call {
    Call {
        path: "/responses".to_owned(),
        headers: endpoint.bearer().into_iter().collect(),
        body: body(endpoint.name(), request),
    }
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas know no optional parameters.
    strict: bool,
}

pub(super) fn body(provider: &str, request: &TurnRequest) -> Bytes {
    let mut body = Body::new();
    body.put("model", &request.model);
    body.put("stream", &true);
    body.put("store", &false);
    if !request.instructions.is_empty() {
        body.put("instructions", &request.instructions);
    }
    body.put("input", &input(provider, request));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| Function {
            kind: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
            strict: false,
        });
        body.put("tools", &tools.collect::<Vec<_>>());
        body.put("parallel_tool_calls", &true);
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.put("tool_choice", "required"),
            ToolChoice::None => body.put("tool_choice", "none"),
        }
    }
    if let Some(length) = request.max_output_tokens {
        body.put("max_output_tokens", &length);
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
        body.put("reasoning", &json!({ "effort": effort, "summary": "auto" }));
    }
    // A model that does not reason refuses to be asked for its reasoning.
    if request.effort.is_some() || reasons(&request.model) {
        body.put("include", &json!(["reasoning.encrypted_content"]));
    }
    if let Some(key) = &request.cache_key {
        body.put("prompt_cache_key", key);
    }
    body.done()
}

/// `o3`, `gpt-5` and what comes after them.
fn reasons(model: &str) -> bool {
    let number = |rest: &str| {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest[..digits].parse::<u32>().ok()
    };
    if model.contains("-chat") {
        return false;
    }
    match (model.strip_prefix("gpt-"), model.strip_prefix('o')) {
        (Some(rest), _) => number(rest).is_some_and(|version| version >= 5),
        (_, Some(rest)) => number(rest).is_some(),
        (None, None) => false,
    }
}

fn input<'a>(provider: &str, request: &'a TurnRequest) -> Vec<Piece<'a>> {
    let mut items = Vec::new();
    for side in sides(&request.messages) {
        match side {
            Side::Told { results, rest } => {
                items.extend(results.into_iter().map(result).map(Piece::Made));
                let content: Vec<Value> = rest
                    .into_iter()
                    .map(|told| match told {
                        Told::Text(text) => json!({ "type": "input_text", "text": text }),
                        Told::Image(image) => shown(&data_url(image)),
                    })
                    .collect();
                if !content.is_empty() {
                    let told = json!({ "type": "message", "role": "user", "content": content });
                    items.push(Piece::Made(told));
                }
            }
            Side::Said(message) => said(provider, message, &mut items),
        }
    }
    items
}

fn said<'a>(provider: &str, message: &'a Message, items: &mut Vec<Piece<'a>>) {
    if let Some(raw) = message.raw_of(provider, Wire::Responses) {
        items.extend(raw.iter().map(Verbatim::as_raw).map(Piece::Own));
        return;
    }
    for part in &message.content {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => items.push(Piece::Made(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            }))),
            Part::ToolCall(call) => items.push(Piece::Made(json!({
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments.to_string(),
            }))),
            Part::Reasoning { .. } | Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
}

fn result(result: &ToolResult) -> Value {
    let pictures = result
        .content
        .iter()
        .any(|content| matches!(content, Content::Image(_)));
    let output = match pictures {
        false => Value::String(result.words()),
        true => result
            .content
            .iter()
            .map(|content| match content {
                Content::Text { text } => json!({ "type": "input_text", "text": text }),
                Content::Image(image) => shown(&data_url(image)),
            })
            .collect(),
    };
    json!({ "type": "function_call_output", "call_id": result.call_id, "output": output })
}

fn shown(url: &str) -> Value {
    json!({ "type": "input_image", "image_url": url, "detail": "auto" })
}
