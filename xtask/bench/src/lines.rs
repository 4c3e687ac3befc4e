//! A peer that speaks JSON-RPC in lines over its standard streams: MCP servers, Codex's app-server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// Such a peer. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Lines {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Lines {
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let name = command.get_program().display().to_string();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("`{name}` could not be started"))?;
        let streams = child.stdin.take().zip(child.stdout.take());
        let (input, output) = streams.context("the peer has no pipes")?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
            next: 0,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks, and waits for the result.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the peer has ended");
            }
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer.get("id") != Some(&json!(id)) {
                continue;
            }
            match answer.get("error") {
                Some(error) => bail!("`{method}` was refused: {error}"),
                None => return Ok(answer["result"].take()),
            }
        }
    }

    pub(crate) fn tell(&mut self, method: &str) -> anyhow::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "method": method}))
    }

    fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        Ok(self.input.write_all(line.as_bytes())?)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
