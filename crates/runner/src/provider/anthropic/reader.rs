//! The answer of Anthropic Messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::provider::http::{self, Fault, object, take, take_text};
use crate::provider::verbatim::{Fields, raw, within};
use crate::provider::{
    Delta, Message, Origin, Part, Raw, Role, Stop, ToolCall, Turn, TurnRequest, Usage, Verbatim,
    Wire,
};

/// A content block, as far as it came.
struct Block {
    value: Value,
    /// The same as it came, but for what grew since.
    fields: Fields,
    grown: BTreeSet<&'static str>,
    /// The pieces of its input.
    json: String,
    call: Option<ToolCall>,
    closed: bool,
}

pub(in crate::provider) struct Reader {
    provider: String,
    blocks: BTreeMap<u64, Block>,
    usage: Usage,
    stop_reason: Option<String>,
    complete: bool,
}

impl http::Reader for Reader {
    fn new(provider: &str, _: &TurnRequest) -> Self {
        Self {
            provider: provider.to_owned(),
            blocks: BTreeMap::new(),
            usage: Usage::default(),
            stop_reason: None,
            complete: false,
        }
    }

    fn event(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut event = object(data)?;
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.used(&event["message"]["usage"]);
                out.push(Delta::Used(self.usage));
            }
            "content_block_start" => {
                let fields = within(data, &["content_block"]);
                let fields = fields.map(|block| Fields::of(block.get()));
                let block = take(&mut event, "content_block");
                self.open(index, block, fields.unwrap_or_default(), out);
            }
            "content_block_delta" => self.grow(index, take(&mut event, "delta"), out),
            "content_block_stop" => self.close(index, out),
            "message_delta" => {
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
                self.used(&event["usage"]);
            }
            "message_stop" => self.complete = true,
            "error" => return Err(Fault::told(&event["error"])),
            // `ping`, and whatever there will be.
            _ => {}
        }
        Ok(())
    }

    fn end(mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if !self.complete {
            return Err(Fault::Cut("its end, `message_stop`, never came"));
        }
        for index in self.blocks.keys().copied().collect::<Vec<_>>() {
            self.close(index, out);
        }
        let content: Vec<Part> = self.blocks.values().filter_map(part).collect();
        let calls = content.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop = match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Stop::EndTurn,
            Some("tool_use") => Stop::ToolUse,
            Some("max_tokens") => Stop::MaxTokens,
            Some("model_context_window_exceeded") => Stop::ContextFull,
            Some("refusal") => Stop::Refusal,
            Some("pause_turn") => Stop::Paused,
            Some(other) => Stop::Other(other.to_owned()),
            None if calls => Stop::ToolUse,
            None => Stop::EndTurn,
        };
        let turn = self.blocks.into_values().filter_map(written).collect();
        out.push(Delta::Done(Turn {
            message: Message {
                role: Role::Assistant,
                origin: Origin::System,
                content,
                raw: Some(Raw {
                    provider: self.provider,
                    wire: Wire::Anthropic,
                    turn,
                }),
            },
            usage: self.usage,
            stop,
        }));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.complete
    }
}

impl Reader {
    fn open(&mut self, index: u64, value: Value, fields: Fields, out: &mut Vec<Delta>) {
        if !value.is_object() {
            return;
        }
        let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let mut call = None;
        match value["type"].as_str() {
            Some("text") if value["text"] != "" => out.push(Delta::Text(word("text"))),
            Some("thinking") if value["thinking"] != "" => {
                out.push(Delta::Reasoning(word("thinking")));
            }
            Some("tool_use") => {
                let (call_id, name) = (word("id"), word("name"));
                out.push(Delta::ToolCallStarted {
                    call_id: call_id.clone(),
                    name: name.clone(),
                });
                call = Some(ToolCall {
                    call_id,
                    name,
                    arguments: match &value["input"] {
                        input @ Value::Object(_) if protocol::is_plain(input) => input.clone(),
                        _ => json!({}),
                    },
                    malformed: None,
                });
            }
            _ => {}
        }
        let block = Block {
            value,
            fields,
            grown: BTreeSet::new(),
            json: String::new(),
            call,
            closed: false,
        };
        self.blocks.insert(index, block);
    }

