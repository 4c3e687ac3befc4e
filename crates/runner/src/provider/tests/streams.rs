use protocol::ErrorKind;
use serde_json::Value;

use super::*;

async fn whole(wire: Wire, stream: &str) -> (Vec<Delta>, Result<(), ProviderError>) {
    read(wire, vec![written(wire, stream).into()]).await
}

#[tokio::test]
async fn every_wire_tells_reasoning_text_and_parallel_calls() {
    for wire in WIRES {
        let (deltas, end) = whole(wire, "tools").await;
        end.unwrap();
        insta::assert_debug_snapshot!(format!("{}_tools", name(wire)), deltas);
    }
}

#[tokio::test]
async fn all_wires_agree_on_what_was_said_and_used() {
    for wire in WIRES {
        let turn = turn(wire, "tools").await;
        assert_eq!(turn.message.text(), "I look at both 🦀.", "{wire:?}");
        let calls: Vec<_> = turn
            .message
            .tool_calls()
            .map(|call| (call.name.as_str(), &call.arguments))
            .collect();
        assert_eq!(
            calls,
            [
                ("fs_list", &json!({})),
                ("fs_read", &json!({"path": "README.md"}))
            ]
        );
        assert_eq!(turn.stop, Stop::ToolUse, "{wire:?}");
        let cache_write = if wire == Wire::Gemini { 0 } else { 300 };
        let usage = Usage {
            input: 312 - cache_write,
            output: 87,
            cache_read: 2000,
            cache_write,
            reasoning: 21,
        };
        assert_eq!(turn.usage, usage, "{wire:?}");
    }
}

#[tokio::test]
async fn every_call_is_told_once_and_deltas_add_up_to_the_message() {
    for wire in WIRES {
        let (deltas, _) = whole(wire, "tools").await;
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        let mut arguments: std::collections::HashMap<String, String> = Default::default();
        for delta in deltas {
            match delta {
                Delta::Text(more) => text += &more,
                Delta::Reasoning(more) => reasoning += &more,
                Delta::Used(_) => {}
                Delta::ToolCallStarted { call_id, .. } => {
                    assert_eq!(arguments.insert(call_id, String::new()), None);
                }
                Delta::ArgumentsDelta { call_id, text } => {
                    *arguments.get_mut(&call_id).unwrap() += &text;
                }
                Delta::ToolCall(call) => {
                    let text = &arguments[&call.call_id];
                    assert_eq!(
                        ToolCall::from_text(call.call_id.clone(), call.name.clone(), text),
                        call
                    );
                    calls.push(call);
                }
                Delta::Done(turn) => {
                    assert_eq!(turn.message.text(), text);
                    assert_eq!(
                        turn.message.tool_calls().cloned().collect::<Vec<_>>(),
                        calls
                    );
                    let thought = turn.message.content.iter().find_map(|part| match part {
                        Part::Reasoning { text } => Some(text.as_str()),
                        _ => None,
                    });
                    assert_eq!(thought, Some(reasoning.as_str()), "{wire:?}");
                }
            }
        }
    }
}

/// Compared as text: that is enough to see a difference, and quick.
async fn told(wire: Wire, pieces: Vec<Bytes>) -> String {
    format!("{:?}", read(wire, pieces).await)
}

#[tokio::test]
async fn bytes_may_be_split_anywhere() {
    for wire in WIRES {
        for stream in ["tools", "text", "overloaded"] {
            let bytes = Bytes::from(written(wire, stream));
            let expected = told(wire, vec![bytes.clone()]).await;
            for at in 1..bytes.len() {
                let pieces = vec![bytes.slice(..at), bytes.slice(at..)];
                assert_eq!(
                    told(wire, pieces).await,
                    expected,
                    "{wire:?} {stream} at {at}"
                );
            }
            let single = bytes.chunks(1).map(Bytes::copy_from_slice).collect();
            assert_eq!(
                told(wire, single).await,
                expected,
                "{wire:?} {stream} byte by byte"
            );
        }
    }
}

