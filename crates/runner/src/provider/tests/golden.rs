//! What goes back to a provider after two of its own turns, and to one that wrote neither.

use serde_json::Value;

use super::super::http::Call;
use super::*;

fn call(wire: Wire, request: &TurnRequest) -> Call {
    let endpoint = endpoint();
    match wire {
        Wire::Anthropic => anthropic::request::call(&endpoint, request),
        Wire::Responses => responses::request::call(&endpoint, request),
        Wire::Chat => chat::request::call(&endpoint, request),
        Wire::Gemini => gemini::request::call(&endpoint, request),
        Wire::Offline => panic!("no wire"),
    }
}

/// What is sent, as what it means.
fn body(wire: Wire, request: &TurnRequest) -> Value {
    serde_json::from_slice(&call(wire, request).body).unwrap()
}

/// A request, calls with their results, an answer, and a second request with a picture that came
/// while the results were still missing in a third turn.
async fn conversation(spoken: Wire, model: &str) -> TurnRequest {
    let first = turn(spoken, "tools").await.message;
    let results: Vec<ToolResult> = first
        .tool_calls()
        .enumerate()
        .map(|(number, call)| match number {
            0 => ToolResult::text(call, "README.md\nsrc"),
            _ => ToolResult::error(call, "A person said no."),
        })
        .collect();
    let second = turn(spoken, "text").await.message;
    let mut question = Message::user("And this?");
    question.content.push(Part::Image(Image {
        media_type: "image/png".to_owned(),
        base64: "iVBORw0KGgo=".to_owned(),
    }));
    let messages = [
        Message::user("What is here?"),
        first,
        Message::tool_results(results),
        second,
        question,
    ];
    TurnRequest {
        model: model.to_owned(),
        instructions: "Be brief.".to_owned(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools(),
        max_output_tokens: Some(1000),
        cache_key: Some("session-1".to_owned()),
        ..TurnRequest::default()
    }
}

fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "claude-opus-4-6",
        Wire::Responses => "gpt-5.2",
        Wire::Chat => "qwen3",
        Wire::Gemini => "gemini-3-pro",
        Wire::Offline => "offline",
    }
}

#[tokio::test]
async fn a_provider_gets_its_own_turns_back_verbatim() {
    for wire in WIRES {
        let request = conversation(wire, model(wire)).await;
        insta::assert_json_snapshot!(format!("{}_own", name(wire)), body(wire, &request));
    }
}

#[tokio::test]
async fn a_provider_gets_the_turns_of_another_in_its_own_words() {
    for (wire, spoken) in [
        (Wire::Anthropic, Wire::Gemini),
        (Wire::Responses, Wire::Anthropic),
        (Wire::Chat, Wire::Responses),
        (Wire::Gemini, Wire::Chat),
    ] {
        let request = conversation(spoken, model(wire)).await;
        insta::assert_json_snapshot!(format!("{}_foreign", name(wire)), body(wire, &request));
    }
}

#[tokio::test]
async fn what_was_sent_before_is_the_beginning_of_what_is_sent_next() {
    // Marks for the cache move; everything else has to stay, or no cache would find it.
    fn plain(mut value: Value) -> Value {
        match &mut value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields
                    .values_mut()
                    .for_each(|field| *field = plain(field.take()));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
            _ => {}
        }
        value
    }
    for wire in WIRES {
        let later = conversation(wire, model(wire)).await;
        let mut earlier = later.clone();
        earlier.messages.truncate(3);
        let (earlier, later) = (plain(body(wire, &earlier)), plain(body(wire, &later)));
        let key = match wire {
            Wire::Anthropic | Wire::Chat => "messages",
            Wire::Responses => "input",
            Wire::Gemini | Wire::Offline => "contents",
        };
        let before = earlier[key].as_array().unwrap();
        assert_eq!(
            &later[key].as_array().unwrap()[..before.len()],
            before,
            "{wire:?}"
        );
        for key in ["system", "systemInstruction", "instructions", "tools"] {
            assert_eq!(earlier[key], later[key], "{wire:?}");
        }
    }
}

