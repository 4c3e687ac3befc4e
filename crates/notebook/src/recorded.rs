//! An event as the server tells it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Millis;
use store::replica::{Entry, EventId};

use crate::event::NotebookEvent;

/// An event as the server tells it: the entry as it was written, and the server's word on who wrote
/// it and when, which no client can set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// Which one, whoever has it.
    #[schemars(with = "Id")]
    pub id: EventId,
    /// What happened.
    pub event: NotebookEvent,
    /// Who authenticated: `person:ada`, `agent:4f2a`, or `ward`.
    pub actor: String,
    /// When, by the server's clock, in milliseconds since 1970.
    #[schemars(with = "u64")]
    pub at: Millis,
}

/// [`EventId`], for the schema.
#[derive(JsonSchema)]
#[schemars(rename = "EventId")]
#[allow(dead_code, reason = "it is only described")]
struct Id {
    /// The replica that it was written to.
    writer: String,
    /// Counted from 1 there.
    number: u64,
}

impl From<Recorded> for Entry<NotebookEvent> {
    fn from(recorded: Recorded) -> Self {
        Self {
            id: recorded.id,
            event: recorded.event,
            actor: Some(recorded.actor),
            at: Some(recorded.at),
        }
    }
}
