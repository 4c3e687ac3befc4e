//! At its bounds a connection waits; it does not grow.

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use rpc::{Limits, Peer, write_frame};
use serde_json::json;
use support::{Bench, Log, setup, until_idle};
use tokio::io::AsyncWrite;
use tokio::sync::Semaphore;

#[tokio::test(start_paused = true)]
async fn at_the_bound_of_requests_under_way_reading_stops() {
    let limits = Limits {
        in_flight: 2,
        ..Limits::default()
    };
    let mut it = setup(limits, 1 << 20);
    for name in ["a", "b", "c"] {
        it.raw.ask(name, "wait", json!([name])).await;
    }
    until_idle().await;
    assert_eq!(it.bench.log.lines(), ["started a", "started b"]);
    it.bench.gate.add_permits(1);
    assert_eq!(
        it.raw.receive().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": "a", "result": "a"})
    );
    until_idle().await;
    assert_eq!(
        it.bench.log.lines(),
        ["started a", "started b", "dropped a", "started c"]
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_tells_more_than_the_other_side_reads_has_to_wait() {
    let limits = Limits {
        outgoing: 4,
        ..Limits::default()
    };
    let mut it = setup(limits, 1024);
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let remote = it.bench.remote.clone();
    let text = "x".repeat(100_000);
    tokio::spawn(async move {
        for _ in 0..100 {
            remote.notify("more", &json!([text])).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    until_idle().await;
    let stuck = told.load(Ordering::SeqCst);
    assert!((4..10).contains(&stuck), "{stuck} were taken");
    for _ in 0..100 {
        it.raw.receive().await.unwrap();
    }
    until_idle().await;
    assert_eq!(told.load(Ordering::SeqCst), 100);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_what_is_told_can_still_cancel() {
    let mut it = setup(Limits::default(), 1024);
    let remote = it.bench.remote.clone();
    let text = "x".repeat(100_000);
    tokio::spawn(async move { while remote.notify("more", &json!([text])).await.is_ok() {} });
    it.raw.ask(1, "wait", json!(["a"])).await;
    until_idle().await;
    it.raw.tell("$/cancelRequest", json!({"id": 1})).await;
    until_idle().await;
    assert_eq!(it.bench.log.lines(), ["started a", "dropped a"]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_the_answers_is_not_read_either() {
    let mut it = setup(Limits::default(), 256 * 1024);
    let text = "x".repeat(100_000);
    let mut sent = 0;
    loop {
        let ask = it.raw.ask(sent, "echo", json!([text]));
        match tokio::time::timeout(std::time::Duration::from_millis(1), ask).await {
            Ok(()) => sent += 1,
            Err(_) => break,
        }
        assert!(sent < 100, "nothing ever stopped");
    }
    assert!(sent >= 40, "stopped after {sent}");
}

/// Counts the writes, takes everything.
struct Writes(Arc<AtomicUsize>);

impl AsyncWrite for Writes {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn answers_to_what_arrived_together_leave_in_one_write() {
    let mut bytes = Vec::new();
    for id in 0..64 {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": {}});
        write_frame(&mut bytes, request.to_string().as_bytes());
    }
    let writes = Arc::new(AtomicUsize::new(0));
    let (peer, remote) = Peer::new(&bytes[..], Writes(Arc::clone(&writes)), Limits::default());
    peer.run(Bench {
        log: Log::default(),
        gate: Arc::new(Semaphore::new(0)),
        remote,
    })
    .await;
    assert_eq!(writes.load(Ordering::SeqCst), 1);
}