    fn grow(&mut self, index: u64, mut delta: Value, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.get_mut(&index) else {
            return;
        };
        let mut word = |key: &str| take_text(&mut delta, key);
        match word("type").as_str() {
            "text_delta" => {
                let text = word("text");
                append(&mut block.value["text"], &text);
                block.grown.insert("text");
                out.push(Delta::Text(text));
            }
            "thinking_delta" => {
                let text = word("thinking");
                append(&mut block.value["thinking"], &text);
                block.grown.insert("thinking");
                out.push(Delta::Reasoning(text));
            }
            "signature_delta" => {
                block.value["signature"] = word("signature").into();
                block.grown.insert("signature");
            }
            "input_json_delta" => {
                let text = word("partial_json");
                block.json.push_str(&text);
                if let Some(call) = &block.call
                    && !text.is_empty()
                {
                    out.push(Delta::ArgumentsDelta {
                        call_id: call.call_id.clone(),
                        text,
                    });
                }
            }
            "citations_delta" => {
                match &mut block.value["citations"] {
                    Value::Array(citations) => citations.push(take(&mut delta, "citation")),
                    none => *none = json!([take(&mut delta, "citation")]),
                }
                block.grown.insert("citations");
            }
            _ => {}
        }
    }

    fn close(&mut self, index: u64, out: &mut Vec<Delta>) {
        let Some(block) = self.blocks.get_mut(&index) else {
            return;
        };
        if std::mem::replace(&mut block.closed, true) {
            return;
        }
        let mut json = std::mem::take(&mut block.json);
        if let Some(call) = &mut block.call {
            if !json.is_empty() {
                let (id, name) = (call.call_id.clone(), call.name.clone());
                *call = ToolCall::from_text(id, name, &json);
            }
            // What goes back has to be an object, even where what came is none.
            if call.malformed.is_some() || json.is_empty() && !block.value["input"].is_object() {
                json = "{}".to_owned();
            }
            out.push(Delta::ToolCall(call.clone()));
        }
        if let Ok(input) = RawValue::from_string(json) {
            block.fields.set("input", input);
        }
    }

    /// What is said last counts; what is not said stays.
    fn used(&mut self, usage: &Value) {
        let take = |count: &mut u64, value: &Value| {
            if let Some(number) = value.as_u64() {
                *count = number;
            }
        };
        take(&mut self.usage.input, &usage["input_tokens"]);
        take(&mut self.usage.output, &usage["output_tokens"]);
        take(
            &mut self.usage.cache_read,
            &usage["cache_read_input_tokens"],
        );
        take(
            &mut self.usage.cache_write,
            &usage["cache_creation_input_tokens"],
        );
        take(
            &mut self.usage.reasoning,
            &usage["output_tokens_details"]["thinking_tokens"],
        );
    }
}

fn append(value: &mut Value, text: &str) {
    match value {
        Value::String(whole) => whole.push_str(text),
        none => *none = text.into(),
    }
}

/// A block as it goes back. An empty text can come, but is refused then.
fn written(mut block: Block) -> Option<Verbatim> {
    if block.value["type"] == "text" && block.value["text"] == "" {
        return None;
    }
    for key in block.grown {
        block.fields.set(key, raw(&block.value[key]));
    }
    Some(raw(&block.fields).into())
}

fn part(block: &Block) -> Option<Part> {
    let word = |key: &str| block.value[key].as_str().unwrap_or_default().to_owned();
    match block.value["type"].as_str()? {
        "text" => Some(Part::Text { text: word("text") }),
        "thinking" => Some(Part::Reasoning {
            text: word("thinking"),
        }),
        "tool_use" => block.call.clone().map(Part::ToolCall),
        _ => None,
    }
}