#[tokio::test]
async fn an_answer_without_its_end_is_an_error_wherever_it_ends() {
    for wire in WIRES {
        for stream in ["tools", "text"] {
            let bytes = Bytes::from(written(wire, stream));
            let mut ends = 0;
            for at in 0..bytes.len() {
                let (deltas, end) = read(wire, vec![bytes.slice(..at)]).await;
                if end.is_ok() {
                    // Behind the end marker there may be one more line end. Gemini's is said twice.
                    ends += 1;
                    assert!(matches!(deltas.last(), Some(Delta::Done(_))));
                    continue;
                }
                assert_eq!(
                    end.unwrap_err().kind(),
                    ErrorKind::StreamCut,
                    "{wire:?} {at}"
                );
                assert!(!deltas.iter().any(|delta| matches!(delta, Delta::Done(_))));
            }
            if wire != Wire::Gemini {
                assert!(ends <= 2, "{wire:?} {stream}: {ends} ends");
            }
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    for wire in WIRES {
        let (deltas, end) = whole(wire, "overloaded").await;
        let told: Vec<_> = deltas.into_iter().filter(is_told).collect();
        assert_eq!(told, [Delta::Text("There are".to_owned())], "{wire:?}");
        assert_eq!(end.unwrap_err().kind(), ErrorKind::Overloaded, "{wire:?}");
    }
}

fn is_told(delta: &Delta) -> bool {
    !matches!(delta, Delta::Used(_))
}

#[tokio::test]
async fn what_is_no_json_is_an_error() {
    for wire in WIRES {
        let (_, end) = read(wire, vec!["data: {\"half\n\n".into()]).await;
        assert_eq!(end.unwrap_err().kind(), ErrorKind::BadStream, "{wire:?}");
    }
}

#[tokio::test]
async fn calls_of_compatible_servers_are_told_apart() {
    let turn = turn(Wire::Chat, "odd-calls").await;
    let call = |id: &str, name: &str, text: &str| ToolCall::from_text(id.into(), name.into(), text);
    let calls: Vec<ToolCall> = turn.message.tool_calls().cloned().collect();
    assert_eq!(
        calls,
        [
            call("ward_call_1", "fs_list", "{}"),
            call("a", "fs_read", r#"{"path":"x"}"#),
            call("b", "fs_stat", r#"{"path":"y"}"#),
            call("c", "fs_glob", r#"{"pattern": nonsense"#),
        ]
    );
    assert_eq!(
        calls[3].malformed.as_deref(),
        Some(r#"{"pattern": nonsense"#)
    );
    assert_eq!(turn.stop, Stop::ToolUse);
}

/// Chunks of Chat Completions that have these fragments of calls, one each; without an end.
fn fragments(fragments: &[Value]) -> Vec<String> {
    fragments
        .iter()
        .map(|one| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"tool_calls": [one]}}]})
            )
        })
        .collect()
}

const FINISHED: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";

