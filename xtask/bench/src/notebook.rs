//! A notebook of `ward serve`, and agents that are its runtime.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::http::Http;
use crate::served::Served;
use crate::stage::Stage;

/// What takes longer has failed: a kernel that nobody compiled yet takes its time.
const PATIENCE: Duration = Duration::from_secs(180);

/// A notebook, and a connection to ask about it.
#[derive(Debug)]
pub(crate) struct Notebook {
    pub(crate) http: Http,
    pub(crate) id: String,
    /// Whose it is.
    person: String,
}

impl Notebook {
    /// Makes one.
    pub(crate) fn make(stage: &Stage, served: &Served) -> anyhow::Result<Self> {
        let mut http = served.connect(stage)?;
        let health: Value = serde_json::from_str(&http.ask("GET", "/healthz", "")?)?;
        let person = health["actor"].as_str().unwrap_or_default();
        let person = person.strip_prefix("person:").context("nobody's token")?;
        let asked = json!({"workspace": stage.work().canonicalize()?});
        let made = http.ask("POST", "/notebooks", &asked.to_string())?;
        let made: Value = serde_json::from_str(&made)?;
        Ok(Self {
            http,
            id: made["id"].as_str().context("no id")?.to_owned(),
            person: person.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> String {
        format!("/notebooks/{}", self.id)
    }

    /// Appends events; where the notebook is then.
    pub(crate) fn post(&mut self, events: &[Value]) -> anyhow::Result<u64> {
        let path = format!("{}/events", self.path());
        let body = json!({"events": events}).to_string();
        let answer: Value = serde_json::from_str(&self.http.ask("POST", &path, &body)?)?;
        answer["head"].as_u64().context("no head")
    }

    /// Another agent of this notebook with a kernel, when it is ready.
    pub(crate) fn agent(
        &mut self,
        stage: &Stage,
        served: &Served,
        kernel: &str,
    ) -> anyhow::Result<Agent> {
        let head = self.post(&[])?;
        let mut following = Following::open(stage, served, &self.path(), head)?;
        let name = format!("bench-{head}");
        let mut command = stage.ours("ward");
        let url = format!("http://{}", served.address());
        command.args(["notebook", "agent", "--notebook", &self.id]);
        command.args(["--client-id", &self.person, "--kernel", kernel]);
        command.args(["--url", &url, "--runtime-id", &name]);
        if let Some(environment) = environment(stage) {
            command.env("VIRTUAL_ENV", environment);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("`ward notebook agent` could not be started")?;
        let agent = Agent { child };
        // One that was there before may still say something.
        let started = following.until("runtime.started", &name)?;
        let session = started["event"]["session_id"].as_str();
        let session = session.context("no session")?;
        while following.until("runtime.status", session)?["event"]["state"] != "ready" {}
        Ok(agent)
    }
}

/// The environment with the kernel, where there is one.
pub(crate) fn environment(stage: &Stage) -> Option<PathBuf> {
    stage.path("kernel").canonicalize().ok()
}

/// An agent. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
}

impl Agent {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Its kernel's end follows from the system.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events of a notebook as they happen.
#[derive(Debug)]
pub(crate) struct Following(BufReader<TcpStream>);

impl Following {
    pub(crate) fn open(
        stage: &Stage,
        served: &Served,
        path: &str,
        from: u64,
    ) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(served.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!(
            "GET {path}/events?from={from} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Accept: text/event-stream\r\n\r\n",
            served.address(),
            Served::token(stage)?
        );
        stream.write_all(request.as_bytes())?;
        let mut following = Self(BufReader::new(stream));
        let status = following.line()?;
        if !status.contains(" 200 ") {
            bail!("`{path}/events` was answered with `{}`", status.trim());
        }
        Ok(following)
    }

    /// The next event of this kind that names this, as it was told. What is long is one line all
    /// the same.
    pub(crate) fn until(&mut self, kind: &str, named: &str) -> anyhow::Result<Value> {
        let (kind, named) = (format!(r#""kind":"{kind}""#), format!(r#""{named}""#));
        loop {
            let line = self.line()?;
            if let Some(event) = line.strip_prefix("data:")
                && event.contains(&kind)
                && event.contains(&named)
            {
                return Ok(serde_json::from_str(event)?);
            }
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            bail!("the events ended");
        }
        Ok(line)
    }
}
