//! What every request may look at.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use broker::Broker;
use gate::{Attachment, Gate};
use notebooks::Notebooks;
use protocol::{ErrorKind, Failure};
use runner::Runner;
use store::Store;

use crate::About;
use crate::auth::{Attempts, Caller, Logins, Tokens};

/// Answers that one actor can wait for, and events that it can follow, at once.
const MAX_HELD: usize = 128;

/// What every request may look at.
pub(crate) struct App<S: Store> {
    pub(crate) about: About,
    pub(crate) gate: Gate<S>,
    pub(crate) runner: Runner<S>,
    pub(crate) broker: Broker<S>,
    pub(crate) notebooks: Notebooks<S>,
    pub(crate) tokens: Arc<Tokens>,
    /// Where Ward listens; nowhere, where it is the owner for the time of one command.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) logins: Arc<Logins>,
    pub(crate) attempts: Attempts,
    pub(crate) clients: Clients,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

impl<S: Store> App<S> {
    #[allow(
        clippy::too_many_arguments,
        reason = "it is what an app is made of, once"
    )]
    pub(crate) fn new(
        about: About,
        gate: Gate<S>,
        runner: Runner<S>,
        broker: Broker<S>,
        notebooks: Notebooks<S>,
        tokens: Arc<Tokens>,
        address: Option<SocketAddr>,
        logins: Arc<Logins>,
    ) -> Self {
        Self {
            about,
            gate,
            runner,
            broker,
            notebooks,
            tokens,
            address,
            logins,
            attempts: Attempts::default(),
            clients: Clients::default(),
            held: Arc::default(),
        }
    }

    /// A place for an answer that takes its time: one actor cannot have them all.
    pub(crate) fn hold(&self, caller: &Caller) -> Result<Hold, Failure> {
        let name = caller.actor.name();
        let mut held = lock(&self.held);
        let count = held.entry(name.clone()).or_default();
        if *count >= MAX_HELD {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!(
                    "{MAX_HELD} answers to you are waited for already. Give one of them up, or ask with `wait` 0."
                ),
            ));
        }
        *count += 1;
        Ok(Hold {
            held: Arc::clone(&self.held),
            name,
        })
    }
}

/// A place, until this is dropped.
pub(crate) struct Hold {
    held: Arc<Mutex<HashMap<String, usize>>>,
    name: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = lock(&self.held);
        if let Some(count) = held.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.name);
            }
        }
    }
}

/// The clients that follow a person's inbox over HTTP, so that they can turn to something else.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<HashMap<String, (String, Weak<Attachment>)>>);

impl Clients {
    pub(crate) fn add(&self, person: &str, attached: &Arc<Attachment>) {
        let mut clients = lock(&self.0);
        clients.retain(|_, (_, attached)| attached.strong_count() > 0);
        clients.insert(attached.id(), (person.to_owned(), Arc::downgrade(attached)));
    }

    /// A client of this person that is attached now.
    pub(crate) fn get(&self, person: &str, id: &str) -> Option<Arc<Attachment>> {
        let clients = lock(&self.0);
        let (owner, attached) = clients.get(id)?;
        if owner != person {
            return None;
        }
        attached.upgrade()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
