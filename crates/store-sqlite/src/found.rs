//! What a reader gets of an event that was found: the event, or the text of its data with it.

use store::{Event, Json, Millis, Seq};

use crate::json;

/// An event as somebody wants to have it. Most want no text, and then none is kept.
pub(crate) trait Found: Sized + Send + 'static {
    fn of(seq: Seq, at: Millis, kind: String, text: &str) -> serde_json::Result<Self>;

    fn seq(&self) -> Seq;
}

impl Found for Event {
    fn of(seq: Seq, at: Millis, kind: String, text: &str) -> serde_json::Result<Self> {
        Ok(Self {
            seq,
            kind,
            at,
            data: json::read(text)?,
        })
    }

    fn seq(&self) -> Seq {
        self.seq
    }
}

impl Found for (Event, Json) {
    fn of(seq: Seq, at: Millis, kind: String, text: &str) -> serde_json::Result<Self> {
        let event = Event::of(seq, at, kind, text)?;
        Ok((event, Json::from_text(text.to_owned())))
    }

    fn seq(&self) -> Seq {
        self.0.seq
    }
}
