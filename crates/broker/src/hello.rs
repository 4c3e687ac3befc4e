//! What a connection may send before it has said who it is: little, and few at once.
//!
//! An editor's messages are large. Whoever has not said who they are could fill the memory with them,
//! and that may be a page of any site, in a browser on this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use protocol::{ErrorKind, Failure};
use store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::broker::{Broker, HELLO};

/// Where the layer answers.
const PATH: &str = "/socket.io";
/// How large a request can be whose sender is not known.
const MAX_HELLO: usize = 16 * 1024;
/// Websockets at once whose other end is not known: each can have sent as much as a message has.
const MAX_UNKNOWN: usize = 8;
/// Others at once whose other end is not known: each takes some room for as long as it may be silent.
const MAX_SILENT: usize = 512;
/// What is left to the layer to close those that said nothing.
const MARGIN: Duration = Duration::from_secs(1);

/// How a request is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hello {
    /// As it is: its sender has said who they are.
    Known,
    /// As it is: it asks for a websocket, and has a place among those whose other end is not known.
    Websocket,
    /// Where it is no larger than this, and sent within this time.
    Small(usize, Duration),
}

/// One of the places for those whose other end is not known. It goes with the request, and is
/// free again when the connection is gone. Clones are the same place.
#[derive(Debug, Clone)]
struct Place(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Place {
    fn leave(&self) {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

type Taken = Weak<Mutex<Option<OwnedSemaphorePermit>>>;

/// Who has not said yet who they are.
pub(crate) struct Unknown {
    websockets: Arc<Semaphore>,
    others: Arc<Semaphore>,
    /// Those that began otherwise and became websockets.
    upgraded: Mutex<HashMap<String, Vec<Taken>>>,
}

impl Default for Unknown {
    fn default() -> Self {
        Self {
            websockets: Arc::new(Semaphore::new(MAX_UNKNOWN)),
            others: Arc::new(Semaphore::new(MAX_SILENT)),
            upgraded: Mutex::default(),
        }
    }
}

impl Unknown {
    /// This one is known from now on.
    pub(crate) fn known(&self, socket_id: &str, parts: &Parts) {
        if let Some(place) = parts.extensions.get::<Place>() {
            place.leave();
        }
        let upgraded = self.upgraded().remove(socket_id).unwrap_or_default();
        for place in upgraded.iter().filter_map(Weak::upgrade) {
            Place(place).leave();
        }
    }

    fn upgraded(&self) -> MutexGuard<'_, HashMap<String, Vec<Taken>>> {
        // Nothing panics while it is held.
        self.upgraded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request to this path is answered by the broker's layer.
#[must_use]
pub fn is_for(path: &str) -> bool {
    let rest = path.strip_prefix(PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl<S: Store> Broker<S> {
    /// How this request, which [`is_for`] the layer, is taken before the layer sees it.
    pub async fn hello(&self, parts: &mut Parts) -> Result<Hello, Failure> {
        // As the layer reads it: the first of each name counts.
        let query = parts.uri.query().unwrap_or_default();
        let field = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
        let socket_id = field("sid=").map(ToOwned::to_owned);
        let is_websocket = field("transport=") == Some("websocket");
        if socket_id.as_deref().is_some_and(|id| self.has_said(id)) {
            return Ok(Hello::Known);
        }
        let_go_of_the_rest(parts);
        let unknown = &self.0.unknown;
        if !is_websocket {
            // What begins here is kept until it says who it is, or its time is up.
            if socket_id.is_none() {
                parts.extensions.insert(place(&unknown.others).await?);
            }
            return Ok(Hello::Small(MAX_HELLO, HELLO));
        }
        let place = place(&unknown.websockets).await?;
        if let Some(id) = socket_id {
            let taken = Arc::downgrade(&place.0);
            unknown
                .upgraded()
                .entry(id.clone())
                .or_default()
                .push(taken);
            // It has said who it is by then, or the layer has closed it.
            let broker = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(HELLO + MARGIN).await;
                broker.0.unknown.upgraded().remove(&id);
            });
        }
        parts.extensions.insert(place);
        Ok(Hello::Websocket)
    }
}

/// The layer keeps the head of the request that a connection began with for as long as that lasts, and
/// its parts are pieces of all that was read at once. Each gets a text of its own.
fn let_go_of_the_rest(parts: &mut Parts) {
    for value in parts.headers.values_mut() {
        if let Ok(own) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = own;
        }
    }
    if let Ok(own) = parts.uri.to_string().parse() {
        parts.uri = own;
    }
}

/// The next place that is free.
async fn place(places: &Arc<Semaphore>) -> Result<Place, Failure> {
    let next = tokio::time::timeout(HELLO, Arc::clone(places).acquire_owned());
    let Ok(Ok(permit)) = next.await else {
        return Err(Failure::new(
            ErrorKind::Busy,
            "Too many connections have not said who they are. Try again in a moment.",
        ));
    };
    Ok(Place(Arc::new(Mutex::new(Some(permit)))))
}
