//! Who is in a room: the actions whose commands run there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

/// The actions whose commands run in one room, or are about to.
#[derive(Debug)]
pub(crate) struct Guests {
    list: Mutex<List>,
    /// How many there are, for who waits until there is none.
    count: watch::Sender<usize>,
}

#[derive(Debug)]
struct List {
    ids: Vec<Arc<str>>,
    /// When the last one came or went.
    changed: Instant,
}

/// One of them, from before its command is started until nothing of that is left.
#[derive(Debug)]
pub(crate) struct Guest {
    guests: Arc<Guests>,
    id: Arc<str>,
}

impl Guests {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            list: Mutex::new(List {
                ids: Vec::new(),
                changed: Instant::now(),
            }),
            count: watch::Sender::new(0),
        })
    }

    pub(crate) fn enter(self: &Arc<Self>, id: &str) -> Guest {
        let id: Arc<str> = id.into();
        self.change(|ids| ids.push(Arc::clone(&id)));
        Guest {
            guests: Arc::clone(self),
            id,
        }
    }

    /// The ids of their actions.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.list().ids.iter().map(ToString::to_string).collect()
    }

    /// Since when nobody is here; nothing where somebody is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let list = self.list();
        list.ids.is_empty().then_some(list.changed)
    }

    /// Waits until nobody is here.
    pub(crate) async fn gone(&self) {
        // It ends with the sender, which is here.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<str>>)) {
        let mut list = self.list();
        change(&mut list.ids);
        list.changed = Instant::now();
        self.count.send_replace(list.ids.len());
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Nothing panics while it is held.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.change(|ids| {
            if let Some(at) = ids.iter().position(|id| Arc::ptr_eq(id, &self.id)) {
                ids.swap_remove(at);
            }
        });
    }
}
