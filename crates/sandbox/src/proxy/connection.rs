//! One client's connection, from its first byte to its end.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Answer;
use super::http::{self, Forward, HttpError, Request};
use super::judge::Leave;
use super::reach::{NoConnection, reach};
use super::socks::{self, Reply, SocksError};
use super::target::Target;
use super::{Shared, relay};

/// How long the head of a request usually is, at most.
const USUAL_HEAD: usize = 2 * 1024;

/// Serves one client. Nothing that it does ends anything but its own connection.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut client = Client {
        stream,
        said: Vec::with_capacity(USUAL_HEAD),
    };
    // Without it, small writes in a tunnel would wait for each other.
    drop(client.stream.set_nodelay(true));
    let deadline = shared.bounds.head_deadline;
    let ended = match timeout(deadline, client.more(1)).await {
        Ok(Ok(())) if client.said.first() == Some(&socks::VERSION) => {
            serve_socks(client, &shared).await
        }
        Ok(Ok(())) => serve_http(client, &shared).await,
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(()),
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection to the proxy broke");
    }
}

/// A client, and what it has said that is not yet dealt with.
struct Client {
    stream: TcpStream,
    said: Vec<u8>,
}

impl Client {
    /// Reads once more, within `limit` bytes altogether.
    async fn more(&mut self, limit: usize) -> io::Result<()> {
        let room = limit.saturating_sub(self.said.len());
        let mut rest = (&mut self.stream).take(room as u64);
        match rest.read_buf(&mut self.said).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Comes back when the client has hung up. What it says in the meantime stays unread.
    async fn hung_up(&self) {
        if let Ok(1..) = self.stream.peek(&mut [0]).await {
            std::future::pending::<()>().await;
        }
    }

    /// Connects to where the client wants to go, for as long as the client waits. Notes what is
    /// refused before anyone is told.
    async fn reach<'s>(&self, target: &Target, shared: &'s Shared) -> io::Result<Reached<'s>> {
        let leave = Leave::to_be_asked(&*shared.judge);
        let connecting = reach(
            target,
            &leave,
            &*shared.resolver,
            shared.bounds.connect_deadline,
        );
        let reached = tokio::select! {
            biased;
            reached = connecting => reached,
            () = self.hung_up() => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        if let Err(NoConnection::Refused(refusal)) = &reached {
            shared.stopped.note(&refusal.target().to_string());
        }
        Ok(reached.map(|upstream| (upstream, leave)))
    }
}

/// A connection, and what it was let through for.
type Reached<'s> = Result<(TcpStream, Leave<'s>), NoConnection>;

/// Relays for as long as there is leave; without it both ends are closed, and that is noted.
async fn while_allowed(
    relayed: impl Future<Output = io::Result<()>>,
    leave: Leave<'_>,
    target: &Target,
    shared: &Shared,
) -> io::Result<()> {
    // The ends are closed when this comes back: what was stopped is noted by then.
    let taken_back = async {
        leave.taken_back().await;
        shared.stopped.note(&target.to_string());
    };
    tokio::select! {
        biased;
        ended = relayed => ended,
        () = taken_back => Ok(()),
    }
}

async fn serve_http(mut client: Client, shared: &Shared) -> io::Result<()> {
    let whole_head = http_head(&mut client, shared.bounds.head_bytes);
    let read = match timeout(shared.bounds.head_deadline, whole_head).await {
        Ok(read) => read?,
        Err(_) => Err(Answer::new(408, "The request did not come in time.")),
    };
    let end = match read {
        Ok(end) => end,
        Err(answer) => return answer.send(client.stream).await,
    };
    let early = client.said.split_off(end);
    match http::parse(&client.said) {
        Ok(Request::Connect(target)) => match client.reach(&target, shared).await? {
            Ok((upstream, leave)) => {
                let mut stream = client.stream;
                let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
                stream.write_all(established).await?;
                let tunnel = relay::tunnel(stream, upstream, &early, shared.bounds.idle);
                while_allowed(tunnel, leave, &target, shared).await
            }
            Err(failed) => Answer::from(failed).send(client.stream).await,
        },
        Ok(Request::Forward(request)) => match client.reach(&request.target, shared).await? {
            Ok((upstream, leave)) => {
                let target = request.target.clone();
                let forward = forward(client.stream, upstream, request, &early, shared);
                while_allowed(forward, leave, &target, shared).await
            }
            Err(failed) => Answer::from(failed).send(client.stream).await,
        },
        Err(error) => {
            if let HttpError::Target { asked, .. } = &error {
                shared.stopped.note(asked);
            }
            Answer::from(error).send(client.stream).await
        }
    }
}