/// The calls that are told by the time these chunks are read, whatever follows.
async fn told_by(chunks: &[String]) -> Vec<(String, String)> {
    let (deltas, _) = read(Wire::Chat, vec![chunks.concat().into()]).await;
    let calls = deltas.into_iter().filter_map(|delta| match delta {
        Delta::ToolCall(call) => Some((call.name, call.arguments.to_string())),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn a_call_of_chat_completions_is_told_when_the_next_begins_or_the_turn_is_finished() {
    let call = |index: u64, name: &str, text: &str| json!({"index": index, "id": name, "function": {"name": name, "arguments": text}});
    let more = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
    let mut chunks = fragments(&[
        call(0, "a", "{\"n\":"),
        more(0, "1}"),
        call(1, "b", ""),
        call(2, "c", "{"),
        // Calls can take turns: of this one more comes when the next has begun.
        more(1, "{\"n\":2}"),
        more(2, "}"),
        call(3, "d", ""),
    ]);
    chunks.push(FINISHED.to_owned());
    let (a, b) = (("a", "{\"n\":1}"), ("b", "{\"n\":2}"));
    let (c, d) = (("c", "{}"), ("d", "{}"));
    let expected: [&[(&str, &str)]; 9] = [
        &[],
        &[],
        &[],
        &[a],
        &[a],
        &[a],
        &[a],
        &[a, b, c],
        &[a, b, c, d],
    ];
    for (count, expected) in expected.into_iter().enumerate() {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(told_by(&chunks[..count]).await, expected, "{count} chunks");
    }
}

#[tokio::test]
async fn whole_calls_without_an_id_are_told_apart_also_with_one_index_or_none() {
    let call = |index: Option<u64>, name: &str, arguments: Value| match index {
        Some(index) => json!({"index": index, "function": {"name": name, "arguments": arguments}}),
        None => json!({"function": {"name": name, "arguments": arguments}}),
    };
    for index in [Some(0), None] {
        let mut chunks = fragments(&[
            call(index, "a", json!("{\"n\":1}")),
            call(index, "a", json!({"n": 2})),
            // In pieces, each with the name.
            call(index, "b", json!("{\"n\":")),
            call(index, "b", json!("3}")),
            call(index, "b", json!("")),
            call(index, "b", json!(null)),
        ]);
        chunks.push(FINISHED.to_owned());
        chunks.push("data: [DONE]\n\n".to_owned());
        let (deltas, end) = read(Wire::Chat, vec![chunks.concat().into()]).await;
        end.unwrap();
        let Some(Delta::Done(turn)) = deltas.last() else {
            panic!("no end: {deltas:?}");
        };
        let call = |id: &str, name: &str, text: &str| {
            ToolCall::from_text(id.to_owned(), name.to_owned(), text)
        };
        let calls: Vec<ToolCall> = turn.message.tool_calls().cloned().collect();
        let expected = [
            call("ward_call_1", "a", "{\"n\":1}"),
            call("ward_call_2", "a", "{\"n\":2}"),
            call("ward_call_3", "b", "{\"n\":3}"),
        ];
        assert_eq!(calls, expected, "{index:?}");
    }
}

/// The last words of an answer, and what they mean.
#[tokio::test]
async fn why_a_turn_ended_is_told_apart() {
    let anthropic = |reason: &str| {
        format!(
            "data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}}}}\n\n\
             data: {{\"type\":\"message_stop\"}}\n\n"
        )
    };
    let chat = |reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
        )
    };
    let gemini = |reason: &str| {
        format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\r\n\r\n")
    };
    let responses = |reason: &str| {
        format!(
            "data: {{\"type\":\"response.incomplete\",\"response\":{{\"status\":\"incomplete\",\
             \"incomplete_details\":{{\"reason\":\"{reason}\"}}}}}}\n\n"
        )
    };
    let other = |word: &str| Stop::Other(word.to_owned());
    let table = [
        (Wire::Anthropic, anthropic("end_turn"), Stop::EndTurn),
        (Wire::Anthropic, anthropic("stop_sequence"), Stop::EndTurn),
        (Wire::Anthropic, anthropic("max_tokens"), Stop::MaxTokens),
        (Wire::Anthropic, anthropic("refusal"), Stop::Refusal),
        (Wire::Anthropic, anthropic("pause_turn"), Stop::Paused),
        (
            Wire::Anthropic,
            anthropic("model_context_window_exceeded"),
            Stop::ContextFull,
        ),
        (
            Wire::Anthropic,
            anthropic("new_reason"),
            other("new_reason"),
        ),
        (Wire::Chat, chat("stop"), Stop::EndTurn),
        (Wire::Chat, chat("length"), Stop::MaxTokens),
        (Wire::Chat, chat("content_filter"), Stop::ContentFilter),
        (Wire::Chat, chat("new_reason"), other("new_reason")),
        (Wire::Gemini, gemini("STOP"), Stop::EndTurn),
        (Wire::Gemini, gemini("MAX_TOKENS"), Stop::MaxTokens),
        (Wire::Gemini, gemini("SAFETY"), Stop::ContentFilter),
        (
            Wire::Gemini,
            gemini("MALFORMED_FUNCTION_CALL"),
            Stop::MalformedCall,
        ),
        (Wire::Gemini, gemini("LANGUAGE"), other("LANGUAGE")),
        (
            Wire::Gemini,
            gemini("STOP") + &gemini("MAX_TOKENS"),
            Stop::MaxTokens,
        ),
        (
            Wire::Gemini,
            "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\r\n\r\n".to_owned(),
            Stop::ContentFilter,
        ),
        (
            Wire::Responses,
            responses("max_output_tokens"),
            Stop::MaxTokens,
        ),
        (
            Wire::Responses,
            responses("content_filter"),
            Stop::ContentFilter,
        ),
        (
            Wire::Responses,
            responses("new_reason"),
            other("new_reason"),
        ),
    ];
    for (wire, stream, stop) in table {
        let (deltas, end) = read(wire, vec![stream.clone().into()]).await;
        end.unwrap();
        let Some(Delta::Done(turn)) = deltas.last() else {
            panic!("no end: {stream}");
        };
        assert_eq!(turn.stop, stop, "{stream}");
    }
}

#[tokio::test]
async fn an_error_of_responses_is_read_flat_and_nested() {
    for stream in [
        r#"{"type":"error","code":"rate_limit_exceeded","message":"Slow down.","param":null}"#,
        r#"{"type":"error","error":{"type":"tokens","code":"rate_limit_exceeded","message":"Slow down."}}"#,
        r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Slow down."}}}"#,
    ] {
        let (_, end) = read(Wire::Responses, vec![format!("data: {stream}\n\n").into()]).await;
        assert_eq!(
            end.unwrap_err().to_string(),
            "test takes no more for now: Slow down. Try again later."
        );
    }
}

/// Every value in an event is replaced by every kind of JSON, one at a time.
fn disturbed(value: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = vec![
        json!(null),
        json!(5),
        json!("x"),
        json!([]),
        json!([7]),
        json!({}),
    ];
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                for other in disturbed(field) {
                    let mut copy = value.clone();
                    copy[key] = other;
                    all.push(copy);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for other in disturbed(item) {
                    let mut copy = value.clone();
                    copy[at] = other;
                    all.push(copy);
                }
            }
        }
        _ => {}
    }
    all
}

#[tokio::test]
async fn no_event_makes_a_reader_panic() {
    for wire in WIRES {
        let text = String::from_utf8(written(wire, "tools"))
            .unwrap()
            .replace("\r\n", "\n");
        let events: Vec<&str> = text
            .split("\n\n")
            .filter_map(|event| event.split_once("data: "))
            .map(|(_, data)| data)
            .collect();
        for (at, data) in events.iter().enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(data) else {
                continue;
            };
            for other in disturbed(&value) {
                let other = other.to_string();
                let mut pieces = vec![String::new()];
                for (number, data) in events.iter().enumerate() {
                    // Only what is near matters to it; the whole would take too long.
                    if number.abs_diff(at) <= 3 || number + 3 >= events.len() {
                        let data = if number == at { other.as_str() } else { data };
                        pieces.push(format!("data: {data}\n\n"));
                    }
                }
                let _ = read(wire, vec![pieces.concat().into()]).await;
            }
        }
    }
}
