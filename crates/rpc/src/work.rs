//! The work on one request or notification, as the peer polls it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use protocol::{ErrorKind, Failure};

use crate::cancel::Cancel;
use crate::failure;
use crate::id::Id;
use crate::message::Answer;

pub(crate) type Handling<'s> = Pin<Box<dyn Future<Output = Answer> + Send + 's>>;
pub(crate) type Noticing<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// A request under way.
pub(crate) struct Work<'s> {
    pub(crate) id: Id,
    pub(crate) cancel: Arc<Cancel>,
    pub(crate) handling: Option<Handling<'s>>,
}

impl Future for Work<'_> {
    type Output = (Id, Answer);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let dropped = self.cancel.drops(cx.waker());
        let answer = match &mut self.handling {
            Some(handling) if !dropped => match poll_caught(handling.as_mut(), cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(answer)) => answer,
                Poll::Ready(Err(Panicked)) => Err(panicked()),
            },
            Some(_) | None => Err(failure::cancelled()),
        };
        // Let go of what the handler holds before the other side hears of its end.
        self.handling = None;
        Poll::Ready((self.id.clone(), answer))
    }
}

/// The handler panicked.
pub(crate) struct Panicked;

/// Polls a handler; one that panics takes only itself down, not the connection.
pub(crate) fn poll_caught<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Panicked>> {
    // A handler that panicked is never polled again, so nobody sees what it left half-done.
    match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    }
}

pub(crate) fn panicked() -> Failure {
    Failure::new(
        ErrorKind::Internal,
        "Ward failed while working on this request. The log says where; please report it.",
    )
}
