//! A turn as Google Gemini wants to be asked.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::provider::history::{CallIds, Side, Told, sides};
use crate::provider::http::{Body, Call, Endpoint};
use crate::provider::verbatim::Piece;
use crate::provider::{
    Content, Effort, Image, Message, Part, ToolChoice, ToolResult, TurnRequest, Verbatim, Wire,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declared<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<Piece<'a>>,
}

pub(super) fn body(provider: &str, request: &TurnRequest) -> Bytes {
    let mut body = Body::new();
    if !request.instructions.is_empty() {
        body.put(
            "systemInstruction",
            &json!({ "parts": [{ "text": request.instructions }] }),
        );
    }
    body.put("contents", &contents(provider, request));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| Function {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.input_schema,
        });
        let declared = Declared {
            function_declarations: tools.collect(),
        };
        body.put("tools", &[declared]);
        let mode = match request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => Some("ANY"),
            ToolChoice::None => Some("NONE"),
        };
        if let Some(mode) = mode {
            body.put(
                "toolConfig",
                &json!({ "functionCallingConfig": { "mode": mode } }),
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
        body.put("generationConfig", &config);
    }
    body.done()
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

fn contents<'a>(provider: &str, request: &'a TurnRequest) -> Vec<Turn<'a>> {
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
                Turn {
                    role: "user",
                    parts: parts.into_iter().map(Piece::Made).collect(),
                }
            }
            Side::Said(message) => Turn {
                role: "model",
                parts: said(provider, message),
            },
        })
        .filter(|turn| !turn.parts.is_empty())
        .collect()
}

fn said<'a>(provider: &str, message: &'a Message) -> Vec<Piece<'a>> {
    if let Some(parts) = message.raw_of(provider, Wire::Gemini) {
        let parts = parts.iter().map(Verbatim::as_raw);
        return parts.map(Piece::Own).collect();
    }
    let mut parts = Vec::new();
    let mut signed = false;
    for part in &message.content {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => parts.push(Piece::Made(json!({ "text": text }))),
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
                parts.push(Piece::Made(part));
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
