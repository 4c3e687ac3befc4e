//! A command's way to the gate: through the socket of the Ward that owns the data folder, or, where
//! none runs, through a Ward of its own for as long as the command lasts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Method, Request, Response, StatusCode, header};
use futures_util::StreamExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use protocol::gate::Failed;
use protocol::http::{SOCKET_HOST, UPGRADE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store_sqlite::{DataFolder, OpenError};
use tokio::net::UnixStream;
use tower::ServiceExt as _;

use crate::app::{self, App};
use crate::{folders, settings};

/// A client of the gate.
pub(crate) struct Client {
    way: Way,
    token: String,
}

enum Way {
    /// Another Ward owns the folder.
    Socket(PathBuf),
    /// This process does.
    Own(Box<App>, Router),
}

impl Client {
    /// Finds the Ward that owns this data folder, or becomes it.
    pub(crate) async fn open(data: Option<&Path>, purpose: &str) -> anyhow::Result<Self> {
        let data = app::data_folder(data)?;
        let workspace = std::env::current_dir().context("The current folder cannot be used")?;
        match DataFolder::own(&data, purpose) {
            Ok(folder) => {
                let app = App::open(folder, &workspace).await?;
                let sandbox = sandbox::probe(settings::read()?.minimum, &folders::state()?);
                let (server, _) = app.server(app::tokens()?, &workspace, sandbox, None);
                let router = server.router();
                Ok(Self {
                    way: Way::Own(Box::new(app), router),
                    token: app::own_token()?,
                })
            }
            Err(OpenError::Held { folder, owner }) => {
                let socket = folder.join(SOCKET_HOST);
                if !socket.exists() {
                    bail!(
                        "The data folder {} is in use by {owner}, which takes no commands. Try again when it has ended, or name another folder with --data.",
                        folder.display()
                    );
                }
                Ok(Self {
                    way: Way::Socket(socket),
                    token: app::own_token()?,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.call(Method::GET, path, None::<&()>).await
    }

    /// Sends something.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Takes something away.
    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    /// Follows a stream of events.
    pub(crate) async fn follow(&self, path: &str) -> anyhow::Result<Events> {
        let response = self.send(Method::GET, path, Body::empty()).await?;
        let response = checked(response).await?;
        Ok(Events {
            bytes: response.into_body().into_data_stream(),
            waiting: Vec::new(),
        })
    }

    /// Waits for the end of an action that goes on in this process; another Ward's goes on by
    /// itself.
    pub(crate) async fn finish(&self, action: &str) -> anyhow::Result<()> {
        if let Way::Own(..) = self.way {
            let path = format!("/actions/{action}");
            let mut events = self.follow(&format!("{path}/events")).await?;
            while events.next().await?.is_some() {}
        }
        Ok(())
    }

    /// Ends the Ward of our own, where there is one.
    pub(crate) async fn close(self) {
        if let Way::Own(app, _) = self.way {
            app.close().await;
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        let body = match body {
            Some(body) => Body::from(serde_json::to_vec(body)?),
            None => Body::empty(),
        };
        let response = checked(self.send(method, path, body).await?).await?;
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        serde_json::from_slice(&bytes).context("Ward's answer is not what was expected")
    }

    async fn send(&self, method: Method, path: &str, body: Body) -> anyhow::Result<Response<Body>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, SOCKET_HOST)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)?;
        match &self.way {
            Way::Own(_, router) => match router.clone().oneshot(request).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            },
            Way::Socket(socket) => over(socket, request).await,
        }
    }
}

/// A connection to the gate of the Ward that listens on this socket, as JSON-RPC.
pub(crate) async fn knock(socket: &Path, token: &str) -> anyhow::Result<TokioIo<Upgraded>> {
    let request = Request::builder()
        .uri("/gate")
        .header(header::HOST, SOCKET_HOST)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, UPGRADE)
        .body(Body::empty())?;
    let response = over(socket, request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        checked(response).await?;
        bail!("Ward on {} does not take JSON-RPC", socket.display());
    }
    Ok(TokioIo::new(hyper::upgrade::on(response).await?))
}

async fn over(socket: &Path, request: Request<Body>) -> anyhow::Result<Response<Body>> {
    let told = || format!("Ward does not answer on {}", socket.display());
    let stream = UnixStream::connect(socket).await.with_context(told)?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.with_context(told)?;
    tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(request).await.with_context(told)?;
    Ok(response.map(Body::new))
}

/// Turns a failure into an error with its sentence.
async fn checked(response: Response<Body>) -> anyhow::Result<Response<Body>> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status: StatusCode = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
    match serde_json::from_slice::<Failed>(&bytes) {
        Ok(failed) => Err(failed.into()),
        Err(_) => bail!("Ward answered {status}"),
    }
}

/// Events as they come.
pub(crate) struct Events {
    bytes: BodyDataStream,
    waiting: Vec<u8>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// Its number; what is true only now has none.
    pub(crate) id: Option<u64>,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Events {
    /// The next one; [`None`] at the end.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            let end = self.waiting.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = end {
                let block: Vec<u8> = self.waiting.drain(..end + 2).collect();
                let event = read(&String::from_utf8_lossy(&block));
                if event.is_some() {
                    return Ok(event);
                }
                continue;
            }
            match self.bytes.next().await {
                Some(bytes) => self.waiting.extend(bytes.context("Ward has gone")?),
                None => return Ok(None),
            }
        }
    }
}

/// An event as the server writes it; [`None`] for a comment.
fn read(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let data = field("data")?;
    Some(Event {
        id: field("id").and_then(|id| id.trim().parse().ok()),
        kind: field("event").unwrap_or("message").trim().to_owned(),
        data: serde_json::from_str(data.trim()).ok()?,
    })
}
