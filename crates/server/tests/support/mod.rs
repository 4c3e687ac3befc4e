//! A Ward that answers on a free port, and a client that speaks to it as anybody would.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{HeaderMap, Request, Response};
use broker::Broker;
use futures_util::StreamExt as _;
use gate::redact::Redactor;
use gate::runtime::Launch;
use gate::{Actor, Gate, GateOptions};
use hyper_util::rt::TokioIo;
use notebooks::Notebooks;
use protocol::Mode;
use protocol::sandbox::{LayerStatus, SandboxStatus, Tier};
use runner::Runner;
use runner::price::Models;
use runner::provider::{Registry, Settings};
use serde_json::Value;
use server::auth::{NewAgent, Tokens};
use server::{About, Parts, Server};
use store::{Append, Expected, Millis, NewEvent, Store as _, StreamName};
use store_sqlite::{DataFolder, SqliteStore};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A Ward without any runtime.
pub(crate) struct Ward {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Server,
    pub(crate) gate: Gate<SqliteStore>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) address: SocketAddr,
    /// The first person's name and token.
    pub(crate) person: String,
    pub(crate) token: String,
    pub(crate) stop: CancellationToken,
}

impl Drop for Ward {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn about() -> About {
    About {
        version: "1.2.3".into(),
        workspace: "/home/ada/<script>".into(),
        sandbox: SandboxStatus {
            tier: Tier::Walls,
            minimum: Tier::Walls,
            layers: vec![LayerStatus {
                name: "landlock".into(),
                available: true,
                detail: "ABI 5".into(),
                hint: None,
            }],
        },
        store: "/home/ada/.local/share/ward/ward.db".into(),
    }
}

impl Ward {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// `prepare` may change the tokens before anybody can use them.
    pub(crate) async fn start_with(prepare: impl FnOnce(&mut Tokens)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        let mut tokens = Tokens::open(&config).unwrap();
        let person = tokens.first_person().unwrap().name;
        let token = Tokens::own(&config).unwrap().unwrap();
        prepare(&mut tokens);
        let tokens = Arc::new(tokens);
        let workspace = folder.path().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let data = DataFolder::own(&folder.path().join("data"), "a test").unwrap();
        let kept = notebooks::Options {
            data: data.path().to_owned(),
            lease: Duration::from_secs(60),
            workspace: workspace.clone(),
        };
        let options = GateOptions {
            config,
            data: data.path().to_owned(),
            head: folder.path().join("head"),
            workspace,
            home: None,
            own: Arc::new([]),
            launch: Launch {
                // It never says a word, so that actions stay where they are, and ends with Ward.
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), "exec cat >/dev/null".into(), "runtime".into()],
                near: None,
            },
            patience: Duration::from_secs(600),
            redactor: Arc::new(Redactor::from_environment([]).unwrap()),
        };
        let store = Arc::new(SqliteStore::open(data).unwrap());
        let broker = Broker::open(Arc::clone(&store), broker::Options::default())
            .await
            .unwrap();
        let gate = Gate::open(store, options).await.unwrap();
        let notebooks = Notebooks::open(gate.clone(), kept).await.unwrap();
        gate.connect(Arc::new(notebooks.beside(Arc::new(broker.clone()))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new(Parts {
            about: about(),
            gate: gate.clone(),
            runner: Runner::new(
                gate.clone(),
                Registry::new(&Settings::default(), |_| None),
                Models::default(),
            ),
            broker,
            notebooks,
            tokens: Arc::clone(&tokens),
            address: Some(address),
        });
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(server::serve(listener, server.router(), stopped));
        Self {
            folder,
            server,
            gate,
            tokens,
            address,
            person,
            token,
            stop,
        }
    }

    /// The first person.
    pub(crate) fn actor(&self) -> Actor {
        Actor::Person(self.person.clone())
    }

    /// A new agent's id and token.
    pub(crate) fn agent(&self) -> (String, String) {
        let agent = NewAgent {
            name: "watcher".into(),
            role: "watcher".into(),
            mode: Mode::Sandbox,
            workspace: self.folder.path().join("work"),
            person: self.person.clone(),
        };
        self.tokens.add_agent(agent).unwrap()
    }

    /// The answer to a request with these headers, `host` among them unless it is named.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 24).await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response<Body> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let host = self.address.to_string();
        converse(stream, method, path, &host, headers, body.into()).await
    }

    /// With a token.
    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.send("GET", path, &[("authorization", &bearer)], Body::empty())
            .await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), JSON];
        self.send("POST", path, &headers, body.to_string()).await
    }

    /// Follows events; `last` is what is known already.
    pub(crate) async fn follow(&self, path: &str, token: &str, last: Option<u64>) -> Events {
        let bearer = format!("Bearer {token}");
        let last = last.map(|last| last.to_string());
        let mut headers = vec![("authorization", &*bearer)];
        if let Some(last) = &last {
            headers.push(("last-event-id", last));
        }
        let response = self.open("GET", path, &headers, Body::empty()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events {
            pieces: response.into_body().into_data_stream(),
            read: String::new(),
        }
    }

    /// Writes events to a stream, as the gate would.
    pub(crate) async fn write(&self, stream: &str, events: Vec<(&str, Value)>) {
        let events = events.into_iter().map(|(kind, data)| NewEvent {
            kind: kind.to_owned().into(),
            at: Millis(1),
            data: data.into(),
        });
        let append = Append {
            stream: StreamName::new(stream).unwrap(),
            expected: Expected::Any,
            events: events.collect(),
        };
        self.gate.store().append(vec![append]).await.unwrap();
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// One request over a connection of its own.
pub(crate) async fn converse<I>(
    stream: I,
    method: &str,
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
    body: Body,
) -> Response<Body>
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::builder().method(method).uri(path);
    if headers.iter().all(|(name, _)| *name != "host") {
        request = request.header("host", host);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = sender
        .send_request(request.body(body).unwrap())
        .await
        .unwrap();
    response.map(Body::new)
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The kind of a failure, after checking that it has the one shape.
    #[track_caller]
    pub(crate) fn failure(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["code"], self.status, "{body}");
        assert!(!body["error"].as_str().unwrap().is_empty(), "{body}");
        (self.status, body["kind"].as_str().unwrap().to_owned())
    }
}

/// Events as they come.
pub(crate) struct Events {
    pieces: BodyDataStream,
    read: String,
}

/// One event: its number, its kind, its data.
pub(crate) type Told = (Option<u64>, String, Value);

impl Events {
    /// The next event; none at the end. Comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let told = parse(event);
                self.read = rest.to_owned();
                if told.is_some() {
                    return told;
                }
                continue;
            }
            // An event comes, or the end; or the test has failed.
            let piece = tokio::time::timeout(Duration::from_secs(20), self.pieces.next());
            let piece = piece.await.unwrap()?;
            self.read
                .push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }

    pub(crate) async fn take(&mut self, count: usize) -> Vec<Told> {
        let mut told = Vec::new();
        for _ in 0..count {
            told.push(self.next().await.unwrap());
        }
        told
    }
}

fn parse(event: &str) -> Option<Told> {
    let field = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some((
        field("id").map(|id| id.parse().unwrap()),
        field("event")?.to_owned(),
        serde_json::from_str(field("data")?).unwrap(),
    ))
}
