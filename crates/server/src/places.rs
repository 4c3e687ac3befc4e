//! How many connections there are at once. Who has said who they are keeps their place; of the others
//! the one that came first makes room, so that nobody is kept out by those who say nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Whether somebody has said over a connection who they are. Clones are the same connection's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduced(Arc<AtomicBool>);

impl Introduced {
    /// They have.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The places there are.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    free: Arc<Semaphore>,
    /// Those that may have to make room, the oldest first.
    strangers: Mutex<VecDeque<Weak<Guest>>>,
}

#[derive(Debug)]
struct Guest {
    introduced: Introduced,
    /// Cancelled where it has to go.
    gone: CancellationToken,
}

/// A connection's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    guest: Arc<Guest>,
    // After the guest: whoever waits for it finds that gone.
    _free: Option<OwnedSemaphorePermit>,
}

impl Place {
    pub(crate) fn introduced(&self) -> Introduced {
        self.guest.introduced.clone()
    }

    /// Ready when it is needed for somebody else.
    pub(crate) async fn gone(&self) {
        self.guest.gone.cancelled().await;
    }
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            free: Arc::new(Semaphore::new(most)),
            strangers: Mutex::default(),
        }
    }

    /// Takes a place. Where all are taken somebody who has said nothing makes room; where there is
    /// nobody like that, it is waited for one.
    pub(crate) async fn take(&self) -> Place {
        if self.free.available_permits() == 0 {
            self.make_room();
        }
        let free = Arc::clone(&self.free).acquire_owned().await;
        let guest = Arc::new(Guest {
            introduced: Introduced::default(),
            gone: CancellationToken::new(),
        });
        let mut strangers = self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if strangers.len() >= 2 * self.most {
            strangers.retain(|guest| guest.strong_count() > 0);
        }
        strangers.push_back(Arc::downgrade(&guest));
        // It is never closed.
        Place {
            guest,
            _free: free.ok(),
        }
    }

    fn make_room(&self) {
        let mut strangers = self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(guest) = strangers.pop_front() {
            if let Some(guest) = guest.upgrade()
                && !guest.introduced.is_noted()
            {
                guest.gone.cancel();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_nobody_else() {
        let places = Places::new(3);
        let (known, first, second) = (
            places.take().await,
            places.take().await,
            places.take().await,
        );
        known.introduced().note();
        let ended = first.introduced();
        let leaves = async {
            first.gone().await;
            drop(first);
        };
        let (third, ()) = tokio::join!(places.take(), leaves);
        drop(ended);
        for place in [&known, &second, &third] {
            assert!(!place.guest.gone.is_cancelled());
        }
        // Where all have said who they are, the next one waits.
        for place in [&second, &third] {
            place.introduced().note();
        }
        let waits = places.take();
        tokio::pin!(waits);
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(second);
        waits.await;
    }
}
