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
        insta::assert_json_snapshot!(format!("{}_own", name(wire)), call(wire, &request).body);
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
        insta::assert_json_snapshot!(format!("{}_foreign", name(wire)), call(wire, &request).body);
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
        let (earlier, later) = (
            plain(call(wire, &earlier).body),
            plain(call(wire, &later).body),
        );
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
    let body = call(Wire::Anthropic, &request).body;
    let kinds: Vec<&str> = body["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
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
        insta::assert_json_snapshot!(format!("{}_choices", name(wire)), call(wire, &request).body);
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
