//! A server under test: a child process, asked over its standard input and output.

use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow};
use protocol::method::{ACTION_EXECUTE, INITIALIZE, RUNTIME_STATUS};
use rpc::{Limits, NoService, Peer, Remote};
use serde_json::{Value, json};
use tokio::process::Child;

/// A server that has answered `initialize`. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    remote: Remote,
    next: std::cell::Cell<u64>,
}

impl Server {
    pub(crate) async fn start(command: Command) -> anyhow::Result<Self> {
        let name = command.get_program().display().to_string();
        let mut child = tokio::process::Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("`{name}` could not be started"))?;
        let (input, output) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .context("the server has no pipes")?;
        let limits = Limits {
            outgoing: 64,
            ..Limits::default()
        };
        let (peer, remote) = Peer::new(output, input, limits);
        tokio::spawn(peer.run(NoService));
        let server = Self {
            child,
            remote,
            next: std::cell::Cell::new(0),
        };
        server.ask(INITIALIZE, &json!({})).await?;
        Ok(server)
    }

    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the server has ended")
    }

    /// Does an action, under an id of its own.
    pub(crate) async fn execute(&self, action: &str, params: &Value) -> anyhow::Result<()> {
        let id = self.next.get();
        self.next.set(id + 1);
        let params = json!({"id": id.to_string(), "action": action, "params": params});
        self.ask(ACTION_EXECUTE, &params).await
    }

    /// Asks a gate for an action in a role, and waits for nothing.
    pub(crate) fn begin(&self, action: &str, params: &Value, role: &str) {
        let params = json!({"action": action, "params": params, "role": role});
        let remote = self.remote.clone();
        tokio::spawn(async move { remote.call_raw(ACTION_EXECUTE, &params).await });
    }

    /// How the server says that it is.
    pub(crate) async fn status(&self) -> anyhow::Result<Value> {
        let status = self.remote.call(RUNTIME_STATUS, &json!({})).await;
        status.map_err(|failure| anyhow!("it does not say how it is: {failure}"))
    }

    /// Asks the least that can be asked.
    pub(crate) async fn echo(&self) -> anyhow::Result<()> {
        self.ask(RUNTIME_STATUS, &json!({})).await
    }

    async fn ask(&self, method: &str, params: &Value) -> anyhow::Result<()> {
        let answer = self.remote.call_raw(method, params).await;
        match answer {
            Ok(_) => Ok(()),
            Err(failure) => Err(anyhow!("`{method}` was refused: {failure}")),
        }
    }
}

/// One thread for the client: the server has the other processors to itself.
pub(crate) fn client() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the client could not be started")
}