/// Reads up to the end of the head; answers where that is.
async fn http_head(client: &mut Client, limit: usize) -> io::Result<Result<usize, Answer>> {
    loop {
        match http::head_end(&client.said) {
            Ok(Some(end)) => return Ok(Ok(end)),
            Ok(None) if client.said.len() >= limit => {
                let says = "The head of the request is too long.";
                return Ok(Err(Answer::new(431, says)));
            }
            Ok(None) => client.more(limit).await?,
            Err(error) => return Ok(Err(error.into())),
        }
    }
}

async fn forward(
    mut client: TcpStream,
    mut upstream: TcpStream,
    request: Forward,
    early: &[u8],
    shared: &Shared,
) -> io::Result<()> {
    let Forward { target, head, body } = request;
    let idle = shared.bounds.idle;
    match relay::forward(&mut client, &mut upstream, &head, body, early, idle).await {
        Ok(0) => {
            let why = format!("{target} closed the connection without an answer.");
            Answer::new(502, &why).send(client).await
        }
        Ok(_) => {
            relay::close(client).await;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

async fn serve_socks(mut client: Client, shared: &Shared) -> io::Result<()> {
    let whole_request = socks_request(&mut client, shared.bounds.head_bytes);
    let read = match timeout(shared.bounds.head_deadline, whole_request).await {
        Ok(read) => read?,
        Err(_) => return Ok(()),
    };
    let (target, end) = match read {
        Ok(read) => read,
        Err(error) => {
            if let SocksError::Target { asked, .. } = &error {
                shared.stopped.note(asked);
            }
            return end_socks(client.stream, &error.answer()).await;
        }
    };
    let early = client.said.split_off(end);
    let reply = match client.reach(&target, shared).await? {
        Ok((upstream, leave)) => {
            let mut stream = client.stream;
            stream.write_all(&Reply::Succeeded.bytes()).await?;
            let tunnel = relay::tunnel(stream, upstream, &early, shared.bounds.idle);
            return while_allowed(tunnel, leave, &target, shared).await;
        }
        Err(NoConnection::Refused(_)) => Reply::NotAllowed,
        Err(NoConnection::Unreachable(..)) => Reply::Refused,
        Err(NoConnection::Unresolved(..) | NoConnection::TimedOut(_)) => Reply::HostUnreachable,
    };
    end_socks(client.stream, &reply.bytes()).await
}

/// Greets and reads up to the end of the request; answers its target and where it ends.
async fn socks_request(
    client: &mut Client,
    limit: usize,
) -> io::Result<Result<(Target, usize), SocksError>> {
    let greeted = loop {
        match socks::greeting(&client.said) {
            Ok(Some(end)) => break end,
            Ok(None) => client.more(limit).await?,
            Err(error) => return Ok(Err(error)),
        }
    };
    client.said.drain(..greeted);
    client.stream.write_all(&socks::METHOD_NONE).await?;
    loop {
        match socks::request(&client.said) {
            Ok(Some(read)) => return Ok(Ok(read)),
            Ok(None) => client.more(limit).await?,
            Err(error) => return Ok(Err(error)),
        }
    }
}

async fn end_socks(mut client: TcpStream, reply: &[u8]) -> io::Result<()> {
    client.write_all(reply).await?;
    relay::close(client).await;
    Ok(())
}
