//! A client on the other end of a pipe, and a look at the machine from outside the rooms.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::method::{
    ACTION_OUTPUT, ExitedParams, OutputParams, OutputStream, RUNTIME_STATUS, StatusResult,
    TERMINAL_EXITED, WALL_ASK,
};
use protocol::sandbox::Tier;
use protocol::wall::{WallAskParams, WallAskResult};
use protocol::{Data, Failure};
use rpc::{Answer, End, Limits, Notification, Peer, Remote, Request, Service};
use runtime_server::{Entrance, RoomSettings, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the runtime told without being asked.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Output(OutputParams),
    Exited(ExitedParams),
    Status(StatusResult),
}

/// A question of the runtime's, to be answered by the test.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: WallAskParams,
    /// Dropped when the runtime no longer wants to know.
    pub(crate) answer: oneshot::Sender<WallAskResult>,
}

struct Listening {
    told: mpsc::UnboundedSender<Told>,
    questions: mpsc::UnboundedSender<Question>,
}

impl Service for Listening {
    async fn request(&self, request: Request) -> Answer {
        if request.method != WALL_ASK {
            return Err(request.unknown());
        }
        let (answer, answered) = oneshot::channel();
        let question = Question {
            asked: request.read()?,
            answer,
        };
        self.questions
            .send(question)
            .map_err(|_| request.unknown())?;
        rpc::answer(&answered.await.map_err(|_| request.unknown())?)
    }

    async fn notification(&self, notification: Notification) {
        let told = match notification.method.as_str() {
            ACTION_OUTPUT => Told::Output(notification.read().unwrap()),
            TERMINAL_EXITED => Told::Exited(notification.read().unwrap()),
            RUNTIME_STATUS => Told::Status(notification.read().unwrap()),
            method => panic!("the runtime told `{method}`"),
        };
        let _ = self.told.send(told);
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
    serve_at(Entrance::Pipe)
}

fn serve_at(entrance: Entrance) -> Served {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = state.path().join("ward");
    std::fs::create_dir(&own).unwrap();
    let runtime = Runtime::open(RuntimeOptions {
        workspace: folder.path().to_owned(),
        rooms: RoomSettings {
            state: own,
            own: Vec::new(),
            minimum: Tier::Walls,
            net: sandbox::Net::None,
            limits: sandbox::Limits {
                memory: 1 << 30,
                pids: 512,
                tmp: 1 << 28,
            },
        },
        frame: 64 << 20,
    })
    .unwrap();
    let (stream, there) = tokio::io::duplex(64 * 1024);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let serving = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(there);
        runtime.serve(reader, writer, entrance, stopping).await
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
    pub(crate) questions: mpsc::UnboundedReceiver<Question>,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<End>,
    pub(crate) talking: JoinHandle<End>,
    folders: (TempDir, TempDir),
}

/// A client that has not said `initialize`.
pub(crate) fn connect() -> Client {
    connect_to(serve())
}

/// A gate that has said `initialize` to a runtime of its own.
pub(crate) async fn gate() -> Client {
    let gate = connect_to(serve_at(Entrance::Gate));
    let known: Value = gate.remote.call("initialize", &json!({})).await.unwrap();
    assert_eq!(known["authority"], "gated");
    gate
}

fn connect_to(served: Served) -> Client {
    let (reader, writer) = tokio::io::split(served.stream);
    let (peer, remote) = Peer::new(reader, writer, Limits::default());
    let (tell, told) = mpsc::unbounded_channel();
    let (ask, questions) = mpsc::unbounded_channel();
    let listening = Listening {
        told: tell,
        questions: ask,
    };
    Client {
        remote,
        told,
        questions,
        stop: served.stop,
        serving: served.serving,
        talking: tokio::spawn(peer.run(listening)),
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

    pub(crate) async fn resolve(&self, action: &str, params: Value) -> Result<Value, Failure> {
        let request = json!({"action": action, "params": params});
        let resolved: Value = self.remote.call("action/resolve", &request).await?;
        Ok(resolved["facts"].clone())
    }

    /// What a gate does: asks for the facts, decides, and sends them with its permit.
    pub(crate) async fn permitted(&self, permitted: Permitted<'_>) -> Result<Value, Failure> {
        let request = self.decide(permitted).await?;
        self.remote.call("action/execute", &request).await
    }

    /// The same, up to the request.
    pub(crate) async fn decide(&self, permitted: Permitted<'_>) -> Result<Value, Failure> {
        let Permitted {
            id,
            session,
            action,
            params,
            mode,
            wall,
        } = permitted;
        let facts = self.resolve(action, params.clone()).await?;
        Ok(json!({
            "id": id,
            "session": session,
            "action": action,
            "params": params,
            "permit": {"digest": protocol::Digest::of(b"decided"), "mode": mode},
            "wall": wall,
            "expect": facts,
        }))
    }

    /// Ward's own folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.folders.1.path().canonicalize().unwrap().join("ward")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folders.0.path()
    }
}

/// An action as a gate permits it.
#[derive(Debug, Clone)]
pub(crate) struct Permitted<'a> {
    pub(crate) id: &'a str,
    pub(crate) session: Option<&'a str>,
    pub(crate) action: &'a str,
    pub(crate) params: Value,
    pub(crate) mode: &'a str,
    pub(crate) wall: Value,
}

impl<'a> Permitted<'a> {
    pub(crate) fn new(id: &'a str, action: &'a str, params: Value) -> Self {
        Self {
            id,
            session: None,
            action,
            params,
            mode: "sandbox",
            wall: json!({}),
        }
    }

    pub(crate) fn beyond(self) -> Self {
        Self {
            wall: json!({"beyond": true}),
            ..self
        }
    }

    pub(crate) fn widened(self, path: &Path, access: &str) -> Self {
        Self {
            wall: json!({"widen": [{"path": path, "access": access}]}),
            ..self
        }
    }

    pub(crate) fn in_full(self) -> Self {
        Self {
            mode: "full",
            ..self
        }
    }

    pub(crate) fn of(self, session: &'a str) -> Self {
        Self {
            session: Some(session),
            ..self
        }
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
