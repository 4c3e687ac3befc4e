//! Many editors at once: each is a Socket.IO connection over a websocket that is registered and
//! answers what it is asked. The same for Ward and its peer.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::http::Http;

type Socket = WebSocketStream<TcpStream>;

/// What every editor answers.
pub(crate) const ANSWER: &str = "what it holds";

/// Editors that are connected until this is dropped.
#[derive(Debug)]
pub(crate) struct Editors {
    /// Whose they are, and the ids of their runtimes.
    pub(crate) of: Vec<(String, Vec<String>)>,
    _working: JoinSet<()>,
}

impl Editors {
    /// So many for each of these tokens.
    pub(crate) async fn connect(
        address: SocketAddr,
        tokens: &[String],
        each: usize,
        workspace: &str,
    ) -> anyhow::Result<Self> {
        let mut working = JoinSet::new();
        let mut of = Vec::with_capacity(tokens.len());
        for token in tokens {
            let mut http = Http::connect(address, Some(token.clone()))?;
            let mut ids = Vec::with_capacity(each);
            for _ in 0..each {
                let (socket, id) = open(address, token).await?;
                ids.push(register(&mut http, &id, workspace)?);
                working.spawn(work(socket));
            }
            of.push((token.clone(), ids));
        }
        Ok(Self {
            of,
            _working: working,
        })
    }
}

/// A connection that has said who it is, and its id.
async fn open(address: SocketAddr, token: &str) -> anyhow::Result<(Socket, String)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{address}/socket.io/?EIO=4&transport=websocket");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await?;
    said(&mut socket, "0").await?;
    let hello = format!("40{}", json!({"token": token}));
    socket.send(Message::text(hello)).await?;
    let connected: Value = serde_json::from_str(&said(&mut socket, "40").await?)?;
    let id = connected["sid"].as_str().context("it has no id")?;
    Ok((socket, id.to_owned()))
}

/// What stands behind a packet of this type, which is the next but for pings.
async fn said(socket: &mut Socket, kind: &str) -> anyhow::Result<String> {
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else {
            continue;
        };
        match (answer(&text), text.strip_prefix(kind)) {
            (Some(pong), _) => socket.send(Message::text(pong)).await?,
            (None, Some(rest)) => return Ok(rest.to_owned()),
            (None, None) => bail!("`{text}` is no packet of type {kind}"),
        }
    }
    bail!("the connection was closed")
}

fn register(http: &mut Http, socket_id: &str, workspace: &str) -> anyhow::Result<String> {
    let body = json!({
        "socket_id": socket_id,
        "kind": "bench",
        "workspace_path": workspace,
        "capabilities": ["fs.read", "fs.write", "editor.open"],
    });
    let answer: Value = serde_json::from_str(&http.ask("POST", "/runtimes", &body.to_string())?)?;
    let id = answer["runtime_id"].as_str().context("it has no id")?;
    Ok(id.to_owned())
}

/// Answers until the connection ends.
async fn work(mut socket: Socket) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let Some(answer) = answer(&text) else {
            continue;
        };
        if socket.send(Message::text(answer)).await.is_err() {
            return;
        }
    }
}

/// A ping is answered with a pong, an action with what it asked for.
fn answer(packet: &str) -> Option<String> {
    if packet == "2" {
        return Some("3".to_owned());
    }
    let rest = packet.strip_prefix("42")?;
    let (id, event) = rest.split_at(rest.find('[')?);
    event
        .starts_with(r#"["action:execute""#)
        .then(|| format!(r#"43{id}[{{"ok":true,"result":{{"content":"{ANSWER}"}}}}]"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_and_pings_are_answered_and_nothing_else() {
        assert_eq!(answer("2").as_deref(), Some("3"));
        assert_eq!(
            answer(r#"4217["action:execute",{"id":"a"}]"#).as_deref(),
            Some(r#"4317[{"ok":true,"result":{"content":"what it holds"}}]"#)
        );
        assert_eq!(answer(r#"42["action:cancel",{"id":"a"}]"#), None);
        assert_eq!(answer("6"), None);
    }
}
