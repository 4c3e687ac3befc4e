//! Whoever routes actions to editors: Ward, and a server on npm's `socket.io`.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::served::Served;
use crate::stage::Stage;

/// What we are called.
pub(crate) const WARD: &str = "Ward";
/// What the peer is called in a row.
pub(crate) const NODE: &str = "Node, socket.io";
/// The same that is a gate as well.
pub(crate) const NODE_GATE: &str = "Node, socket.io, deciding and recording";

/// One of them, and the tokens that it takes.
#[derive(Debug)]
pub(crate) struct Hub {
    who: Who,
    address: SocketAddr,
    pub(crate) tokens: Vec<String>,
}

#[derive(Debug)]
enum Who {
    Ward(Served),
    Node(Child),
}

impl Hub {
    /// Ward with a data folder of its own, for so many people.
    pub(crate) fn ward(stage: &Stage, name: &str, people: usize) -> anyhow::Result<Self> {
        // The peer asks for no sign of life beyond the connection's own.
        let config = stage.path("home").join(".config/ward");
        std::fs::create_dir_all(&config)?;
        std::fs::write(config.join("settings.toml"), "[editors]\nlease = \"1h\"\n")?;
        let served = Served::start(stage, &stage.scratch(name)?)?;
        let tokens = (0..people).map(|number| {
            let person = format!("{name}-{number}");
            let added = stage
                .ours("ward")
                .args(["tokens", "add", "--person", &person])
                .output()?;
            ensure!(added.status.success(), "no token was made");
            Ok(String::from_utf8(added.stdout)?.trim().to_owned())
        });
        Ok(Self {
            tokens: tokens.collect::<anyhow::Result<_>>()?,
            address: served.address(),
            who: Who::Ward(served),
        })
    }

    /// The peer that routes, and nothing else.
    pub(crate) fn node(stage: &Stage, people: usize) -> anyhow::Result<Self> {
        Self::node_with(stage, people, None)
    }

    /// The peer that decides and writes down what it does, too.
    pub(crate) fn node_gate(stage: &Stage, people: usize) -> anyhow::Result<Self> {
        let records = stage.scratch("node-gate")?.join("records.db");
        Self::node_with(stage, people, Some(&records))
    }

    fn node_with(stage: &Stage, people: usize, records: Option<&Path>) -> anyhow::Result<Self> {
        let wanted = ["socket.io", "better-sqlite3"];
        for package in wanted.into_iter().take(1 + usize::from(records.is_some())) {
            ensure!(
                stage.path("node_modules").join(package).exists(),
                "not installed; npm's package is {package}"
            );
        }
        // As long as Ward's.
        let tokens: Vec<String> = (0..people)
            .map(|number| format!("ward_person_{number:043}"))
            .collect();
        let mut command = stage.command("node");
        if let Some(records) = records {
            command.env("RECORDS", records);
        }
        let mut child = command
            .arg(stage.path("broker.mjs"))
            .env("TOKENS", json!(tokens).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("it does not start")?;
        let output = child.stdout.take().context("it has no output")?;
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        let address = line.trim().strip_prefix("http://").map(str::parse);
        let (Ok(_), Some(Ok(address))) = (read, address) else {
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("it said `{}`", line.trim())
        };
        Ok(Self {
            who: Who::Node(child),
            address,
            tokens,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        match &self.who {
            Who::Ward(served) => served.pid(),
            Who::Node(child) => child.id(),
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Who::Node(child) = &mut self.who {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
