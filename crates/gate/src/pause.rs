//! Lets other tasks go first.

use std::future::poll_fn;
use std::task::Poll;

/// Returns when the tasks that are ready now have had their turn. Tokio's own way to yield looks
/// for I/O as well: a system call that nobody here waits for.
pub(crate) async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
