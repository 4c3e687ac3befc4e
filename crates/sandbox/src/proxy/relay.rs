//! Moves bytes between a client and its target: bounded buffers, and an end when nothing moves.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::http::{Body, chunk_size};

/// What is read at once in each direction.
const BUFFER: usize = 16 * 1024;
/// How long a chunk's first line, and all trailer lines together, may be.
const MAX_CHUNK_LINE: u64 = 4 * 1024;
/// What a client may still send after its answer before the connection is cut.
const MAX_DRAINED: u64 = 256 * 1024;
/// And for how long.
const DRAIN: Duration = Duration::from_secs(2);

/// When something last moved, in either direction.
struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn note(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Comes back when nothing has moved for `idle`.
    async fn ceased(&self, idle: Duration) {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let end = self.start + last + idle;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }

    /// Copies until `from` ends. Answers how many bytes that were.
    async fn copy(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<u64> {
        let mut buffer = vec![0; BUFFER];
        let mut copied = 0;
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return Ok(copied);
            }
            to.write_all(&buffer[..read]).await?;
            copied += read as u64;
            self.note();
        }
    }
}

/// Joins the two until both have said all, one fails, or nothing moves for `idle`. `early` is what
/// the client had already said.
pub(super) async fn tunnel(
    mut client: TcpStream,
    mut upstream: TcpStream,
    early: &[u8],
    idle: Duration,
) -> io::Result<()> {
    let activity = Activity::new();
    upstream.write_all(early).await?;
    let (mut client_read, mut client_write) = client.split();
    let (mut upstream_read, mut upstream_write) = upstream.split();
    let up = async {
        activity.copy(&mut client_read, &mut upstream_write).await?;
        upstream_write.shutdown().await
    };
    let down = async {
        activity.copy(&mut upstream_read, &mut client_write).await?;
        client_write.shutdown().await
    };
    tokio::select! {
        both = async { tokio::try_join!(up, down) } => both.map(|_| ()),
        () = activity.ceased(idle) => Ok(()),
    }
}

/// Sends one request on and its answer back. Answers how many bytes came back. Of what the client
/// says, exactly `head` and its body reach the target, and nothing after it.
pub(super) async fn forward(
    client: &mut TcpStream,
    upstream: &mut TcpStream,
    head: &[u8],
    body: Body,
    early: &[u8],
    idle: Duration,
) -> io::Result<u64> {
    let activity = Activity::new();
    let (client_read, mut client_write) = client.split();
    let (mut upstream_read, mut upstream_write) = upstream.split();
    let up = async {
        let mut said = BufReader::new(early.chain(client_read));
        let sent = async {
            upstream_write.write_all(head).await?;
            match body {
                Body::Length(length) => {
                    exactly(&activity, &mut said, &mut upstream_write, length).await
                }
                Body::Chunked => chunks(&activity, &mut said, &mut upstream_write).await,
            }
        };
        match sent.await {
            // Nothing more is read, but a client that hangs up is not worth an answer.
            Ok(()) => match said.get_mut().get_mut().1.peek(&mut [0]).await {
                Ok(1..) => std::future::pending().await,
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Err(error) => error,
            },
            Err(error) if is_of_the_body(&error) => error,
            // A target that wants no more of the body may have said why.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        error = up => Err(error),
        answered = activity.copy(&mut upstream_read, &mut client_write) => answered,
        () = activity.ceased(idle) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Whether what failed is what the client said, not the connection to the target.
fn is_of_the_body(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
    )
}

async fn exactly(
    activity: &Activity,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: u64,
) -> io::Result<()> {
    let copied = activity.copy(&mut from.take(length), to).await?;
    if copied == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Sends chunks on, each with a first line of our own; extensions and trailers stay behind.
async fn chunks(
    activity: &Activity,
    from: &mut (impl tokio::io::AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let size = chunk_size(&line(from).await?).ok_or(io::ErrorKind::InvalidData)?;
        if size == 0 {
            break;
        }
        to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
        exactly(activity, from, to, size).await?;
        if !line(from).await?.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        to.write_all(b"\r\n").await?;
    }
    let mut trailers = from.take(MAX_CHUNK_LINE);
    while !line(&mut trailers).await?.is_empty() {}
    to.write_all(b"0\r\n\r\n").await
}

/// One line without its CRLF; a lone CR or LF is an error.
async fn line(from: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(MAX_CHUNK_LINE)
        .read_until(b'\n', &mut line)
        .await?;
    match line.strip_suffix(b"\r\n") {
        Some(text) if !text.contains(&b'\r') => Ok(text.to_vec()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Closes a connection so that the answer arrives: were it closed with something unread, the
/// kernel would reset it and the client might never see what was said.
pub(super) async fn close(mut client: TcpStream) {
    if client.shutdown().await.is_ok() {
        let mut rest = (&mut client).take(MAX_DRAINED);
        let mut nowhere = tokio::io::sink();
        // Whatever comes of it, the connection ends here.
        drop(timeout(DRAIN, tokio::io::copy(&mut rest, &mut nowhere)).await);
    }
}
