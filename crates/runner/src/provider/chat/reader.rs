//! The answer of Chat Completions.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::turn;
use crate::provider::history::CallIds;
use crate::provider::http::{self, Fault, object, take};
use crate::provider::verbatim::{Fields, items, raw, within};
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
    /// Pieces that a server in between wants to see again, as they came.
    details: Vec<Box<RawValue>>,
    slots: Vec<Slot>,
    /// The calls that were told: those of as many slots, from the first on.
    told: Vec<ToolCall>,
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
            told: Vec::new(),
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
        if let (true, Some(text)) = (name.is_empty(), more_words(data)) {
            if !text.is_empty() {
                self.text.push_str(&text);
                out.push(Delta::Text(text.into_owned()));
            }
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
            out.push(Delta::Used(self.usage));
        }
        let choices = chunk["choices"].as_array_mut().into_iter().flatten();
        for (place, choice) in choices.enumerate() {
            if choice["index"].as_u64().unwrap_or_default() == 0 {
                if choice["delta"]["reasoning_details"].is_array() {
                    self.details.extend(details(data, place));
                }
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
        while self.told.len() < self.slots.len() {
            self.tell(out);
        }
        let mut calls = Vec::new();
        for (slot, call) in self.slots.iter().zip(std::mem::take(&mut self.told)) {
            calls.push(json!({
                "id": slot.id,
                "type": "function",
                "function": { "name": slot.name, "arguments": call.readable(&slot.arguments) },
            }));
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
        let delta = take(choice, "delta");
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
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
            // Some say `""` with every chunk.
            if !reason.is_empty() {
                self.tell_while(
                    |slot| slot.is_whole() || slot.arguments.trim().is_empty(),
                    out,
                );
            }
        }
    }

    /// Tells of calls, in their order, as long as they are complete: of another more may come.
    fn tell_while(&mut self, complete: fn(&Slot) -> bool, out: &mut Vec<Delta>) {
        while self.slots.get(self.told.len()).is_some_and(complete) {
            self.tell(out);
        }
    }

    /// Tells of the next call as it is now.
    fn tell(&mut self, out: &mut Vec<Delta>) {
        if let Some(slot) = self.slots.get_mut(self.told.len()) {
            slot.announce(&mut self.ids, out);
            let call = ToolCall::from_text(slot.id.clone(), slot.name.clone(), &slot.arguments);
            out.push(Delta::ToolCall(call.clone()));
            self.told.push(call);
        }
    }

    fn fragment(&mut self, fragment: &Value, out: &mut Vec<Delta>) {
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = fragment["function"]["name"].as_str().unwrap_or_default();
        let index = fragment["index"].as_u64();
        let arguments = &fragment["function"]["arguments"];
        let found = self.slots.iter().rposition(|slot| match index {
            Some(index) => slot.index == index,
            None => id.is_empty() || slot.id == id,
        });
        let place = match found {
            Some(place) if !self.slots[place].is_another(id, name, arguments) => place,
            _ => {
                let place = self.slots.len();
                self.tell_while(Slot::is_whole, out);
                self.slots.push(Slot {
                    index: index.unwrap_or(place as u64),
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                    passed_on: None,
                });
                place
            }
        };
        // Some servers give every call the same id: the others get one of ours.
        let is_taken = self.slots[..place].iter().any(|slot| slot.id == id);
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        // What was told was whole, and stays as it was.
        if place < self.told.len() {
            return;
        }
        if slot.passed_on.is_none() {
            if slot.id.is_empty() && !is_taken {
                slot.id = id.to_owned();
            }
            if slot.name.is_empty() {
                slot.name = name.to_owned();
            }
        }
        match arguments {
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
        let mut fields = Fields::of(raw(&turn).get());
        if !self.details.is_empty() {
            fields.set("reasoning_details", raw(&self.details));
        }
        Some(Raw {
            provider: self.provider.clone(),
            wire: Wire::Chat,
            turn: vec![raw(&fields).into()],
        })
    }
}

impl Slot {
    /// Whether a fragment is of another call than this one. Some servers give every call the same
    /// index or none, some of these no id either, and some repeat the name with every fragment.
    fn is_another(&self, id: &str, name: &str, arguments: &Value) -> bool {
        if name.is_empty() {
            return false;
        }
        match id.is_empty() {
            true => self.is_whole() && (name != self.name || !is_empty(arguments)),
            false => self.id != id,
        }
    }

    /// Whether nothing can be missing.
    fn is_whole(&self) -> bool {
        !self.name.is_empty()
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

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

/// The words of a chunk that has nothing else to say, as nearly all are: read without making
/// anything of the rest. None for every other chunk.
fn more_words(data: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(borrow)]
        choices: [Choice<'a>; 1],
        error: Option<IgnoredAny>,
        usage: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Choice<'a> {
        index: Option<u64>,
        #[serde(borrow)]
        delta: Words<'a>,
        finish_reason: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Words<'a> {
        #[serde(borrow)]
        content: Cow<'a, str>,
        reasoning_content: Option<IgnoredAny>,
        reasoning: Option<IgnoredAny>,
        reasoning_details: Option<IgnoredAny>,
        refusal: Option<IgnoredAny>,
        tool_calls: Option<IgnoredAny>,
    }
    let chunk: Chunk<'_> = serde_json::from_str(data).ok()?;
    let [
        Choice {
            index,
            delta,
            finish_reason,
        },
    ] = chunk.choices;
    let more = [
        chunk.error,
        chunk.usage,
        finish_reason,
        delta.reasoning_content,
        delta.reasoning,
        delta.reasoning_details,
        delta.refusal,
        delta.tool_calls,
    ];
    let is_all = index.unwrap_or_default() == 0 && more.iter().all(Option::is_none);
    is_all.then_some(delta.content)
}

/// The pieces in the choice at this place, as they came.
fn details(data: &str, place: usize) -> Vec<Box<RawValue>> {
    let choices = within(data, &["choices"]).map(|list| items(list.get()));
    let choice = choices.and_then(|list| list.into_iter().nth(place));
    let details = choice.and_then(|one| within(one.get(), &["delta", "reasoning_details"]));
    details.map(|list| items(list.get())).unwrap_or_default()
}

fn is_empty(arguments: &Value) -> bool {
    arguments.is_null()
        || arguments
            .as_str()
            .is_some_and(|text| text.trim().is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_chunk_that_has_nothing_but_words_is_read_as_such() {
        let chunk = |delta: Value| {
            json!({
                "id": "1", "model": "m", "usage": null,
                "choices": [{"index": 0, "delta": delta, "finish_reason": null, "logprobs": null}],
            })
        };
        let words = |chunk: &Value| more_words(&chunk.to_string()).map(Cow::into_owned);
        let plain = chunk(json!({"content": "so \"it\" is\n", "role": "assistant"}));
        assert_eq!(words(&plain).as_deref(), Some("so \"it\" is\n"));
        for (key, value) in [
            ("reasoning_content", json!("why")),
            ("reasoning", json!("why")),
            ("reasoning_details", json!([])),
            ("refusal", json!("no")),
            ("tool_calls", json!([])),
            ("content", json!(null)),
            ("content", json!([{"text": "a"}])),
        ] {
            let mut more = plain.clone();
            more["choices"][0]["delta"][key] = value;
            assert_eq!(words(&more), None, "{more}");
        }
        for (place, value) in [
            ("/choices/0/finish_reason", json!("stop")),
            ("/choices/0/finish_reason", json!("")),
            ("/choices/0/index", json!(1)),
            ("/choices", json!([])),
            (
                "/choices",
                json!([plain["choices"][0], plain["choices"][0]]),
            ),
            ("/usage", json!({"prompt_tokens": 1})),
            ("/error", json!({"message": "overloaded"})),
        ] {
            let mut other = plain.clone();
            match other.pointer_mut(place) {
                Some(part) => *part = value,
                None => other["error"] = value,
            }
            assert_eq!(words(&other), None, "{other}");
        }
        assert_eq!(more_words("[DONE]"), None);
        assert_eq!(more_words("{"), None);
    }
}