#[test]
fn results_come_before_what_was_said_while_they_were_missing() {
    let calls = ["a", "b"].map(|id| ToolCall::from_text(id.into(), "fs_list".into(), ""));
    let mut said = Message::user("");
    said.role = Role::Assistant;
    said.content = calls.iter().cloned().map(Part::ToolCall).collect();
    let request = TurnRequest {
        messages: [
            Message::user("ls"),
            said,
            Message::user("Hurry."),
            Message::tool_results(calls.iter().map(|call| ToolResult::text(call, "x"))),
        ]
        .into_iter()
        .map(Arc::new)
        .collect(),
        ..TurnRequest::default()
    };
    let body = body(Wire::Anthropic, &request);
    let kinds: Vec<&str> = body["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
}

/// A turn in which `fs_read` is called with arguments that came as this text.
async fn called(wire: Wire, id: &str, text: &str) -> Message {
    let pieces = match wire {
        Wire::Anthropic => vec![
            json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "tool_use", "id": id, "name": "fs_read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta":
                {"type": "input_json_delta", "partial_json": text}}),
            json!({"type": "message_stop"}),
        ],
        Wire::Responses => vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item":
                {"type": "function_call", "call_id": id, "name": "fs_read", "arguments": text}}),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ],
        Wire::Chat => vec![
            json!({"choices": [{"finish_reason": "tool_calls", "delta": {"tool_calls": [
                {"index": 0, "id": id, "function": {"name": "fs_read", "arguments": text}}]}}]}),
            json!("[DONE]"),
        ],
        Wire::Gemini | Wire::Offline => panic!("no text"),
    };
    let events = pieces.iter().map(|piece| match piece {
        Value::String(word) => word.clone(),
        piece => piece.to_string(),
    });
    let events: Vec<String> = events.collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    said(wire, &events).await
}

/// What was said in an answer of these events.
async fn said(wire: Wire, events: &[&str]) -> Message {
    let data = |event: &&str| format!("data: {event}\n\n");
    let stream: String = events.iter().map(data).collect();
    let (deltas, end) = read(wire, vec![stream.into()]).await;
    end.unwrap();
    match deltas.into_iter().next_back() {
        Some(Delta::Done(turn)) => turn.message,
        other => panic!("{other:?} at the end"),
    }
}

