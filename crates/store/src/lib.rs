//! Streams of events, as pure types and one trait.
//!
//! A [`StreamName`] names an ordered list of [`Event`]s; each has a [`Seq`], counted from 1 without
//! gaps, from which any reader can resume. A [`Store`] keeps them; which engine it is built on is
//! another crate's business (`store-sqlite`).
//!
//! Invariants:
//! - No I/O, no clock, no async runtime: the time of an event is given by whoever appends it, and
//!   the crate builds for wasm32.
//! - An event is never changed, and none is taken out of a stream; a stream can be removed whole, by
//!   whoever it belongs to.
//! - What is appended together is there together or not at all, and it is there, also if this
//!   process is killed in that moment, before the appender is told.

#![forbid(unsafe_code)]

mod error;
mod event;
mod name;
pub mod replica;
mod seq;

use std::future::Future;
use std::sync::Arc;

pub use error::StoreError;
pub use event::{Event, Json, Millis, NewEvent};
pub use name::{BadStreamName, StreamName};
pub use seq::{Expected, Seq};

/// Events for one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Which stream; it begins with its first event.
    pub stream: StreamName,
    /// What its last event must be, for this to fit.
    pub expected: Expected,
    /// The events, in order.
    pub events: Vec<NewEvent>,
}

/// Where streams are kept.
pub trait Store: Send + Sync + 'static {
    /// Appends to several streams, all or nothing, and answers the head of each afterwards, in the
    /// same order. When this returns it survives the end of this process, however that comes.
    ///
    /// Refuses the whole batch with [`StoreError::Conflict`] where one stream is not where it was
    /// expected.
    fn append(
        &self,
        batch: Vec<Append>,
    ) -> impl Future<Output = Result<Vec<Seq>, StoreError>> + Send;

    /// The events of a stream after `after`, in order, at most `limit`. A stream that nobody
    /// appended to has none.
    fn read(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send;

    /// As [`Store::read`], and with each event the text of its data as it lies there, byte for byte:
    /// for whoever has to know whether somebody else was at it.
    fn read_texts(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Event, Json)>, StoreError>> + Send;

    /// The last events of a stream, in order, at most `limit`.
    fn tail(
        &self,
        stream: &StreamName,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send;

    /// Where a stream is; one that nobody appended to is at its start. It is asked before every
    /// action, so it is to be quick.
    fn head(&self, stream: &StreamName) -> impl Future<Output = Result<Seq, StoreError>> + Send;

    /// Waits until a stream has an event after `after`, and answers its head. Reading on from
    /// there and waiting again follows a stream without a gap.
    fn beyond(
        &self,
        stream: &StreamName,
        after: Seq,
    ) -> impl Future<Output = Result<Seq, StoreError>> + Send;

    /// Removes whole streams, all or nothing: what a person deletes is gone. Whoever follows one of
    /// them waits on; a stream of that name begins anew.
    fn remove(
        &self,
        streams: Vec<StreamName>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// How many events there are in all streams together.
    fn count(&self) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

impl<S: Store> Store for Arc<S> {
    async fn append(&self, batch: Vec<Append>) -> Result<Vec<Seq>, StoreError> {
        (**self).append(batch).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        (**self).read(stream, after, limit).await
    }

    async fn read_texts(
        &self,
        stream: &StreamName,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Event, Json)>, StoreError> {
        (**self).read_texts(stream, after, limit).await
    }

    async fn tail(&self, stream: &StreamName, limit: usize) -> Result<Vec<Event>, StoreError> {
        (**self).tail(stream, limit).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Seq, StoreError> {
        (**self).head(stream).await
    }

    async fn beyond(&self, stream: &StreamName, after: Seq) -> Result<Seq, StoreError> {
        (**self).beyond(stream, after).await
    }

    async fn remove(&self, streams: Vec<StreamName>) -> Result<(), StoreError> {
        (**self).remove(streams).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        (**self).count().await
    }
}
