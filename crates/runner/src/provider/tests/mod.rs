//! What the wires make of streams written from the documentation, and what they send.

mod golden;
mod streams;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;

use super::http::{Endpoint, Fault, Reader, Retries, Timeouts, events};
use super::*;

pub(super) const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini];

pub(super) fn name(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic",
        Wire::Responses => "responses",
        Wire::Chat => "chat",
        Wire::Gemini => "gemini",
        Wire::Offline => "offline",
    }
}

pub(super) fn written(wire: Wire, stream: &str) -> Vec<u8> {
    // Tests run in their crate's folder.
    let file = format!("tests/streams/{}/{stream}.sse", name(wire));
    std::fs::read(&file).expect(&file)
}

pub(super) fn endpoint() -> Endpoint {
    let base = "http://127.0.0.1:9";
    let (timeouts, retries) = (Timeouts::default(), Retries::default());
    Endpoint::new("test", base, None, "TEST_KEY", timeouts, retries).unwrap()
}

/// What becomes of an answer that comes in these pieces.
pub(super) async fn read(
    wire: Wire,
    pieces: Vec<Bytes>,
) -> (Vec<Delta>, Result<(), ProviderError>) {
    let request = TurnRequest::default();
    match wire {
        Wire::Anthropic => reading::<anthropic::reader::Reader>(pieces, &request).await,
        Wire::Responses => reading::<responses::reader::Reader>(pieces, &request).await,
        Wire::Chat => reading::<chat::reader::Reader>(pieces, &request).await,
        Wire::Gemini => reading::<gemini::reader::Reader>(pieces, &request).await,
        Wire::Offline => panic!("no wire"),
    }
}

async fn reading<R: Reader>(
    pieces: Vec<Bytes>,
    request: &TurnRequest,
) -> (Vec<Delta>, Result<(), ProviderError>) {
    let bytes = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let mut events = Box::pin(events::events(
        "test".to_owned(),
        bytes,
        Timeouts::default(),
    ));
    let mut reader = R::new("test", request);
    let mut out = Vec::new();
    let fault = |fault: Fault| fault.into_error(&endpoint());
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return (out, Err(error)),
        };
        let (name, data) = (
            event.event.unwrap_or_default(),
            event.data.unwrap_or_default(),
        );
        if let Err(error) = reader.event(&name, &data, &mut out) {
            return (out, Err(fault(error)));
        }
        if reader.is_complete() {
            break;
        }
    }
    let end = reader.end(&mut out).map_err(fault);
    (out, end)
}

/// The turn that a stream written from the documentation is.
pub(super) async fn turn(wire: Wire, stream: &str) -> Turn {
    let (deltas, end) = read(wire, vec![written(wire, stream).into()]).await;
    end.unwrap();
    match deltas.into_iter().next_back() {
        Some(Delta::Done(turn)) => turn,
        other => panic!("{other:?} at the end"),
    }
}

pub(super) fn tools() -> Arc<[Tool]> {
    ["fs_list", "fs_read"]
        .into_iter()
        .map(|name| Tool {
            name: name.to_owned(),
            description: format!("Does {name}."),
            input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        })
        .collect()
}
