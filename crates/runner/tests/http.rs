//! The providers against a server on this machine: what is sent, what is tried again, what is not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails says so"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use protocol::ErrorKind;
use runner::provider::*;
use support::{Answer, Double};
use tokio_util::sync::CancellationToken;

const WIRES: [(Wire, &str); 4] = [
    (Wire::Anthropic, "anthropic"),
    (Wire::Responses, "responses"),
    (Wire::Chat, "chat"),
    (Wire::Gemini, "gemini"),
];

fn provider(double: &Double, wire: Wire) -> HttpProvider {
    let timeouts = Timeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_millis(300),
        between_bytes: Duration::from_millis(300),
    };
    let retries = Retries {
        times: 2,
        first: Duration::from_millis(1),
        longest: Duration::from_secs(2),
    };
    let base = format!("{}/v1", double.base());
    let endpoint = Endpoint::new(
        "test",
        &base,
        Some("secret-key"),
        "TEST_KEY",
        timeouts,
        retries,
    );
    HttpProvider::new(endpoint.unwrap(), wire)
}

fn request() -> TurnRequest {
    TurnRequest {
        model: "model-1".to_owned(),
        messages: vec![Arc::new(Message::user("Hi"))],
        ..TurnRequest::default()
    }
}

/// All that a turn is told as.
async fn ask(double: &Double, wire: Wire) -> (Vec<Delta>, Option<ProviderError>) {
    let mut stream = provider(double, wire).turn(request(), CancellationToken::new());
    let mut deltas = Vec::new();
    let mut error = None;
    while let Some(delta) = stream.next().await {
        assert_eq!(error, None, "something came after an error");
        match delta {
            Ok(delta) => deltas.push(delta),
            Err(failed) => error = Some(failed),
        }
    }
    (deltas, error)
}

fn kind(outcome: &(Vec<Delta>, Option<ProviderError>)) -> Option<ErrorKind> {
    outcome.1.as_ref().map(ProviderError::kind)
}

#[tokio::test]
async fn a_turn_is_asked_for_where_each_wire_has_its_place() {
    let places = [
        ("/v1/messages", "x-api-key: secret-key"),
        ("/v1/responses", "authorization: Bearer secret-key"),
        ("/v1/chat/completions", "authorization: Bearer secret-key"),
        (
            "/v1/models/model-1:streamGenerateContent?alt=sse",
            "x-goog-api-key: secret-key",
        ),
    ];
    for ((wire, name), (place, key)) in WIRES.into_iter().zip(places) {
        let double = Double::start([Answer::written(name, "text")]).await;
        let (deltas, error) = ask(&double, wire).await;
        assert_eq!(error, None);
        let Some(Delta::Done(turn)) = deltas.last() else {
            panic!("{wire:?} has no end");
        };
        assert_eq!(turn.message.text(), "There are two files.");
        assert_eq!(turn.stop, Stop::EndTurn);
        let asked = double.asked();
        assert!(
            asked[0].starts_with(&format!("POST {place} HTTP/1.1\r\n")),
            "{}",
            asked[0]
        );
        assert!(asked[0].contains(key), "{}", asked[0]);
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    const TURNS: usize = 10;
    let double = Double::start((0..TURNS).map(|_| Answer::written("chat", "text"))).await;
    let provider = provider(&double, Wire::Chat);
    for _ in 0..TURNS {
        let turn: Vec<_> = provider
            .turn(request(), CancellationToken::new())
            .collect()
            .await;
        assert!(matches!(turn.last(), Some(Ok(Delta::Done(_)))));
        // What is left of the answer is read behind our back; that may come too late now and then.
        double.answered().await;
        tokio::task::yield_now().await;
    }
    assert!(
        double.connections() < TURNS,
        "{} connections",
        double.connections()
    );
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for status in [429, 500, 502, 503, 529] {
        let double = Double::start([
            Answer::refused(status, "", "{}"),
            Answer::Hangup,
            Answer::written("chat", "text"),
        ])
        .await;
        let (deltas, error) = ask(&double, Wire::Chat).await;
        assert_eq!(error, None, "{status}");
        assert!(matches!(deltas.last(), Some(Delta::Done(_))));
        assert_eq!(double.asked().len(), 3);
    }
}

#[tokio::test]
async fn an_overload_that_is_told_before_anything_else_is_tried_again() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    // That the provider has begun to count is nothing that anybody was told.
    let counted = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n";
    for refused in [error.to_owned(), format!("{counted}{error}")] {
        let answers = [
            Answer::stream(refused),
            Answer::written("anthropic", "text"),
        ];
        let double = Double::start(answers).await;
        let (_, error) = ask(&double, Wire::Anthropic).await;
        assert_eq!(error, None);
    }
}

