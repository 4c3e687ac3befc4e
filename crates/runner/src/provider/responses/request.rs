//! A turn as OpenAI Responses wants to be asked. Nothing is kept there: the whole conversation
//! goes along every time, with the reasoning as it was encrypted.

use serde_json::{Map, Value, json};

use crate::provider::history::{Side, Told, data_url, sides};
use crate::provider::http::{Call, Endpoint};
use crate::provider::{Content, Effort, Message, Part, ToolChoice, ToolResult, TurnRequest, Wire};

pub(in crate::provider) fn call(endpoint: &Endpoint, request: &TurnRequest) -> Call {
    Call {
        path: "/responses".to_owned(),
        headers: endpoint.bearer().into_iter().collect(),
        body: body(endpoint.name(), request),
    }
}

pub(super) fn body(provider: &str, request: &TurnRequest) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", request.model.as_str().into());
    put("stream", true.into());
    put("store", false.into());
    if !request.instructions.is_empty() {
        put("instructions", request.instructions.as_str().into());
    }
    put("input", input(provider, request).into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
                // Strict schemas know no optional parameters.
                "strict": false,
            })
        });
        put("tools", tools.collect());
        put("parallel_tool_calls", true.into());
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => put("tool_choice", "required".into()),
            ToolChoice::None => put("tool_choice", "none".into()),
        }
    }
    if let Some(length) = request.max_output_tokens {
        put("max_output_tokens", length.into());
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
        put("reasoning", json!({ "effort": effort, "summary": "auto" }));
    }
    // A model that does not reason refuses to be asked for its reasoning.
    if request.effort.is_some() || reasons(&request.model) {
        put("include", json!(["reasoning.encrypted_content"]));
    }
    if let Some(key) = &request.cache_key {
        put("prompt_cache_key", key.as_str().into());
    }
    Value::Object(body)
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

fn input(provider: &str, request: &TurnRequest) -> Vec<Value> {
    let mut items = Vec::new();
    for side in sides(&request.messages) {
        match side {
            Side::Told { results, rest } => {
                items.extend(results.into_iter().map(result));
                let content: Vec<Value> = rest
                    .into_iter()
                    .map(|told| match told {
                        Told::Text(text) => json!({ "type": "input_text", "text": text }),
                        Told::Image(image) => shown(&data_url(image)),
                    })
                    .collect();
                if !content.is_empty() {
                    items.push(json!({ "type": "message", "role": "user", "content": content }));
                }
            }
            Side::Said(message) => said(provider, message, &mut items),
        }
    }
    items
}

fn said(provider: &str, message: &Message, items: &mut Vec<Value>) {
    if let Some(Value::Array(raw)) = message.raw_of(provider, Wire::Responses) {
        items.extend(raw.iter().cloned());
        return;
    }
    for part in &message.content {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => items.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            })),
            Part::ToolCall(call) => items.push(json!({
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": match &call.malformed {
                    Some(written) => written.clone(),
                    None => call.arguments.to_string(),
                },
            })),
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
