//! The clients of each person that are attached now, and which of them is asked first.
//!
//! Who is attached is never stored: it is true only while the connection lasts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Where a client is with its person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Attention {
    /// Whether it is in front.
    pub front: bool,
    /// The session that it shows.
    pub session: Option<String>,
}

/// Everybody who is attached.
#[derive(Debug, Clone)]
pub(crate) struct Clients(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    attached: Mutex<Attached>,
    /// Counts every change, so that whoever routes looks again.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Attached {
    next: u64,
    clients: BTreeMap<u64, Client>,
}

#[derive(Debug)]
struct Client {
    person: String,
    attention: Attention,
    /// When it was last used, as a count.
    used: u64,
}

/// A client that is attached, until this is dropped.
#[derive(Debug)]
pub struct Attachment {
    clients: Clients,
    number: u64,
}

impl Default for Clients {
    fn default() -> Self {
        Self(Arc::new(Inner {
            attached: Mutex::default(),
            changed: watch::Sender::new(0),
        }))
    }
}

impl Clients {
    /// Attaches a client of this person.
    pub(crate) fn attach(&self, person: &str, attention: Attention) -> Attachment {
        let mut attached = self.attached();
        attached.next += 1;
        let number = attached.next;
        let client = Client {
            person: person.to_owned(),
            attention,
            used: number,
        };
        attached.clients.insert(number, client);
        drop(attached);
        self.tell();
        Attachment {
            clients: self.clone(),
            number,
        }
    }

    /// The client that is asked first: in front with this session, else in front, else the one that
    /// shows the session, else the one that was used last.
    pub(crate) fn active(&self, person: &str, session: Option<&str>) -> Option<String> {
        let attached = self.attached();
        attached
            .clients
            .iter()
            .filter(|(_, client)| client.person == person)
            .max_by_key(|(_, client)| {
                let shows = session.is_some() && client.attention.session.as_deref() == session;
                (
                    client.attention.front && shows,
                    client.attention.front,
                    shows,
                    client.used,
                )
            })
            .map(|(number, _)| name(*number))
    }

    /// Told whenever somebody comes, goes or turns to something else.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    fn tell(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        // Nothing panics while it is held.
        self.0
            .attached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment {
    /// What approvals name this client by.
    #[must_use]
    pub fn id(&self) -> String {
        name(self.number)
    }

    /// The person is here now, or no longer.
    pub fn turn(&self, attention: Attention) {
        let mut attached = self.clients.attached();
        attached.next += 1;
        let used = attached.next;
        if let Some(client) = attached.clients.get_mut(&self.number) {
            client.attention = attention;
            client.used = used;
        }
        drop(attached);
        self.clients.tell();
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.clients.attached().clients.remove(&self.number);
        self.clients.tell();
    }
}

fn name(number: u64) -> String {
    format!("client-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(front: bool, session: Option<&str>) -> Attention {
        Attention {
            front,
            session: session.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn the_client_in_front_with_the_session_is_asked_first_and_the_next_when_it_goes() {
        let clients = Clients::default();
        assert_eq!(clients.active("ada", Some("s")), None);
        let back = clients.attach("ada", at(false, None));
        let shows = clients.attach("ada", at(false, Some("s")));
        let front = clients.attach("ada", at(true, Some("other")));
        let best = clients.attach("ada", at(true, Some("s")));
        let _stranger = clients.attach("bob", at(true, Some("s")));
        for expected in [best, front, shows, back] {
            assert_eq!(clients.active("ada", Some("s")), Some(expected.id()));
            drop(expected);
        }
        assert_eq!(clients.active("ada", Some("s")), None);
    }

    #[test]
    fn of_equals_the_one_that_was_used_last_is_asked() {
        let clients = Clients::default();
        let first = clients.attach("ada", at(true, None));
        let second = clients.attach("ada", at(true, None));
        assert_eq!(clients.active("ada", None), Some(second.id()));
        first.turn(at(true, None));
        assert_eq!(clients.active("ada", None), Some(first.id()));
    }
}
