//! A server that says exactly these bytes, one answer for each request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What a request is answered with.
pub(crate) enum Answer {
    /// These bytes, and then the next request on the same connection.
    Whole(Vec<u8>),
    /// These bytes, and then the connection is closed.
    Broken(Vec<u8>),
    /// These bytes, and then nothing, for as long as the other side stays.
    Held(Vec<u8>),
    /// Nothing, for as long as the other side stays.
    Silence,
    /// The connection is closed.
    Hangup,
}

pub(crate) fn written(wire: &str, stream: &str) -> Vec<u8> {
    // Tests run in their crate's folder.
    let file = format!("tests/streams/{wire}/{stream}.sse");
    std::fs::read(&file).expect(&file)
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(body: &[u8]) -> Vec<u8> {
    let mut bytes = HEAD.as_bytes().to_owned();
    bytes.extend(format!("{:x}\r\n", body.len()).bytes());
    bytes.extend(body);
    bytes.extend(b"\r\n");
    bytes
}

impl Answer {
    /// A stream that ends as HTTP wants it, whatever is in it.
    pub(crate) fn stream(body: impl AsRef<[u8]>) -> Self {
        let mut bytes = chunk(body.as_ref());
        bytes.extend(b"0\r\n\r\n");
        Self::Whole(bytes)
    }

    pub(crate) fn written(wire: &str, stream: &str) -> Self {
        Self::stream(written(wire, stream))
    }

    /// A stream whose connection breaks.
    pub(crate) fn cut(body: impl AsRef<[u8]>) -> Self {
        Self::Broken(chunk(body.as_ref()))
    }

    pub(crate) fn then_silence(body: impl AsRef<[u8]>) -> Self {
        Self::Held(chunk(body.as_ref()))
    }

    pub(crate) fn refused(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} No\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Self::Whole(head.into_bytes())
    }
}

/// The server.
pub(crate) struct Double {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    answered: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
    hung_up: mpsc::UnboundedReceiver<()>,
}

struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    asked: Arc<Mutex<Vec<String>>>,
    answered: mpsc::UnboundedSender<()>,
    hung_up: mpsc::UnboundedSender<()>,
}

impl Double {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answered, heard) = mpsc::unbounded_channel();
        let (hung_up, gone) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Arc::clone(&asked),
            answered,
            hung_up,
        });
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self {
            base,
            asked,
            connections,
            answered: tokio::sync::Mutex::new(heard),
            hung_up: gone,
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Every request so far, head and body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until one more answer was written.
    pub(crate) async fn answered(&self) {
        self.answered.lock().await.recv().await.unwrap();
    }

    /// Waits until the other side has closed its connection.
    pub(crate) async fn hung_up(&mut self) {
        self.hung_up.recv().await.unwrap();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    while let Some(request) = read(&mut stream).await {
        shared.asked.lock().unwrap().push(request);
        let answer = shared.answers.lock().unwrap().pop_front();
        match answer.expect("a request too many") {
            Answer::Whole(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                let _ = shared.answered.send(());
            }
            Answer::Broken(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return;
            }
            Answer::Held(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                let _ = stream.read(&mut [0]).await;
                let _ = shared.hung_up.send(());
                return;
            }
            Answer::Silence => {
                let _ = stream.read(&mut [0]).await;
                return;
            }
            Answer::Hangup => return,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&piece[..count]),
        }
    }
}
