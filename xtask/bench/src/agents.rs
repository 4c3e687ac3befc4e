//! Who runs agents: `ward serve`, and the Runner of npm's `@openai/agents` behind a server of Node's.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use anyhow::{Context as _, ensure};

use crate::converse::Host;
use crate::served::Served;
use crate::stage::Stage;

/// The peer, in the tables.
pub(crate) const AGENTS: &str = "Node, @openai/agents";

/// A host that is ready. Dropping it ends it.
#[derive(Debug)]
pub(crate) enum Agents {
    Ward(Served, Host),
    Node(Child, Host),
}

impl Agents {
    /// Ward with a data folder of its own, whose models are all the double's.
    pub(crate) fn ward(stage: &Stage, double: SocketAddr, name: &str) -> anyhow::Result<Self> {
        let base = format!("http://{double}/v1");
        let data = stage.scratch(name)?;
        let served = Served::start_with(stage, &data, &[("WARD_CHAT_BASE_URL", &base)])?;
        let host = Host {
            address: served.address(),
            token: Some(Served::token(stage)?),
            provider: "chat/",
        };
        Ok(Self::Ward(served, host))
    }

    pub(crate) fn node(stage: &Stage, double: SocketAddr) -> anyhow::Result<Self> {
        ensure!(
            stage.path("node_modules/@openai/agents").exists(),
            "not installed; npm's package is @openai/agents"
        );
        let mut child = stage
            .command("node")
            .arg(stage.path("agents.mjs"))
            .env("CHAT_BASE_URL", format!("http://{double}/v1"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("it does not start")?;
        let output = child.stdout.take().context("it has no output")?;
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        let address = line.trim().strip_prefix("http://").map(str::parse);
        match (read, address) {
            (Ok(_), Some(Ok(address))) => {
                let host = Host {
                    address,
                    token: None,
                    provider: "",
                };
                Ok(Self::Node(child, host))
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                anyhow::bail!("it said `{}`", line.trim())
            }
        }
    }

    pub(crate) fn host(&self) -> &Host {
        match self {
            Self::Ward(_, host) | Self::Node(_, host) => host,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Ward(served, _) => served.pid(),
            Self::Node(child, _) => child.id(),
        }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        if let Self::Node(child, _) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