#[tokio::test]
async fn what_came_goes_back_with_its_fields_in_order_and_every_digit() {
    const ODD: &str = r#"{"z":1,"type":"odd","a":[2.50, 12345678901234567890123]}"#;
    const CALL: &str = r#"{"type":"tool_use","name":"f","id":"c","caller":1.0,"input":{"n":0.10,"a":10000000000000000000000}}"#;
    let start = format!(r#"{{"index":0,"content_block":{ODD},"type":"content_block_start"}}"#);
    let anthropic = [
        start.as_str(),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":"","z":1,"a":2}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"s"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"f","id":"c","caller":1.0,"input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":0.10,"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a\":10000000000000000000000}"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let thought = r#"{"type":"thinking","thinking":"Hm","signature":"s","z":1,"a":2}"#;
    let done = format!(r#"{{"type":"response.output_item.done","item":{ODD}}}"#);
    let whole = format!(r#"{{"response":{{"output":[{ODD}]}},"type":"response.completed"}}"#);
    let parts = format!(
        r#"{{"candidates":[{{"finishReason":"STOP","content":{{"parts":[{{"text":"a"}},{{"text":"b"}},{ODD}]}}}}]}}"#
    );
    let details = format!(
        r#"{{"choices":[{{"delta":{{"content":"a","reasoning_details":[{ODD}]}},"finish_reason":"stop"}}]}}"#
    );
    let table: [(Wire, &[&str], String); 5] = [
        (
            Wire::Anthropic,
            &anthropic,
            format!("[{ODD},{thought},{CALL}]"),
        ),
        (
            Wire::Responses,
            &[
                done.as_str(),
                r#"{"type":"response.completed","response":{}}"#,
            ],
            format!("[{ODD}"),
        ),
        (Wire::Responses, &[whole.as_str()], format!("[{ODD}")),
        (
            Wire::Gemini,
            &[parts.as_str()],
            format!(r#"[{{"text":"ab"}},{ODD}]"#),
        ),
        (
            Wire::Chat,
            &[details.as_str(), "[DONE]"],
            format!(r#""reasoning_details":[{ODD}]"#),
        ),
    ];
    for (wire, events, expected) in table {
        let said = said(wire, events).await;
        // It is the same after a restart.
        let kept = serde_json::to_value(&said).unwrap();
        let read: Message = serde_json::from_value(kept).unwrap();
        assert_eq!(read, said);
        let request = TurnRequest {
            messages: vec![Arc::new(read), Arc::new(Message::user("Go on."))],
            ..TurnRequest::default()
        };
        let body = call(wire, &request).body;
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(&expected), "{wire:?}: {body}");
    }
}

#[test]
fn a_turn_that_was_kept_as_a_value_still_goes_back() {
    for (wire, turn) in [
        (Wire::Anthropic, json!([{"type": "odd", "n": 1}])),
        (Wire::Chat, json!({"role": "assistant", "content": "a"})),
    ] {
        let kept = json!({
            "role": "assistant", "origin": {"kind": "system"}, "content": [],
            "raw": {"provider": "test", "wire": wire, "turn": turn},
        });
        let request = TurnRequest {
            messages: vec![serde_json::from_value(kept).unwrap()],
            ..TurnRequest::default()
        };
        let said = &body(wire, &request)["messages"][0];
        let said = if wire == Wire::Chat {
            said
        } else {
            &said["content"]
        };
        assert_eq!(*said, turn);
    }
}

/// What is sent after this turn and the result of its first call.
fn after(wire: Wire, said: &Message) -> Value {
    let results = said.tool_calls().map(|call| ToolResult::text(call, "x"));
    let messages = [said.clone(), Message::tool_results(results)];
    let request = TurnRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        ..TurnRequest::default()
    };
    body(wire, &request)
}

#[tokio::test]
async fn arguments_that_nobody_can_read_go_back_as_none_and_others_as_they_came() {
    let table = [
        ("{\"path\": \"a.t", "{}"),
        ("", "{}"),
        (" ", "{}"),
        ("[1]", "{}"),
        ("{ \"path\":\"a\" }", "{ \"path\":\"a\" }"),
    ];
    for (text, expected) in table {
        let said = called(Wire::Chat, "c", text).await;
        let call = &after(Wire::Chat, &said)["messages"][0]["tool_calls"][0];
        assert_eq!(call["function"]["arguments"], expected, "chat: {text}");
        let said = called(Wire::Responses, "c", text).await;
        let call = &after(Wire::Responses, &said)["input"][0];
        assert_eq!(call["arguments"], expected, "responses: {text}");
        // Another's, told in this wire's own words.
        let said = called(Wire::Anthropic, "c", text).await;
        let expected = expected.replace(' ', "");
        let call = &after(Wire::Chat, &said)["messages"][0]["tool_calls"][0];
        assert_eq!(call["function"]["arguments"], expected, "chat: {text}");
        let call = &after(Wire::Responses, &said)["input"][0];
        assert_eq!(call["arguments"], expected, "responses: {text}");
    }
}

#[tokio::test]
async fn a_result_goes_back_to_anthropic_by_the_id_that_its_call_goes_by() {
    let odd = "functions.fs_read:4";
    for (wire, expected) in [
        // As it came, since all of the turn goes back as it came.
        (Wire::Anthropic, odd),
        (Wire::Chat, "functions_fs_read_4"),
    ] {
        let said = called(wire, odd, "{}").await;
        let messages = &after(Wire::Anthropic, &said)["messages"];
        let ids = [
            &messages[0]["content"][0]["id"],
            &messages[1]["content"][0]["tool_use_id"],
        ];
        assert_eq!(ids, [expected, expected], "{wire:?}");
    }
}

#[test]
fn choices_limits_and_effort_are_said_in_each_wires_words() {
    for wire in WIRES {
        let request = TurnRequest {
            model: model(wire).to_owned(),
            messages: vec![Arc::new(Message::user("Hi"))],
            tools: tools(),
            tool_choice: ToolChoice::Required,
            max_output_tokens: Some(7),
            temperature: Some(0.5),
            effort: Some(Effort::High),
            ..TurnRequest::default()
        };
        insta::assert_json_snapshot!(format!("{}_choices", name(wire)), body(wire, &request));
    }
}

#[test]
fn a_models_name_does_not_lead_elsewhere() {
    let request = TurnRequest {
        model: "../x?key=1#é".to_owned(),
        ..TurnRequest::default()
    };
    assert_eq!(
        call(Wire::Gemini, &request).path,
        "/models/..%2Fx%3Fkey%3D1%23%C3%A9:streamGenerateContent?alt=sse"
    );
}