#[tokio::test]
async fn after_the_first_delta_nothing_is_tried_again() {
    for (wire, name) in WIRES {
        let double = Double::start([Answer::written(name, "overloaded")]).await;
        let outcome = ask(&double, wire).await;
        assert_eq!(
            outcome.0.last(),
            Some(&Delta::Text("There are".to_owned())),
            "{wire:?}"
        );
        assert_eq!(kind(&outcome), Some(ErrorKind::Overloaded), "{wire:?}");
        assert_eq!(double.asked().len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn a_cut_connection_and_a_clean_end_without_the_marker_are_errors() {
    for (wire, name) in WIRES {
        let whole = support::written(name, "tools");
        let half = whole[..whole.len() / 2].to_owned();
        for answer in [Answer::stream(half.clone()), Answer::cut(half.clone())] {
            let double = Double::start([answer]).await;
            let outcome = ask(&double, wire).await;
            assert_eq!(kind(&outcome), Some(ErrorKind::StreamCut), "{wire:?}");
            assert!(!outcome.0.is_empty(), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_says_when_is_asked_then_and_one_that_says_too_late_is_not() {
    let double = Double::start([
        Answer::refused(429, "retry-after-ms: 40\r\n", "{}"),
        Answer::written("chat", "text"),
    ])
    .await;
    let before = std::time::Instant::now();
    assert_eq!(ask(&double, Wire::Chat).await.1, None);
    assert!(before.elapsed() >= Duration::from_millis(40));

    let body = r#"{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#;
    let double = Double::start([Answer::refused(429, "", body)]).await;
    let (_, error) = ask(&double, Wire::Gemini).await;
    assert_eq!(
        error.unwrap().to_string(),
        "test takes no more for now: Quota exceeded. It may be asked again in 34 s."
    );
    assert_eq!(double.asked().len(), 1);
}

#[tokio::test]
async fn refusals_are_told_apart_and_not_tried_again() {
    use ErrorKind::*;
    let table = [
        (
            Wire::Anthropic,
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            KeyRefused,
        ),
        (
            Wire::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}"#,
            ProviderRefused,
        ),
        (
            Wire::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ContextFull,
        ),
        (
            Wire::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or `max_tokens` and try again"}}"#,
            ContextFull,
        ),
        (
            Wire::Anthropic,
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ContextFull,
        ),
        (
            Wire::Anthropic,
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
            UnknownModel,
        ),
        (
            Wire::Responses,
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            QuotaExhausted,
        ),
        (
            Wire::Responses,
            400,
            r#"{"error":{"message":"Your input exceeds the context window","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
            ContextFull,
        ),
        (
            Wire::Gemini,
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            KeyRefused,
        ),
        (
            Wire::Gemini,
            404,
            r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#,
            UnknownModel,
        ),
        (
            Wire::Chat,
            400,
            r#"{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in the messages.","type":"BadRequestError","param":null,"code":400}"#,
            ContextFull,
        ),
        (
            Wire::Chat,
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens.","code":400}}"#,
            ContextFull,
        ),
        (
            Wire::Chat,
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}"#,
            ContextFull,
        ),
        (
            Wire::Chat,
            400,
            r#"{"error":{"message":"`max_tokens` is below the minimum length","code":400}}"#,
            ProviderRefused,
        ),
        (Wire::Chat, 400, "no JSON at all", ProviderRefused),
        (Wire::Chat, 302, "", BadEndpoint),
    ];
    for (wire, status, body, expected) in table {
        let double = Double::start([Answer::refused(
            status,
            "location: http://127.0.0.1:9/\r\n",
            body,
        )])
        .await;
        let outcome = ask(&double, wire).await;
        assert_eq!(kind(&outcome), Some(expected), "{body}");
        assert_eq!(double.asked().len(), 1, "{body}");
        let told = format!("{:?}", outcome.1);
        assert!(!told.contains("secret-key"), "{told}");
    }
}

#[tokio::test]
async fn silence_is_an_error_before_the_first_byte_and_between_bytes() {
    let double = Double::start([Answer::Silence]).await;
    assert_eq!(
        kind(&ask(&double, Wire::Chat).await),
        Some(ErrorKind::ProviderTimeout)
    );
    assert_eq!(double.asked().len(), 1);

    let whole = support::written("chat", "text");
    let double = Double::start([Answer::then_silence(&whole[..whole.len() - 20])]).await;
    let outcome = ask(&double, Wire::Chat).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::ProviderTimeout));
    assert_eq!(outcome.0, [Delta::Text("There are two files.".to_owned())]);
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    let whole = support::written("chat", "text");
    let mut double = Double::start([Answer::then_silence(&whole[..whole.len() - 20])]).await;
    let cancel = CancellationToken::new();
    let mut stream = provider(&double, Wire::Chat).turn(request(), cancel.clone());
    assert!(matches!(stream.next().await, Some(Ok(Delta::Text(_)))));
    cancel.cancel();
    assert_eq!(stream.next().await, Some(Err(ProviderError::Cancelled)));
    assert_eq!(stream.next().await, None);
    double.hung_up().await;
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let retries = Retries {
        times: 0,
        ..Retries::default()
    };
    let base = format!("http://{address}");
    let endpoint = Endpoint::new(
        "test",
        &base,
        None,
        "TEST_KEY",
        Timeouts::default(),
        retries,
    );
    let provider = HttpProvider::new(endpoint.unwrap(), Wire::Chat);
    let outcome: Vec<_> = provider
        .turn(request(), CancellationToken::new())
        .collect()
        .await;
    let [Err(error)] = outcome.as_slice() else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind(), ErrorKind::ProviderUnreachable);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn addresses_and_keys_that_cannot_be_are_refused_before_anything_is_sent() {
    for (base, key) in [
        ("not an address", None),
        ("ftp://127.0.0.1", None),
        ("http://user:pass@127.0.0.1", None),
        ("http://127.0.0.1", Some("two\nlines")),
    ] {
        let made = Endpoint::new(
            "test",
            base,
            key,
            "TEST_KEY",
            Timeouts::default(),
            Retries::default(),
        );
        assert_eq!(made.unwrap_err().kind(), ErrorKind::BadEndpoint, "{base}");
    }
}
