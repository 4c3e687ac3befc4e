//! The peers of the whole path. One that cannot be had says why, and its row does too.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::http::Http;
use crate::lines::Lines;
use crate::stage::Stage;

pub(crate) const CODEX: &str = "codex app-server, sandboxed";
pub(crate) const OPENHANDS: &str = "OpenHands agent-server, no sandbox";
pub(crate) const FILESYSTEM: &str = "MCP server-filesystem, Node";

/// How long a peer has to start: a Python program that nobody compiled yet takes its time.
const PATIENCE: Duration = Duration::from_secs(180);

/// A peer, or why there is none.
pub(crate) fn had<T>(peer: anyhow::Result<T>) -> Result<T, String> {
    peer.map_err(|error| format!("{error:#}"))
}

/// Codex's app-server.
#[derive(Debug)]
pub(crate) struct Codex {
    lines: Lines,
    params: Value,
}

impl Codex {
    pub(crate) fn start(stage: &Stage) -> anyhow::Result<Self> {
        let program = stage.codex();
        ensure!(
            program.exists(),
            "not installed; npm's package is @openai/codex"
        );
        let mut command = stage.command(&program);
        command.arg("app-server");
        let mut lines = Lines::start(command)?;
        let hello = json!({"clientInfo": {"name": "bench", "version": "0"}});
        lines.ask("initialize", &hello)?;
        lines.tell("initialized")?;
        let params = json!({
            "command": ["/bin/true"],
            "cwd": stage.work(),
            "sandboxPolicy": {"type": "workspaceWrite"},
        });
        Ok(Self { lines, params })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.lines.pid()
    }

    /// Runs `/bin/true` in its sandbox.
    pub(crate) fn run(&mut self) -> anyhow::Result<()> {
        let answer = self.lines.ask("command/exec", &self.params)?;
        ensure!(answer["exitCode"] == 0, "it did not run: {answer}");
        Ok(())
    }
}

/// OpenHands' agent-server.
#[derive(Debug)]
pub(crate) struct OpenHands {
    child: Child,
    http: Http,
    body: String,
}

impl OpenHands {
    pub(crate) fn start(stage: &Stage) -> anyhow::Result<Self> {
        let (python, site) = (stage.path("python3"), stage.path("python-site"));
        ensure!(
            python.exists() && site.exists(),
            "not installed; PyPI's package is openhands-agent-server, for Python 3.12 or newer"
        );
        let program = python.canonicalize()?;
        let home = program.ancestors().nth(2).context("Python has no home")?;
        let address = free_address()?;
        let mut child = stage
            .command(python)
            // It keeps what happens in the folder where it is started.
            .current_dir(stage.scratch("openhands")?)
            .args(["-m", "openhands.agent_server", "--host", "127.0.0.1"])
            .args(["--port", &address.port().to_string()])
            .env("PYTHONPATH", site)
            // It was built to be somewhere else.
            .env("LD_LIBRARY_PATH", home.join("lib"))
            // Nothing else but commands is wanted of it, and nothing from the network.
            .env("OH_ENABLE_VSCODE", "false")
            .env("OH_PRELOAD_TOOLS", "false")
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("it does not start")?;
        let body = json!({"command": "/bin/true", "cwd": stage.work()}).to_string();
        match healthy(&mut child, address) {
            Ok(http) => Ok(Self { child, http, body }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs `/bin/true` as it is.
    pub(crate) fn run(&mut self) -> anyhow::Result<()> {
        let answer = self
            .http
            .ask("POST", "/api/bash/execute_bash_command", &self.body)?;
        let answer: Value = serde_json::from_str(&answer)?;
        ensure!(answer["exit_code"] == 0, "it did not run: {answer}");
        Ok(())
    }

    /// Has it forget what it ran: it looks through all of that after each command.
    pub(crate) fn forget(&mut self) -> anyhow::Result<()> {
        let path = "/api/bash/bash_events";
        self.http.ask("DELETE", path, "").map(drop)
    }
}

impl Drop for OpenHands {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn healthy(child: &mut Child, address: SocketAddr) -> anyhow::Result<Http> {
    let began = Instant::now();
    loop {
        let asked = Http::connect(address, None).and_then(|mut http| {
            http.ask("GET", "/health", "")?;
            Ok(http)
        });
        match asked {
            Ok(http) => return Ok(http),
            Err(error) if began.elapsed() > PATIENCE => {
                return Err(error.context("it does not answer"));
            }
            Err(_) => {}
        }
        if let Some(status) = child.try_wait()? {
            anyhow::bail!("it ended while it started ({status})");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The file system server of the Model Context Protocol.
#[derive(Debug)]
pub(crate) struct Filesystem {
    lines: Lines,
    params: Value,
}

impl Filesystem {
    /// It will read this file of the workspace.
    pub(crate) fn start(stage: &Stage, file: &str) -> anyhow::Result<Self> {
        let script = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
        let script = stage.path(script);
        ensure!(
            script.exists(),
            "not installed; npm's package is @modelcontextprotocol/server-filesystem"
        );
        let mut command = stage.command("node");
        command.arg(script).arg(stage.work());
        let mut lines = Lines::start(command)?;
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        });
        lines.ask("initialize", &hello)?;
        lines.tell("notifications/initialized")?;
        let path = stage.work().join(file);
        let params = json!({"name": "read_text_file", "arguments": {"path": path}});
        Ok(Self { lines, params })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.lines.pid()
    }

    pub(crate) fn read(&mut self) -> anyhow::Result<()> {
        let answer = self.lines.ask("tools/call", &self.params)?;
        ensure!(answer["isError"] != true, "it did not read: {answer}");
        Ok(())
    }
}

/// An address that nobody listens on just now.
fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}
