//! A JSON-RPC server on the same foundation as Ward's runtime that confines nothing: what
//! `terminal.run` would cost without a sandbox.

use std::process::Stdio;

use anyhow::Context as _;
use protocol::method::{ACTION_EXECUTE, ExecuteParams, INITIALIZE};
use protocol::{ErrorKind, Failure};
use rpc::{Answer, Limits, Notification, Peer, Request, Service, answer};
use serde_json::json;
use tokio::net::unix::pipe;

struct Unconfined;

impl Service for Unconfined {
    async fn request(&self, request: Request) -> Answer {
        match request.method.as_str() {
            INITIALIZE => answer(&json!({})),
            ACTION_EXECUTE => execute(request.read()?).await,
            _ => Err(request.unknown()),
        }
    }

    async fn notification(&self, _notification: Notification) {}
}

async fn execute(params: ExecuteParams) -> Answer {
    let refuse = |why: String| Failure::new(ErrorKind::InvalidParams, why);
    let argv: Vec<String> = serde_json::from_value(params.params["argv"].clone())
        .map_err(|error| refuse(format!("`argv` does not fit: {error}.")))?;
    let [program, arguments @ ..] = &argv[..] else {
        return Err(refuse("`argv` is empty.".into()));
    };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| refuse(format!("{program} could not be started: {error}.")))?;
    answer(&json!({
        "exit_code": output.status.code(),
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
        "duration_ms": 0,
        "timed_out": false,
        "truncated": false,
    }))
}

pub(crate) fn serve() -> anyhow::Result<()> {
    crate::server::client()?.block_on(async {
        let open = pipe::OpenOptions::new();
        let reader = open
            .open_receiver("/proc/self/fd/0")
            .context("standard input is no pipe")?;
        let writer = open
            .open_sender("/proc/self/fd/1")
            .context("standard output is no pipe")?;
        let (peer, _remote) = Peer::new(reader, writer, Limits::default());
        peer.run(Unconfined).await;
        Ok(())
    })
}
