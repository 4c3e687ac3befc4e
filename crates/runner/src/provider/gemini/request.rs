//! A turn as Google Gemini wants to be asked.

use serde_json::{Map, Value, json};

use crate::provider::history::{CallIds, Side, Told, sides};
use crate::provider::http::{Call, Endpoint};
use crate::provider::{
    Content, Effort, Image, Message, Part, ToolChoice, ToolResult, TurnRequest, Wire,
};

/// Calls that another model made have no signature; others send this in its place. It was never tried
/// against the real service.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(in crate::provider) fn call(endpoint: &Endpoint, request: &TurnRequest) -> Call {
    let key = endpoint.key().map(|key| ("x-goog-api-key", key.to_owned()));
    Call {
        path: format!(
            "/models/{}:streamGenerateContent?alt=sse",
            segment(&request.model)
        ),
        headers: key.into_iter().collect(),
        body: body(endpoint.name(), request),
    }
}

/// A model's name as part of an address: nothing in it leads elsewhere.
fn segment(model: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    model
        .bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

pub(super) fn body(provider: &str, request: &TurnRequest) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    if !request.instructions.is_empty() {
        put(
            "systemInstruction",
            json!({ "parts": [{ "text": request.instructions }] }),
        );
    }
    put("contents", contents(provider, request).into());
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema,
                })
            })
            .collect();
        put("tools", json!([{ "functionDeclarations": tools }]));
        let mode = match request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => Some("ANY"),
            ToolChoice::None => Some("NONE"),
        };
        if let Some(mode) = mode {
            put(
                "toolConfig",
                json!({ "functionCallingConfig": { "mode": mode } }),
            );
        }
    }
    let mut config = Map::new();
    if let Some(length) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), length.into());
    }
    if let Some(temperature) = request.temperature {
        config.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(effort) = request.effort {
        config.insert(
            "thinkingConfig".to_owned(),
            thinking(&request.model, effort),
        );
    }
    if !config.is_empty() {
        put("generationConfig", Value::Object(config));
    }
    Value::Object(body)
}

/// Up to 2.5 in tokens, later in words.
fn thinking(model: &str, effort: Effort) -> Value {
    let (tokens, word) = match effort {
        Effort::Low => (1024, "LOW"),
        Effort::Medium => (8192, "MEDIUM"),
        Effort::High => (24_576, "HIGH"),
    };
    match model.starts_with("gemini-2") {
        true => json!({ "includeThoughts": true, "thinkingBudget": tokens }),
        false => json!({ "includeThoughts": true, "thinkingLevel": word }),
    }
}

fn contents(provider: &str, request: &TurnRequest) -> Vec<Value> {
    sides(&request.messages)
        .into_iter()
        .map(|side| match side {
            Side::Told { results, rest } => {
                let pictures = results.iter().flat_map(|result| images(result)).map(inline);
                let pictures: Vec<Value> = pictures.collect();
                let mut parts: Vec<Value> = results.into_iter().map(response).collect();
                parts.extend(pictures);
                parts.extend(rest.into_iter().map(|told| match told {
                    Told::Text(text) => json!({ "text": text }),
                    Told::Image(image) => inline(image),
                }));
                ("user", parts)
            }
            Side::Said(message) => ("model", said(provider, message)),
        })
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(role, parts)| json!({ "role": role, "parts": parts }))
        .collect()
}

fn said(provider: &str, message: &Message) -> Vec<Value> {
    if let Some(Value::Array(parts)) = message.raw_of(provider, Wire::Gemini) {
        return parts.clone();
    }
    let mut parts = Vec::new();
    let mut signed = false;
    for part in &message.content {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => parts.push(json!({ "text": text })),
            Part::ToolCall(call) => {
                let mut part = json!({
                    "functionCall": { "name": call.name, "args": call.arguments },
                });
                if !CallIds::is_ours(&call.call_id) {
                    part["functionCall"]["id"] = call.call_id.as_str().into();
                }
                // Of parallel calls only the first is signed.
                if !std::mem::replace(&mut signed, true) {
                    part["thoughtSignature"] = NO_SIGNATURE.into();
                }
                parts.push(part);
            }
            Part::Reasoning { .. } | Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    parts
}

fn response(result: &ToolResult) -> Value {
    let key = if result.is_error { "error" } else { "output" };
    let mut response = json!({ "name": result.name, "response": { key: result.words() } });
    if !CallIds::is_ours(&result.call_id) {
        response["id"] = result.call_id.as_str().into();
    }
    json!({ "functionResponse": response })
}

fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|content| match content {
        Content::Image(image) => Some(image),
        Content::Text { .. } => None,
    })
}

fn inline(image: &Image) -> Value {
    json!({ "inlineData": { "mimeType": image.media_type, "data": image.base64 } })
}
