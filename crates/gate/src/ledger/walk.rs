//! Goes through the stream in pieces, past what cannot be read.

use store::{Event, Json, Seq, Store, StoreError, StreamName};

/// How many entries are held at once.
const PIECE: usize = 256;

/// What is in a place.
#[derive(Debug)]
pub(super) enum Place {
    /// An event, and its text as it lies there.
    Event(Event, Json),
    /// The store cannot make sense of what is there.
    Unreadable { seq: Seq, why: String },
}

/// A way through the stream.
#[derive(Debug)]
pub(super) struct Walk<'a, S> {
    store: &'a S,
    stream: &'a StreamName,
    after: Seq,
    /// Up to here there should be something.
    until: Seq,
}

impl<'a, S: Store> Walk<'a, S> {
    pub(super) fn new(store: &'a S, stream: &'a StreamName, after: Seq, until: Seq) -> Self {
        Self {
            store,
            stream,
            after,
            until,
        }
    }

    /// The next places, in order; none at the end.
    pub(super) async fn piece(&mut self) -> Result<Vec<Place>, StoreError> {
        match self.store.read_texts(self.stream, self.after, PIECE).await {
            Ok(events) => {
                if let Some((last, _)) = events.last() {
                    self.after = last.seq;
                }
                let places = events.into_iter();
                Ok(places
                    .map(|(event, text)| Place::Event(event, text))
                    .collect())
            }
            // One of them cannot be read: which, is found one by one.
            Err(StoreError::Failed(_)) => self.one_by_one().await,
            Err(error) => Err(error),
        }
    }

    async fn one_by_one(&mut self) -> Result<Vec<Place>, StoreError> {
        let mut places = Vec::new();
        let mut readable = false;
        while places.len() < PIECE {
            match self.store.read_texts(self.stream, self.after, 1).await {
                Ok(events) => {
                    readable = true;
                    let Some((event, text)) = events.into_iter().next() else {
                        break;
                    };
                    self.after = event.seq;
                    places.push(Place::Event(event, text));
                }
                Err(StoreError::Failed(why)) if self.after < self.until => {
                    self.after = self.after.next();
                    places.push(Place::Unreadable {
                        seq: self.after,
                        why,
                    });
                }
                // Then it is not about one entry.
                Err(error) if !readable => return Err(error),
                Err(_) => break,
            }
        }
        if places.len() == PIECE && !readable {
            return Err(StoreError::Failed(
                "nothing of the ledger can be read".into(),
            ));
        }
        Ok(places)
    }
}
