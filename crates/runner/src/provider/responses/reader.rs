//! The answer of OpenAI Responses.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::http::{self, Fault, object, take, take_text};
use crate::provider::verbatim::{Fields, items, raw, within};
use crate::provider::{
    Delta, Message, Origin, Part, Raw, Role, Stop, ToolCall, Turn, TurnRequest, Usage, Verbatim,
    Wire,
};

pub(in crate::provider) struct Reader {
    provider: String,
    /// The items that are complete, by their place in the answer; each also as it came.
    items: BTreeMap<u64, (Value, Box<RawValue>)>,
    /// The calls under way, by their place in the answer.
    calls: BTreeMap<u64, String>,
    /// The first item that was not looked at for a call to tell: calls are told in their order.
    next: u64,
    reasoned: bool,
    /// The response as its last event has it.
    last: Option<Value>,
}

impl http::Reader for Reader {
    fn new(provider: &str, _: &TurnRequest) -> Self {
        Self {
            provider: provider.to_owned(),
            items: BTreeMap::new(),
            calls: BTreeMap::new(),
            next: 0,
            reasoned: false,
            last: None,
        }
    }

    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        // Some compatible servers add the end marker of the other wire.
        if data == "[DONE]" {
            return Ok(());
        }
        let mut event = object(data)?;
        // A server that does not say the place has one after the other.
        let index = event["output_index"].as_u64();
        let index = index.unwrap_or(self.items.len() as u64);
        let kind = event["type"].as_str().unwrap_or(name).to_owned();
        let delta = take_text(&mut event, "delta");
        match kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                out.push(Delta::Text(delta));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoned = true;
                out.push(Delta::Reasoning(delta));
            }
            // Parts are paragraphs.
            "response.reasoning_summary_part.added" if self.reasoned => {
                out.push(Delta::Reasoning("\n\n".to_owned()));
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                let (call_id, name) = identity(&event["item"]);
                self.calls.insert(index, call_id.clone());
                out.push(Delta::ToolCallStarted { call_id, name });
            }
            "response.function_call_arguments.delta" => {
                if let Some(call_id) = self.calls.get(&index) {
                    out.push(Delta::ArgumentsDelta {
                        call_id: call_id.clone(),
                        text: delta,
                    });
                }
            }
            "response.output_item.done" => {
                let item = take(&mut event, "item");
                if let Some(written) = within(data, &["item"]) {
                    self.items.insert(index, (item, written));
                }
                while let Some((item, _)) = self.items.get(&self.next) {
                    out.extend(call(item).map(Delta::ToolCall));
                    self.next += 1;
                }
            }
            "response.completed" | "response.incomplete" => {
                let mut last = take(&mut event, "response");
                if self.items.is_empty()
                    && let Value::Array(output) = take(&mut last, "output")
                    && let Some(written) = within(data, &["response", "output"])
                {
                    let all = output.into_iter().zip(items(written.get()));
                    self.items = (0..).zip(all).collect();
                }
                self.last = Some(last);
            }
            "response.failed" => return Err(Fault::told(&event["response"]["error"])),
            "error" => {
                return Err(match &event["error"] {
                    Value::Null => {
                        // Flat, and its `type` says only that it is an error.
                        event["type"] = Value::Null;
                        Fault::told(&event)
                    }
                    nested => Fault::told(nested),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn end(mut self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let Some(last) = self.last.take() else {
            return Err(Fault::Cut("its end, `response.completed`, never came"));
        };
        let untold = self.items.range(self.next..);
        out.extend(untold.filter_map(|(_, (item, _))| call(item).map(Delta::ToolCall)));
        let (items, written): (Vec<Value>, Vec<_>) =
            std::mem::take(&mut self.items).into_values().unzip();
        let content: Vec<Part> = items.iter().flat_map(parts).collect();
        let turn = items.iter().zip(written).map(mended).collect();
        let calls = content.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let refused = items.iter().any(|item| {
            let content = item["content"].as_array().into_iter().flatten();
            content.into_iter().any(|part| part["type"] == "refusal")
        });
        let stop = match last["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => Stop::MaxTokens,
            Some("content_filter") => Stop::ContentFilter,
            Some(other) => Stop::Other(other.to_owned()),
            None if last["status"] == "incomplete" => Stop::Other("incomplete".to_owned()),
            None if refused => Stop::Refusal,
            None if calls => Stop::ToolUse,
            None => Stop::EndTurn,
        };
        out.push(Delta::Done(Turn {
            message: Message {
                role: Role::Assistant,
                origin: Origin::System,
                content,
                raw: Some(Raw {
                    provider: self.provider,
                    wire: Wire::Responses,
                    turn,
                }),
            },
            usage: usage(&last["usage"]),
            stop,
        }));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.last.is_some()
    }
}

fn identity(item: &Value) -> (String, String) {
    let word = |key: &str| item[key].as_str().map(str::to_owned);
    let call_id = word("call_id").or_else(|| word("id")).unwrap_or_default();
    (call_id, word("name").unwrap_or_default())
}

fn call(item: &Value) -> Option<ToolCall> {
    if item["type"] != "function_call" {
        return None;
    }
    let (call_id, name) = identity(item);
    let arguments = item["arguments"].as_str().unwrap_or_default();
    Some(ToolCall::from_text(call_id, name, arguments))
}

/// An item as it goes back: as it came, but for arguments that nobody could read then.
fn mended((item, written): (&Value, Box<RawValue>)) -> Verbatim {
    if let Some(call) = call(item) {
        let arguments = item["arguments"].as_str().unwrap_or_default();
        let readable = call.readable(arguments);
        if readable != arguments {
            let mut fields = Fields::of(written.get());
            fields.set("arguments", raw(readable));
            return raw(&fields).into();
        }
    }
    written.into()
}

fn parts(item: &Value) -> Vec<Part> {
    let texts = |key: &str, field: &str| -> Vec<String> {
        let list = item[key].as_array().into_iter().flatten();
        list.filter_map(|part| part[field].as_str().map(str::to_owned))
            .collect()
    };
    match item["type"].as_str() {
        Some("message") => {
            let list = item["content"].as_array().into_iter().flatten();
            list.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
                .map(|text| Part::Text {
                    text: text.to_owned(),
                })
                .collect()
        }
        Some("reasoning") => {
            let mut words = texts("summary", "text");
            if words.is_empty() {
                words = texts("content", "text");
            }
            match words.is_empty() {
                true => Vec::new(),
                false => vec![Part::Reasoning {
                    text: words.join("\n\n"),
                }],
            }
        }
        Some("function_call") => call(item).map(Part::ToolCall).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let details = &usage["input_tokens_details"];
    let cache_read = number(&details["cached_tokens"]);
    let cache_write = number(&details["cache_write_tokens"]);
    Usage {
        input: number(&usage["input_tokens"]).saturating_sub(cache_read + cache_write),
        output: number(&usage["output_tokens"]),
        cache_read,
        cache_write,
        reasoning: number(&usage["output_tokens_details"]["reasoning_tokens"]),
    }
}
