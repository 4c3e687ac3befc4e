//! What happens to an action while it is under way, for whoever waits for it.

use protocol::approval::{Approval, Resolved};
use protocol::method::OutputParams;
use store::{Seq, Store};

use crate::door::output;
use crate::gate::Gate;
use crate::live::Live;
use crate::record::{events, stream_of};

/// How many events are read at a time.
const PAGE: usize = 64;

/// Something that happened to an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// A person is asked.
    Asked(Box<Approval>),
    /// The question is closed.
    Answered(Box<Resolved>),
    /// It printed something.
    Printed(OutputParams),
}

impl<S: Store> Gate<S> {
    /// What happened to an action after `after`, which moves on; nothing where nothing did. Whoever
    /// waits for [`Live::printed`] to change and reads again misses nothing.
    pub async fn happened(&self, live: &Live, after: &mut Seq) -> Vec<Happened> {
        let mut all = Vec::new();
        let Ok(stream) = stream_of(&live.id) else {
            return all;
        };
        loop {
            let events = match self.store().read(&stream, *after, PAGE).await {
                Ok(events) => events,
                Err(error) => {
                    tracing::error!(%error, "an action's events could not be read");
                    return all;
                }
            };
            let Some(last) = events.last() else {
                return all;
            };
            *after = last.seq;
            for event in events {
                let happened = match event.kind.as_str() {
                    events::ASKED => serde_json::from_value(event.data).ok().map(Happened::Asked),
                    events::ANSWERED => serde_json::from_value(event.data)
                        .ok()
                        .map(Happened::Answered),
                    kind @ (events::OUTPUT | events::DROPPED) => {
                        Some(Happened::Printed(output(&live.id, 0, kind, &event.data)))
                    }
                    _ => None,
                };
                all.extend(happened);
            }
        }
    }
}
