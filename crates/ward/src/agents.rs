//! Runtimes of notebooks that Ward starts itself. Each is `ward notebook agent` in a process of its
//! own: whatever its kernel sends does not come into the gate's memory. It ends when its standard
//! input does, so that none outlives Ward.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use gate::runtime::Waiting;
use notebooks::{AgentInfo, KernelInfo, NewAgent};
use protocol::{ErrorKind, Failure};
use runtime_native::Specs;
use server::auth::{Lent, Tokens};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::commands::variable;

/// How many run at once.
const MOST: usize = 32;
/// How long one has to be there, with its kernel.
const START: Duration = Duration::from_secs(90);
/// How long one has to end by itself.
const END: Duration = Duration::from_secs(10);
/// How much of what one says is kept.
const SAID: u64 = 8 << 10;

/// Those that Ward started.
pub(crate) struct Agents(Arc<Inner>);

struct Inner {
    program: PathBuf,
    url: String,
    tokens: Arc<Tokens>,
    going: Mutex<BTreeMap<String, Going>>,
}

/// One that goes on, or is about to.
#[derive(Clone)]
struct Going {
    info: AgentInfo,
    notebook: String,
    stop: CancellationToken,
    over: watch::Receiver<bool>,
}

impl Agents {
    /// None yet. They find Ward at this address.
    pub(crate) fn new(address: SocketAddr, tokens: Arc<Tokens>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("Ward cannot find its own program")?;
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        Ok(Self(Arc::new(Inner {
            program,
            url: format!("http://{}", SocketAddr::new(host, address.port())),
            tokens,
            going: Mutex::default(),
        })))
    }

    /// The same ones.
    pub(crate) fn share(&self) -> Arc<dyn notebooks::Agents> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    /// Ends all, and waits until they have.
    pub(crate) async fn close(&self) {
        let all: Vec<Going> = self.0.going().values().cloned().collect();
        for one in &all {
            one.stop.cancel();
        }
        for one in all {
            over(one.over).await;
        }
    }
}

impl notebooks::Agents for Agents {
    fn kernels(&self) -> Vec<KernelInfo> {
        let echo = KernelInfo {
            name: "echo".into(),
            display_name: "Echo".into(),
            language: "text".into(),
        };
        let found = Specs::usual(variable).list().into_iter();
        let found = found.map(|spec| KernelInfo {
            name: spec.name,
            display_name: spec.display_name,
            language: spec.language,
        });
        std::iter::once(echo).chain(found).collect()
    }

    fn start(&self, wanted: NewAgent) -> Waiting<'_, Result<AgentInfo, Failure>> {
        Box::pin(Arc::clone(&self.0).start(wanted))
    }

    fn list(&self, notebook: &str) -> Vec<AgentInfo> {
        let going = self.0.going();
        let its = going.values().filter(|one| one.notebook == notebook);
        its.map(|one| one.info.clone()).collect()
    }

    fn end<'a>(&'a self, notebook: &'a str, agent: &'a str) -> Waiting<'a, bool> {
        let found = self.0.going().get(agent).cloned();
        let found = found.filter(|one| one.notebook == notebook);
        Box::pin(async move {
            let Some(found) = found else { return false };
            found.stop.cancel();
            over(found.over).await;
            true
        })
    }
}

impl Inner {
    fn going(&self) -> MutexGuard<'_, BTreeMap<String, Going>> {
        // Nothing panics while it is held.
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start(self: Arc<Self>, wanted: NewAgent) -> Result<AgentInfo, Failure> {
        let internal = |why: String| Failure::new(ErrorKind::Internal, why);
        let info = AgentInfo {
            id: format!("ward-{}", gate::new_id()?),
            kernel: wanted.kernel.clone(),
            person: wanted.person.clone(),
        };
        let lent = Lent::to(&self.tokens, &wanted.person, &wanted.notebook);
        let lent = lent.map_err(|error| internal(error.to_string()))?;
        let stop = CancellationToken::new();
        let (ended, over) = watch::channel(false);
        {
            let mut going = self.going();
            if going.len() >= MOST {
                return Err(Failure::new(
                    ErrorKind::Busy,
                    format!("Ward has started {MOST} runtimes already. End some."),
                ));
            }
            let one = Going {
                info: info.clone(),
                notebook: wanted.notebook.clone(),
                stop: stop.clone(),
                over,
            };
            going.insert(info.id.clone(), one);
        }
        let spawned = self.command(&info, &wanted).spawn();
        let begun = match spawned {
            Ok(mut child) => {
                let said = said(child.stderr.take());
                match ready(&mut child, lent.secret(), &stop).await {
                    true => Ok(child),
                    // Whatever it does, it does not go on.
                    false => {
                        let _ = child.kill().await;
                        Err(why(&said.await.unwrap_or_default()))
                    }
                }
            }
            Err(error) => Err(internal(format!("Ward cannot start its program: {error}"))),
        };
        let inner = Arc::clone(&self);
        let id = info.id.clone();
        let gone = move || {
            inner.going().remove(&id);
            ended.send_replace(true);
        };
        match begun {
            Ok(child) => {
                tokio::spawn(async move {
                    watch_over(child, &stop).await;
                    drop(lent);
                    gone();
                });
                Ok(info)
            }
            Err(failure) => {
                gone();
                Err(failure)
            }
        }
    }

    fn command(&self, info: &AgentInfo, wanted: &NewAgent) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["notebook", "agent", "--gated", "--url", &self.url])
            .args(["--notebook", &wanted.notebook])
            .args(["--client-id", &wanted.person])
            .args(["--runtime-id", &info.id])
            .arg(format!("--kernel={}", wanted.kernel))
            .arg("--workspace")
            .arg(&wanted.workspace)
            .env_remove("WARD_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Gives it its token, and waits until it says that it runs.
async fn ready(child: &mut Child, token: &str, stop: &CancellationToken) -> bool {
    let begun = async {
        let stdin = child.stdin.as_mut()?;
        stdin
            .write_all(format!("{token}\n").as_bytes())
            .await
            .ok()?;
        let mut lines = BufReader::new(child.stdout.as_mut()?).lines();
        lines.next_line().await.ok()?
    };
    tokio::select! {
        line = begun => line.is_some_and(|line| line == "ready"),
        () = tokio::time::sleep(START) => false,
        () = stop.cancelled() => false,
    }
}

/// What it says, up to a limit; the rest is read and dropped, so that it never waits.
fn said(stderr: Option<ChildStderr>) -> tokio::task::JoinHandle<String> {
    tokio::spawn(async move {
        let Some(mut stderr) = stderr else {
            return String::new();
        };
        let mut said = Vec::new();
        let _ = (&mut stderr).take(SAID).read_to_end(&mut said).await;
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// Why it did not begin, in its words.
fn why(said: &str) -> Failure {
    let words = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("ward: "));
    let words = words.unwrap_or("The runtime could not be started.");
    Failure::new(ErrorKind::NoRuntime, words)
}

/// Waits for its end, and sees to it where it is wanted.
async fn watch_over(mut child: Child, stop: &CancellationToken) {
    // Who waits for a child closes its standard input, which would be its end.
    let input = child.stdin.take();
    tokio::select! {
        _ = child.wait() => return,
        () = stop.cancelled() => {}
    }
    drop(input);
    if tokio::time::timeout(END, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

async fn over(mut over: watch::Receiver<bool>) {
    // Whoever would say so is gone, which is the same.
    let _ = over.wait_for(|over| *over).await;
}
