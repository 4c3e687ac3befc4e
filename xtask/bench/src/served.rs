//! `ward serve` under test.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

use anyhow::Context as _;

use crate::http::Http;
use crate::stage::Stage;

/// A Ward that answers over HTTP. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    /// Held open, because it says more than is wanted.
    _output: BufReader<ChildStdout>,
    address: SocketAddr,
    /// From its start to the first answer of `/healthz`.
    pub(crate) ready: f64,
}

impl Served {
    pub(crate) fn start(stage: &Stage, data: &Path) -> anyhow::Result<Self> {
        Self::start_with(stage, data, &[])
    }

    /// The same, with more in its environment.
    pub(crate) fn start_with(
        stage: &Stage,
        data: &Path,
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut command = stage.ours("ward");
        command.envs(more.iter().copied());
        command.args(["serve", "--addr", "127.0.0.1:0", "--data"]);
        command
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .context("`ward serve` could not be started")?;
        let (output, address) = match greeting(&mut child) {
            Ok(greeted) => greeted,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let mut served = Self {
            child,
            _output: output,
            address,
            ready: 0.0,
        };
        Http::connect(address, None)?.ask("GET", "/healthz", "")?;
        served.ready = started.elapsed().as_secs_f64();
        Ok(served)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first person's token.
    pub(crate) fn token(stage: &Stage) -> anyhow::Result<String> {
        let file = stage.path("home").join(".config/ward/token");
        let token = std::fs::read_to_string(&file).context("there is no token")?;
        Ok(token.trim().to_owned())
    }

    /// A connection of the first person's.
    pub(crate) fn connect(&self, stage: &Stage) -> anyhow::Result<Http> {
        Http::connect(self.address, Some(Self::token(stage)?))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Its runtime server ends with the pipe between them.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where it says that it is.
fn greeting(child: &mut Child) -> anyhow::Result<(BufReader<ChildStdout>, SocketAddr)> {
    let output = child.stdout.take().context("it has no output")?;
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let (_, address) = line
        .trim()
        .split_once("http://")
        .with_context(|| format!("`ward serve` said `{}`", line.trim()))?;
    Ok((output, address.parse()?))
}
