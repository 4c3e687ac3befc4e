//! The other side of a connection, byte by byte, and a service that does what a test asks.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a module of several tests, each of which uses its part"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::{ErrorKind, Failure};
use rpc::{
    Answer, End, Frame, FrameReader, Limits, Notification, Peer, Remote, Request, Service, answer,
    write_frame,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A client that writes what it likes.
pub struct Raw {
    pub stream: DuplexStream,
    frames: FrameReader,
}

impl Raw {
    pub fn new(stream: DuplexStream) -> Self {
        Self {
            stream,
            frames: FrameReader::new(usize::MAX),
        }
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, body: &str) {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, body.as_bytes());
        self.stream.write_all(&bytes).await.unwrap();
    }

    pub async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    pub async fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// The next message; `None` at the end.
    pub async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next() {
                let Frame::Body(body) = frame else {
                    panic!("the peer wrote {frame:?}");
                };
                return Some(serde_json::from_slice(body).unwrap());
            }
            let count = self.stream.read(self.frames.spare()).await.unwrap();
            if count == 0 {
                return None;
            }
            self.frames.filled(count);
        }
    }
}

/// What happened on the side of the service, in order.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Says when it is dropped.
pub struct Dropped(pub Log, pub String);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add(format!("dropped {}", self.1));
    }
}

/// A service with one method for each thing a test needs.
#[derive(Clone)]
pub struct Bench {
    pub log: Log,
    /// `wait` goes on when there is a permit.
    pub gate: Arc<Semaphore>,
    pub remote: Remote,
}

impl Service for Bench {
    async fn request(&self, request: Request) -> Answer {
        match request.method.as_str() {
            "echo" => Ok(request.params.unwrap_or_default()),
            "fail" => Err(Failure::new(ErrorKind::NotFound, "Not there.").with("path", "a")),
            "panic" => panic!("on purpose"),
            "count" => answer(&self.log.lines()),
            "wait" => {
                let name: Vec<String> = request.read()?;
                self.log.add(format!("started {}", name[0]));
                let _dropped = Dropped(self.log.clone(), name[0].clone());
                self.gate.acquire().await.unwrap().forget();
                answer(&name[0])
            }
            "heed" => {
                let token = request.cancel_token();
                self.log.add("started heed");
                token.cancelled().await;
                tokio::task::yield_now().await;
                self.log.add("put away");
                Err(Failure::new(ErrorKind::Cancelled, "Put away.").with("by", "itself"))
            }
            "stubborn" => {
                let _token = request.cancel_token();
                let _dropped = Dropped(self.log.clone(), "stubborn".into());
                std::future::pending::<()>().await;
                answer(&())
            }
            "tell" => {
                for number in 0..3 {
                    self.remote.notify("told", &[number]).await?;
                }
                answer(&"all told")
            }
            "back" => {
                let question: Value = request.read()?;
                self.remote.call_raw("question", &question).await
            }
            _ => Err(request.unknown()),
        }
    }

    async fn notification(&self, notification: Notification) {
        let params: Value = notification.read().unwrap();
        match notification.method.as_str() {
            "slow" => {
                self.gate.acquire().await.unwrap().forget();
                self.log.add(format!("slow {params}"));
            }
            "close" => self.remote.close(),
            method => self.log.add(format!("{method} {params}")),
        }
    }
}

/// A peer with the bench behind it, and the raw other side.
pub struct Setup {
    pub raw: Raw,
    pub bench: Bench,
    pub running: JoinHandle<End>,
}

pub fn setup(limits: Limits, pipe: usize) -> Setup {
    let (here, there) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(here);
    let (peer, remote) = Peer::new(reader, writer, limits);
    let bench = Bench {
        log: Log::default(),
        gate: Arc::new(Semaphore::new(0)),
        remote,
    };
    Setup {
        raw: Raw::new(there),
        bench: bench.clone(),
        running: tokio::spawn(peer.run(bench)),
    }
}

/// Waits until nothing moves any more: the clock stands still and only goes on when all is idle.
pub async fn until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
