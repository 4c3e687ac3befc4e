//! A client that begins conversations and hears their events: the same for Ward and its peer, which
//! are asked the same and tell the same kinds of events.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::double::Script;

/// Whoever runs agents.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    /// What its models' names begin with.
    pub(crate) provider: &'static str,
}

/// A connection that is kept for one conversation after the other.
#[derive(Debug)]
pub(crate) struct Converse {
    stream: TcpStream,
    host: Host,
}

/// One conversation, as it came over the wire.
#[derive(Debug)]
pub(crate) struct Heard {
    bytes: Vec<u8>,
    script: Script,
    /// From the request to the last byte.
    pub(crate) seconds: f64,
}

impl Converse {
    pub(crate) async fn connect(host: &Host) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            host: host.clone(),
        })
    }

    /// Has one conversation. What was heard is looked at later, when no time is taken.
    pub(crate) async fn about(&mut self, script: Script) -> anyhow::Result<Heard> {
        let Host {
            address,
            token,
            provider,
        } = &self.host;
        let model = format!("{provider}{}", script.model());
        let body = json!({
            "input": "Look at the file.", "model": model, "role": "watcher", "stream": true,
        });
        let body = body.to_string();
        let mut request = format!(
            "POST /sessions HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(token) = token {
            request.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(&body);
        let began = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::with_capacity(16 * 1024);
        // No event has a carriage return in it.
        while !bytes.ends_with(b"\r\n0\r\n\r\n") {
            if self.stream.read_buf(&mut bytes).await? == 0 {
                bail!("it hung up: {}", String::from_utf8_lossy(&bytes));
            }
            // A refusal is short and has a length; it does not end as events do.
            if bytes.starts_with(b"HTTP/1.1 ") && !bytes.starts_with(b"HTTP/1.1 200") {
                bail!("it refused: {}", String::from_utf8_lossy(&bytes));
            }
        }
        Ok(Heard {
            bytes,
            script,
            seconds: began.elapsed().as_secs_f64(),
        })
    }
}

impl Heard {
    /// Sees that all was told, in order, and nothing went wrong.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let body = unchunked(&self.bytes)?;
        let (mut text, mut outputs, mut last) = (String::new(), 0, "");
        for (number, event) in body.trim_end().split("\n\n").enumerate() {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            ensure!(
                field("id: ").and_then(|id| id.parse().ok()) == Some(number + 1),
                "not event {}: {event}",
                number + 1
            );
            last = field("event: ").context("an event without a name")?;
            let data: Value = serde_json::from_str(field("data: ").unwrap_or_default())?;
            match last {
                "text.delta" => text.push_str(data["text"].as_str().unwrap_or_default()),
                "tool.output" => {
                    let output = data["output"].as_str().unwrap_or_default();
                    ensure!(output.contains("a small file"), "not read: {event}");
                    outputs += 1;
                }
                _ => {}
            }
        }
        let wanted = match self.script {
            Script::Tools(turns) => turns,
            Script::Words(..) => 0,
        };
        ensure!(
            last == "session.completed" && text == self.script.text() && outputs == wanted,
            "another conversation was wanted: {body}"
        );
        Ok(())
    }
}

fn unchunked(answer: &[u8]) -> anyhow::Result<String> {
    let answer = std::str::from_utf8(answer)?;
    let (_, mut rest) = answer.split_once("\r\n\r\n").context("no head")?;
    let mut body = String::new();
    loop {
        let (length, more) = rest.split_once("\r\n").context("no length")?;
        let length = usize::from_str_radix(length, 16)?;
        if length == 0 {
            return Ok(body);
        }
        body.push_str(more.get(..length).context("a piece is missing")?);
        rest = more.get(length + 2..).context("a piece is missing")?;
    }
}
