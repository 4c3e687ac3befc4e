//! A client on the other end of a pipe, and a look at the machine from outside the rooms.

use std::path::Path;
use std::sync::Arc;

use protocol::method::{
    ACTION_OUTPUT, ExitedParams, OutputParams, OutputStream, RUNTIME_STATUS, StatusResult,
    TERMINAL_EXITED,
};
use protocol::sandbox::Tier;
use protocol::{Data, Failure};
use rpc::{Answer, End, Limits, Notification, Peer, Remote, Request, Service};
use runtime_server::{Entrance, RoomSettings, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the runtime told without being asked.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Output(OutputParams),
    Exited(ExitedParams),
    Status(StatusResult),
}

struct Listening(mpsc::UnboundedSender<Told>);

impl Service for Listening {
    async fn request(&self, request: Request) -> Answer {
        Err(request.unknown())
    }

    async fn notification(&self, notification: Notification) {
        let told = match notification.method.as_str() {
            ACTION_OUTPUT => Told::Output(notification.read().unwrap()),
            TERMINAL_EXITED => Told::Exited(notification.read().unwrap()),
            RUNTIME_STATUS => Told::Status(notification.read().unwrap()),
            method => panic!("the runtime told `{method}`"),
        };
        let _ = self.0.send(told);
    }
}

/// A runtime of its own, and the other end of its pipe.
pub(crate) struct Served {
    pub(crate) stream: DuplexStream,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<End>,
    pub(crate) folders: (TempDir, TempDir),
}

pub(crate) fn serve() -> Served {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let runtime = Runtime::open(RuntimeOptions {
        workspace: folder.path().to_owned(),
        rooms: RoomSettings {
            state: state.path().to_owned(),
            own: Vec::new(),
            minimum: Tier::Walls,
            net: sandbox::Net::None,
            limits: sandbox::Limits {
                memory: 1 << 30,
                pids: 512,
                tmp: 1 << 28,
            },
        },
    })
    .unwrap();
    let (stream, there) = tokio::io::duplex(64 * 1024);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let serving = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(there);
        runtime
            .serve(reader, writer, Entrance::Pipe, stopping)
            .await
    });
    Served {
        stream,
        stop,
        serving,
        folders: (folder, state),
    }
}

/// A client of a runtime of its own.
pub(crate) struct Client {
    pub(crate) remote: Remote,
    pub(crate) told: mpsc::UnboundedReceiver<Told>,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<End>,
    pub(crate) talking: JoinHandle<End>,
    folders: (TempDir, TempDir),
}

/// A client that has not said `initialize`.
pub(crate) fn connect() -> Client {
    let served = serve();
    let (reader, writer) = tokio::io::split(served.stream);
    let (peer, remote) = Peer::new(reader, writer, Limits::default());
    let (tell, told) = mpsc::unbounded_channel();
    Client {
        remote,
        told,
        stop: served.stop,
        serving: served.serving,
        talking: tokio::spawn(peer.run(Listening(tell))),
        folders: served.folders,
    }
}

/// A client that has.
pub(crate) async fn client() -> Client {
    let client = connect();
    client
        .remote
        .call::<_, Value>("initialize", &json!({}))
        .await
        .unwrap();
    client
}

impl Client {
    pub(crate) async fn execute(
        &self,
        id: &str,
        action: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        execute(&self.remote, id, action, params).await
    }

    /// Does it without waiting for the end.
    pub(crate) fn start(
        &self,
        id: &str,
        action: &str,
        params: Value,
    ) -> JoinHandle<Result<Value, Failure>> {
        let (remote, id, action) = (self.remote.clone(), id.to_owned(), action.to_owned());
        tokio::spawn(async move { execute(&remote, &id, &action, params).await })
    }

    /// The next piece of output.
    pub(crate) async fn output(&mut self) -> OutputParams {
        loop {
            match self.told.recv().await.unwrap() {
                Told::Output(output) => return output,
                Told::Status(_) => {}
                Told::Exited(exited) => panic!("it ended: {exited:?}"),
            }
        }
    }

    /// Output of an action until `text` was among it.
    pub(crate) async fn output_until(&mut self, text: &str) -> String {
        let mut all = String::new();
        while !all.contains(text) {
            all.push_str(&self.output().await.data);
        }
        all
    }

    /// All that was told so far.
    pub(crate) fn all_told(&mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.told.try_recv().ok()).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folders.0.path()
    }
}

async fn execute(remote: &Remote, id: &str, action: &str, params: Value) -> Result<Value, Failure> {
    let request = json!({"id": id, "action": action, "params": params});
    remote.call("action/execute", &request).await
}

/// The bytes of one stream, after looking that the numbers have no gap.
pub(crate) fn bytes(told: &[Told], of: OutputStream) -> Vec<u8> {
    let mut all = Vec::new();
    let outputs = told.iter().filter_map(|told| match told {
        Told::Output(output) => Some(output.clone()),
        Told::Exited(_) | Told::Status(_) => None,
    });
    for (number, output) in outputs.enumerate() {
        assert_eq!(output.seq, number as u64);
        if output.stream == of {
            all.extend(Data::decode(output.data, output.encoding).unwrap());
        }
    }
    all
}

/// How many processes on the machine have this word among theirs.
pub(crate) fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|it| it == word.as_bytes())
        })
        .count()
}

/// A number of seconds that no other test sleeps.
pub(crate) fn odd_seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{number}", 100_000 + std::process::id())
}

/// Waits until the machine runs so many processes with this word.
pub(crate) async fn until_processes(word: &str, count: usize) {
    while processes_with(word) != count {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

pub(crate) fn tier() -> Arc<str> {
    let state = tempfile::tempdir().unwrap();
    sandbox::probe(Tier::Walls, state.path())
        .tier
        .as_str()
        .into()
}
