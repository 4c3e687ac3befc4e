//! A command's way to the gate: through the socket of the Ward that owns the data folder, or, where
//! none runs, through a Ward of its own for as long as the command lasts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use futures_util::StreamExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use protocol::gate::Failed;
use protocol::http::{SOCKET_HOST, UPGRADE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use server::Socket;
use store_sqlite::{DataFolder, OpenError};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
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
    Own(Box<App>, Router, Option<Stay>),
}

/// The socket of a Ward of our own, for as long as it stays.
struct Stay {
    stop: CancellationToken,
    answering: JoinHandle<()>,
}

impl Client {
    /// Finds the Ward that owns this data folder, or becomes it.
    pub(crate) async fn open(data: Option<&Path>, purpose: &str) -> anyhow::Result<Self> {
        let data = app::data_folder(data)?;
        let workspace = std::env::current_dir().context("The current folder cannot be used")?;
        match DataFolder::own(&data, purpose) {
            Ok(folder) => Self::own(folder, &workspace).await,
            Err(error) => Self::find(error),
        }
    }

    /// The same for a command that stays: as the owner it takes up the sessions that there are, and
    /// is found by other commands.
    pub(crate) async fn open_to_stay(
        data: Option<&Path>,
        workspace: &Path,
        purpose: &str,
    ) -> anyhow::Result<Self> {
        let data = app::data_folder(data)?;
        let folder = match DataFolder::own(&data, purpose) {
            Ok(folder) => folder,
            Err(error) => return Self::find(error),
        };
        let socket = Socket::bind(&folder.path().join(SOCKET_HOST))?;
        let mut client = Self::own(folder, workspace).await?;
        if let Way::Own(app, router, stay) = &mut client.way {
            app.gate.wake()?;
            app.runner.take_up().await?;
            let stop = CancellationToken::new();
            let stopped = stop.clone().cancelled_owned();
            let answering = tokio::spawn(server::serve_unix(socket, router.clone(), stopped));
            *stay = Some(Stay { stop, answering });
        }
        Ok(client)
    }

    async fn own(folder: DataFolder, workspace: &Path) -> anyhow::Result<Self> {
        let app = App::open(folder, workspace).await?;
        let sandbox = sandbox::probe(settings::read()?.minimum, &folders::state()?);
        let (server, _) = app.server(app::tokens()?, workspace, sandbox, None);
        let router = server.router();
        Ok(Self {
            way: Way::Own(Box::new(app), router, None),
            token: app::own_token()?,
        })
    }

    /// The Ward that holds the folder.
    fn find(error: OpenError) -> anyhow::Result<Self> {
        match error {
            OpenError::Held { folder, owner } => {
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
            error => Err(error.into()),
        }
    }

    /// Whether this process owns the data folder: then all that runs ends with it.
    pub(crate) fn is_owner(&self) -> bool {
        matches!(self.way, Way::Own(..))
    }

    /// Asks for something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.call(Method::GET, path, None::<&()>).await
    }

    /// Asks for something, and takes it as it is written.
    pub(crate) async fn text(&self, path: &str) -> anyhow::Result<String> {
        let bytes = self.bytes(Method::GET, path, Body::empty()).await?;
        String::from_utf8(bytes).context("Ward's answer is no text")
    }

    /// Sends something.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// Changes something.
    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    /// Takes something away.
    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    /// Follows a stream of events.
    pub(crate) async fn follow(&self, path: &str) -> anyhow::Result<Events> {
        let response = self.send(Method::GET, path, Body::empty()).await?;
        let response = checked(response).await?;
        Ok(Events::of(response))
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
        let Way::Own(app, _, stay) = self.way else {
            return;
        };
        if let Some(Stay { stop, answering }) = stay {
            stop.cancel();
            // Whoever was answered has been; that it ended is all that is to know.
            let _ = answering.await;
        }
        app.close().await;
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
        let bytes = self.bytes(method, path, body).await?;
        serde_json::from_slice(&bytes).context("Ward's answer is not what was expected")
    }

    async fn bytes(&self, method: Method, path: &str, body: Body) -> anyhow::Result<Vec<u8>> {
        let response = checked(self.send(method, path, body).await?).await?;
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        Ok(bytes.into())
    }

    async fn send(&self, method: Method, path: &str, body: Body) -> anyhow::Result<Response<Body>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)?;
        self.request(request).await
    }

    /// Sends a request as it is, and answers what comes, good or bad.
    pub(crate) async fn request(
        &self,
        mut request: Request<Body>,
    ) -> anyhow::Result<Response<Body>> {
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_static(SOCKET_HOST));
        let token = HeaderValue::from_str(&format!("Bearer {}", self.token))?;
        headers.insert(header::AUTHORIZATION, token);
        match &self.way {
            Way::Own(_, router, _) => match router.clone().oneshot(request).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            },
            Way::Socket(socket) => over(socket, request).await,
        }
    }
}

/// A connection to the gate of the Ward that listens on this socket, as JSON-RPC, for this
/// workspace.
pub(crate) async fn knock(
    socket: &Path,
    token: &str,
    workspace: &Path,
) -> anyhow::Result<TokioIo<Upgraded>> {
    let Some(workspace) = workspace.to_str() else {
        bail!(
            "{} cannot be the workspace: its path is not UTF-8.",
            workspace.display()
        );
    };
    let request = Request::builder()
        .uri(format!("/gate?workspace={}", encoded(workspace)))
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

/// Text as a part of an address: whatever it is, it must not change where that leads.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
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
    /// Those that an answer tells.
    pub(crate) fn of(response: Response<Body>) -> Self {
        Self {
            bytes: response.into_body().into_data_stream(),
            waiting: Vec::new(),
        }
    }

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
