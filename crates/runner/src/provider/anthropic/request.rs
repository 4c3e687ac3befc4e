//! A turn as Anthropic Messages wants to be asked.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::provider::history::{Side, Told, sides};
use crate::provider::http::{Body, Call, Endpoint};
use crate::provider::verbatim::Piece;
use crate::provider::{
    Content, Effort, Image, Message, Part, ToolChoice, ToolResult, TurnRequest, Verbatim, Wire,
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

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Piece<'a>>,
}

pub(super) fn body(provider: &str, request: &TurnRequest) -> Bytes {
    let mut body = Body::new();
    body.put("model", &request.model);
    body.put("stream", &true);
    body.put(
        "max_tokens",
        &request.max_output_tokens.unwrap_or(USUAL_LENGTH),
    );
    let tools = request.tools.iter().map(|tool| Function {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.input_schema,
        cache_control: None,
    });
    let mut tools: Vec<Function<'_>> = tools.collect();
    // A mark caches all that stands before it: the tools, then the instructions, then the
    // conversation. One is behind what never changes in a session, one at the end of what was said.
    if request.instructions.is_empty() {
        if let Some(last) = tools.last_mut() {
            last.cache_control = Some(mark());
        }
    } else {
        let mut instructions = json!({ "type": "text", "text": request.instructions });
        remember(&mut instructions);
        body.put("system", &json!([instructions]));
    }
    if !tools.is_empty() {
        body.put("tools", &tools);
        match request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.put("tool_choice", &json!({ "type": "any" })),
            ToolChoice::None => body.put("tool_choice", &json!({ "type": "none" })),
        }
    }
    body.put("messages", &messages(provider, request));
    if let Some(temperature) = request.temperature {
        body.put("temperature", &temperature);
    }
    if let Some(effort) = request.effort {
        body.put(
            "thinking",
            &json!({ "type": "adaptive", "display": "summarized" }),
        );
        let effort = match effort {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        body.put("output_config", &json!({ "effort": effort }));
    }
    body.done()
}

fn remember(block: &mut Value) {
    block["cache_control"] = mark();
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

fn messages<'a>(provider: &str, request: &'a TurnRequest) -> Vec<Turn<'a>> {
    let verbatim: HashSet<&str> = request
        .messages
        .iter()
        .filter(|message| message.raw_of(provider, Wire::Anthropic).is_some())
        .flat_map(|message| message.tool_calls())
        .map(|call| call.call_id.as_str())
        .collect();
    let mut messages: Vec<Turn<'a>> = Vec::new();
    for side in sides(&request.messages) {
        let (role, content): (_, Vec<_>) = match side {
            Side::Told { results, rest } => {
                let results = results.into_iter().map(|one| result(one, &verbatim));
                let rest = rest.into_iter().map(|told| match told {
                    Told::Text(text) => json!({ "type": "text", "text": text }),
                    Told::Image(shown) => image(shown),
                });
                ("user", results.chain(rest).map(Piece::Made).collect())
            }
            Side::Said(message) => ("assistant", said(provider, message)),
        };
        if !content.is_empty() {
            messages.push(Turn { role, content });
        }
    }
    if let Some(last) = messages.last_mut()
        && last.role == "user"
        && let Some(Piece::Made(block)) = last.content.last_mut()
    {
        remember(block);
    }
    messages
}

fn said<'a>(provider: &str, message: &'a Message) -> Vec<Piece<'a>> {
    if let Some(blocks) = message.raw_of(provider, Wire::Anthropic) {
        let blocks = blocks.iter().map(Verbatim::as_raw);
        return blocks.map(Piece::Own).collect();
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
        .map(Piece::Made)
        .collect()
}

/// A result goes by the id that its call goes by, which is `verbatim` where the call was made here.
fn result(result: &ToolResult, verbatim: &HashSet<&str>) -> Value {
    let call_id = result.call_id.as_str();
    let call_id = match verbatim.contains(call_id) {
        true => call_id.to_owned(),
        false => id(call_id),
    };

    let content: Vec<Value> = result
        .content
        .iter()
        .filter_map(|content| match content {
            Content::Text { text } if text.is_empty() => None,
            Content::Text { text } => Some(json!({ "type": "text", "text": text })),
            Content::Image(shown) => Some(image(shown)),
        })
        .collect();
    let mut block = json!({ "type": "tool_result", "tool_use_id": call_id });
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
