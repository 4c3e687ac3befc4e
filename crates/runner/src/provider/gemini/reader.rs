//! The answer of Google Gemini.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::provider::history::CallIds;
use crate::provider::http::{self, Fault, object, take};
use crate::provider::verbatim::{items, within};
use crate::provider::{
    Delta, Message, Origin, Part, Raw, Role, Stop, ToolCall, Turn, TurnRequest, Usage, Verbatim,
    Wire,
};

pub(in crate::provider) struct Reader {
    provider: String,
    ids: CallIds,
    /// The parts, each also as it came; pieces of plain text are put together.
    parts: Vec<(Value, Option<Box<RawValue>>)>,
    content: Vec<Part>,
    finish: Option<String>,
    blocked: bool,
    usage: Usage,
}

impl http::Reader for Reader {
    fn new(provider: &str, request: &TurnRequest) -> Self {
        Self {
            provider: provider.to_owned(),
            ids: CallIds::new(&request.messages),
            parts: Vec::new(),
            content: Vec::new(),
            finish: None,
            blocked: false,
            usage: Usage::default(),
        }
    }

    fn event(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut chunk = object(data)?;
        if !chunk["error"].is_null() {
            return Err(Fault::told(&chunk["error"]));
        }
        let before = self.usage;
        self.used(&chunk["usageMetadata"]);
        if self.usage != before {
            out.push(Delta::Used(self.usage));
        }
        self.blocked |= chunk["promptFeedback"]["blockReason"].is_string();
        let mut candidate = match take(&mut chunk, "candidates") {
            Value::Array(mut list) if !list.is_empty() => list.swap_remove(0),
            _ => Value::Null,
        };
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        if let Value::Array(parts) = take(&mut take(&mut candidate, "content"), "parts") {
            let mut written = written(data).into_iter();
            for part in parts {
                self.part(part, written.next(), out);
            }
        }
        Ok(())
    }

    fn end(self, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let calls = self
            .content
            .iter()
            .any(|part| matches!(part, Part::ToolCall(_)));
        let stop = match self.finish.as_deref() {
            None if self.blocked => Stop::ContentFilter,
            // The connection ends the answer, and whether it was whole only this tells.
            None => return Err(Fault::Cut("its end, a `finishReason`, never came")),
            Some("STOP") if calls => Stop::ToolUse,
            Some("STOP") => Stop::EndTurn,
            Some("MAX_TOKENS") => Stop::MaxTokens,
            Some(
                "SAFETY"
                | "RECITATION"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION",
            ) => Stop::ContentFilter,
            Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") => Stop::MalformedCall,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let turn = self.parts.into_iter().map(|(part, written)| match written {
            Some(written) => Verbatim::from(written),
            None => Verbatim::from(&part),
        });
        out.push(Delta::Done(Turn {
            message: Message {
                role: Role::Assistant,
                origin: Origin::System,
                content: self.content,
                raw: Some(Raw {
                    provider: self.provider,
                    wire: Wire::Gemini,
                    turn: turn.collect(),
                }),
            },
            usage: self.usage,
            stop,
        }));
        Ok(())
    }

    /// A reason to finish may come twice, and numbers after it: only the connection ends it.
    fn is_complete(&self) -> bool {
        false
    }
}

impl Reader {
    fn part(&mut self, part: Value, written: Option<Box<RawValue>>, out: &mut Vec<Delta>) {
        if let Some(text) = part["text"].as_str() {
            let thought = part["thought"] == true;
            self.text(text, thought, out);
            if self.grows(&part) {
                if let Some((last, written)) = self.parts.last_mut()
                    && let Some(Value::String(whole)) = last.get_mut("text")
                {
                    whole.push_str(text);
                    *written = None;
                }
                return;
            }
        } else if let Some(function) = part["functionCall"].as_object() {
            self.call(function, out);
        }
        self.parts.push((part, written));
    }

    /// Whether this is more of the last part. A signature belongs to the part it came with.
    fn grows(&self, part: &Value) -> bool {
        let plain = |part: &Value| {
            part.as_object()
                .is_some_and(|fields| fields.keys().all(|key| key == "text" || key == "thought"))
        };
        self.parts.last().is_some_and(|(last, _)| {
            plain(last)
                && plain(part)
                && last["text"].is_string()
                && last["thought"] == part["thought"]
        })
    }

    fn text(&mut self, text: &str, thought: bool, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        match (thought, self.content.last_mut()) {
            (false, Some(Part::Text { text: whole }))
            | (true, Some(Part::Reasoning { text: whole })) => whole.push_str(text),
            (false, _) => self.content.push(Part::Text {
                text: text.to_owned(),
            }),
            (true, _) => self.content.push(Part::Reasoning {
                text: text.to_owned(),
            }),
        }
        out.push(match thought {
            true => Delta::Reasoning(text.to_owned()),
            false => Delta::Text(text.to_owned()),
        });
    }

    fn call(&mut self, function: &Map<String, Value>, out: &mut Vec<Delta>) {
        let word = |key: &str| {
            function
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let call_id = match word("id") {
            "" => self.ids.make(),
            id => id.to_owned(),
        };
        let arguments = match function.get("args") {
            None | Some(Value::Null) => String::new(),
            Some(arguments) => arguments.to_string(),
        };
        let call = ToolCall::from_text(call_id.clone(), word("name").to_owned(), &arguments);
        out.push(Delta::ToolCallStarted {
            call_id: call_id.clone(),
            name: call.name.clone(),
        });
        out.push(Delta::ArgumentsDelta {
            call_id,
            text: call.arguments.to_string(),
        });
        out.push(Delta::ToolCall(call.clone()));
        self.content.push(Part::ToolCall(call));
    }

    /// Every chunk has the numbers so far.
    fn used(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let number = |key: &str| usage[key].as_u64().unwrap_or_default();
        let cached = number("cachedContentTokenCount");
        let prompt = number("promptTokenCount") + number("toolUsePromptTokenCount");
        let reasoning = number("thoughtsTokenCount");
        self.usage = Usage {
            input: prompt.saturating_sub(cached),
            output: number("candidatesTokenCount") + reasoning,
            cache_read: cached,
            cache_write: 0,
            reasoning,
        };
    }
}

/// The parts of a chunk as they came.
fn written(data: &str) -> Vec<Box<RawValue>> {
    let candidates = within(data, &["candidates"]).map(|list| items(list.get()));
    let first = candidates.and_then(|list| list.into_iter().next());
    let parts = first.and_then(|first| within(first.get(), &["content", "parts"]));
    parts.map(|list| items(list.get())).unwrap_or_default()
}
