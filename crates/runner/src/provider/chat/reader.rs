//! The answer of Chat Completions.

use serde_json::{Value, json};

use super::request::turn;
use crate::provider::history::CallIds;
use crate::provider::http::{self, Fault, object, take};
use crate::provider::{
    Delta, Message, Origin, Part, Raw, Role, Stop, ToolCall, Turn, TurnRequest, Usage, Wire,
};

/// A call, as far as it came.
struct Slot {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    /// How many bytes of the arguments were passed on; nothing is before the name is known.
    passed_on: Option<usize>,
}

pub(in crate::provider) struct Reader {
    provider: String,
    ids: CallIds,
    text: String,
    reasoning: String,
    /// Under which name the reasoning came.
    reasoning_key: Option<&'static str>,
    /// Pieces that a server in between wants to see again.
    details: Vec<Value>,
    slots: Vec<Slot>,
    refused: bool,
    finish: Option<String>,
    usage: Usage,
    done: bool,
}

impl http::Reader for Reader {
    fn new(provider: &str, request: &TurnRequest) -> Self {
        Self {
            provider: provider.to_owned(),
            ids: CallIds::new(&request.messages),
            text: String::new(),
            reasoning: String::new(),
            reasoning_key: None,
            details: Vec::new(),
            slots: Vec::new(),
            refused: false,
            finish: None,
            usage: Usage::default(),
            done: false,
        }
    }

    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let mut chunk = object(data)?;
        match &chunk["error"] {
            Value::Null if name == "error" => return Err(Fault::told(&chunk)),
            Value::Null => {}
            error => return Err(Fault::told(error)),
        }
        if chunk["usage"].is_object() {
            self.usage = usage(&chunk["usage"]);
        }
        for choice in chunk["choices"].as_array_mut().into_iter().flatten() {
            if choice["index"].as_u64().unwrap_or_default() == 0 {
                self.choice(choice, out);
            }
        }
        Ok(())
    }

    fn end(mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if !self.done {
            return Err(Fault::Cut("its end, `[DONE]`, never came"));
        }
        let Some(finish) = self.finish.take() else {
            return Err(Fault::Cut("it ended without saying why"));
        };
        let mut content = Vec::new();
        let add = |content: &mut Vec<Part>, text: &str, part: fn(String) -> Part| {
            if !text.is_empty() {
                content.push(part(text.to_owned()));
            }
        };
        add(&mut content, &self.reasoning, |text| Part::Reasoning {
            text,
        });
        add(&mut content, &self.text, |text| Part::Text { text });
        let mut calls = Vec::new();
        for slot in &mut self.slots {
            slot.announce(&mut self.ids, out);
            calls.push(json!({
                "id": slot.id,
                "type": "function",
                "function": { "name": slot.name, "arguments": slot.arguments },
            }));
            let call = ToolCall::from_text(slot.id.clone(), slot.name.clone(), &slot.arguments);
            out.push(Delta::ToolCall(call.clone()));
            content.push(Part::ToolCall(call));
        }
        let stop = match finish.as_str() {
            "length" => Stop::MaxTokens,
            "content_filter" => Stop::ContentFilter,
            _ if self.refused => Stop::Refusal,
            _ if !calls.is_empty() => Stop::ToolUse,
            "stop" | "eos" | "tool_calls" | "function_call" => Stop::EndTurn,
            _ => Stop::Other(finish),
        };
        let raw = self.raw(calls);
        out.push(Delta::Done(Turn {
            message: Message {
                role: Role::Assistant,
                origin: Origin::System,
                content,
                raw,
            },
            usage: self.usage,
            stop,
        }));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.done
    }
}

impl Reader {
    fn choice(&mut self, choice: &mut Value, out: &mut Vec<Delta>) {
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let mut delta = take(choice, "delta");
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta[key].as_str()
                && !text.is_empty()
            {
                self.reasoning_key = Some(key);
                self.reasoning.push_str(text);
                out.push(Delta::Reasoning(text.to_owned()));
                break;
            }
        }
        if let Value::Array(details) = take(&mut delta, "reasoning_details") {
            self.details.extend(details);
        }
        let refusal = delta["refusal"].as_str().unwrap_or_default();
        self.refused |= !refusal.is_empty();
        for text in [words(&delta["content"]), refusal.to_owned()] {
            if !text.is_empty() {
                self.text.push_str(&text);
                out.push(Delta::Text(text));
            }
        }
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            self.fragment(fragment, out);
        }
    }

    fn fragment(&mut self, fragment: &Value, out: &mut Vec<Delta>) {
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = fragment["function"]["name"].as_str().unwrap_or_default();
        let index = fragment["index"].as_u64();
        let slot = self.slots.iter_mut().rev().find(|slot| match index {
            Some(index) => slot.index == index,
            None => id.is_empty() || slot.id == id,
        });
        let slot = match slot {
            // Some servers give every call the same index.
            Some(slot) if id.is_empty() || name.is_empty() || slot.id == id => slot,
            _ => {
                let index = index.unwrap_or(self.slots.len() as u64);
                self.slots.push(Slot {
                    index,
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                    passed_on: None,
                });
                let Some(slot) = self.slots.last_mut() else {
                    return;
                };
                slot
            }
        };
        if slot.passed_on.is_none() {
            if slot.id.is_empty() {
                slot.id = id.to_owned();
            }
            if slot.name.is_empty() {
                slot.name = name.to_owned();
            }
        }
        match &fragment["function"]["arguments"] {
            Value::String(text) => slot.arguments.push_str(text),
            Value::Null => {}
            // Not as text, but as what it means.
            whole => slot.arguments.push_str(&whole.to_string()),
        }
        if !slot.name.is_empty() {
            slot.announce(&mut self.ids, out);
        }
    }

    /// The message as it goes back. DeepSeek wants the reasoning before its calls back, and
    /// refuses that of an answer.
    fn raw(&mut self, calls: Vec<Value>) -> Option<Raw> {
        let called = !calls.is_empty();
        let mut turn = turn(&self.text, calls)?;
        if let (true, Some(key)) = (called, self.reasoning_key) {
            turn[key] = std::mem::take(&mut self.reasoning).into();
        }
        if !self.details.is_empty() {
            turn["reasoning_details"] = std::mem::take(&mut self.details).into();
        }
        Some(Raw {
            provider: self.provider.clone(),
            wire: Wire::Chat,
            turn,
        })
    }
}

impl Slot {
    /// Passes on what has not been passed on yet.
    fn announce(&mut self, ids: &mut CallIds, out: &mut Vec<Delta>) {
        if self.id.is_empty() {
            self.id = ids.make();
        }
        let from = match self.passed_on {
            Some(from) => from,
            None => {
                out.push(Delta::ToolCallStarted {
                    call_id: self.id.clone(),
                    name: self.name.clone(),
                });
                0
            }
        };
        if from < self.arguments.len() {
            out.push(Delta::ArgumentsDelta {
                call_id: self.id.clone(),
                text: self.arguments[from..].to_owned(),
            });
        }
        self.passed_on = Some(self.arguments.len());
    }
}

/// Text, or a list of parts with text in them.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let details = &usage["prompt_tokens_details"];
    let cache_read = number(&details["cached_tokens"]);
    let cache_write = number(&details["cache_write_tokens"]);
    Usage {
        input: number(&usage["prompt_tokens"]).saturating_sub(cache_read + cache_write),
        output: number(&usage["completion_tokens"]),
        cache_read,
        cache_write,
        reasoning: number(&usage["completion_tokens_details"]["reasoning_tokens"]),
    }
}
