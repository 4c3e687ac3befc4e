//! A turn as Anthropic Messages wants to be asked.

use serde_json::{Map, Value, json};

use crate::provider::history::{Side, Told, sides};
use crate::provider::http::{Call, Endpoint};
use crate::provider::{
    Content, Effort, Image, Message, Part, ToolChoice, ToolResult, TurnRequest, Wire,
};

const VERSION: &str = "2023-06-01";

/// What an answer may take where nothing is said; this wire wants to hear a number.
const USUAL_LENGTH: u32 = 16_384;

pub(in crate::provider) fn call(endpoint: &Endpoint, request: &TurnRequest) -> Call {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(endpoint.key().map(|key| ("x-api-key", key.to_owned())));
    Call {
        path: "/messages".to_owned(),
        headers,
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
    put(
        "max_tokens",
        request.max_output_tokens.unwrap_or(USUAL_LENGTH).into(),
    );
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            })
        })
        .collect();
    // A mark caches all that stands before it: the tools, then the instructions, then the
    // conversation. One is behind what never changes in a session, one at the end of what was said.
    if request.instructions.is_empty() {
        tools.last_mut().map(remember);
    } else {
        let mut instructions = json!({ "type": "text", "text": request.instructions });
        remember(&mut instructions);
        put("system", json!([instructions]));
    }
    if !tools.is_empty() {
        put("tools", tools.into());
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => put("tool_choice", json!({ "type": "any" })),
            ToolChoice::None => put("tool_choice", json!({ "type": "none" })),
        }
    }
    put("messages", messages(provider, request).into());
    if let Some(temperature) = request.temperature {
        put("temperature", temperature.into());
    }
    if let Some(effort) = request.effort {
        put(
            "thinking",
            json!({ "type": "adaptive", "display": "summarized" }),
        );
        let effort = match effort {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        put("output_config", json!({ "effort": effort }));
    }
    Value::Object(body)
}

fn remember(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

fn messages(provider: &str, request: &TurnRequest) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for side in sides(&request.messages) {
        let (role, content) = match side {
            Side::Told { results, rest } => {
                let results = results.into_iter().map(result);
                let rest = rest.into_iter().map(|told| match told {
                    Told::Text(text) => json!({ "type": "text", "text": text }),
                    Told::Image(shown) => image(shown),
                });
                ("user", results.chain(rest).collect())
            }
            Side::Said(message) => ("assistant", said(provider, message)),
        };
        if !content.is_empty() {
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    if let Some(last) = messages.last_mut()
        && last["role"] == "user"
        && let Some(block) = last["content"]
            .as_array_mut()
            .and_then(|blocks| blocks.last_mut())
    {
        remember(block);
    }
    messages
}

fn said(provider: &str, message: &Message) -> Vec<Value> {
    if let Some(Value::Array(blocks)) = message.raw_of(provider, Wire::Anthropic) {
        // An empty text can come, but is refused when it goes back.
        let empty = |block: &&Value| block["type"] == "text" && block["text"] == "";
        return blocks
            .iter()
            .filter(|block| !empty(block))
            .cloned()
            .collect();
    }
    message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if text.is_empty() => None,
            Part::Text { text } => Some(json!({ "type": "text", "text": text })),
            Part::ToolCall(call) => Some(json!({
                "type": "tool_use",
                "id": id(&call.call_id),
                "name": call.name,
                "input": call.arguments,
            })),
            // Thinking without its signature is refused.
            Part::Reasoning { .. } | Part::Image(_) | Part::ToolResult(_) => None,
        })
        .collect()
}

fn result(result: &ToolResult) -> Value {
    let content: Vec<Value> = result
        .content
        .iter()
        .filter_map(|content| match content {
            Content::Text { text } if text.is_empty() => None,
            Content::Text { text } => Some(json!({ "type": "text", "text": text })),
            Content::Image(shown) => Some(image(shown)),
        })
        .collect();
    let mut block = json!({ "type": "tool_result", "tool_use_id": id(&result.call_id) });
    if !content.is_empty() {
        block["content"] = content.into();
    }
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

fn image(image: &Image) -> Value {
    json!({
        "type": "image",
        "source": { "type": "base64", "media_type": image.media_type, "data": image.base64 },
    })
}

/// Ids of other providers may have letters that are refused here.
fn id(call_id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    call_id
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}
