//! The runtime on a port: who gets in, and who does not.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use protocol::sandbox::Tier;
use protocol::{ErrorKind, Failure};
use rpc::{End, Limits, NoService, Peer, Remote};
use runtime_server::{
    Entrance, ListenError, Listener, Reach, RoomSettings, Runtime, RuntimeOptions, Token,
    serve_listen,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

crate::trials![
    the_token_lets_in_and_each_client_has_its_own_memory,
    a_wrong_token_is_told_and_ends_the_connection,
    without_a_token_nothing_is_done,
    a_large_frame_is_only_taken_from_who_showed_the_token,
    those_without_a_token_cannot_take_all_places,
    being_stopped_ends_every_connection,
    anything_but_loopback_has_to_be_allowed,
];

/// With a clock that stands still until nothing else moves.
pub(crate) fn with_time_standing_still() -> Trial {
    Trial::test(
        "listen::who_does_not_show_the_token_in_time_is_let_go",
        || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()?;
            runtime.block_on(who_does_not_show_the_token_in_time_is_let_go());
            Ok(())
        },
    )
}

const TOKEN: &str = "a token for these tests";

struct Setup {
    address: std::net::SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _folders: (TempDir, TempDir),
}

fn runtime() -> (Arc<Runtime>, (TempDir, TempDir)) {
    let folders = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = RuntimeOptions {
        workspace: folders.0.path().to_owned(),
        rooms: RoomSettings {
            state: folders.1.path().to_owned(),
            own: Vec::new(),
            minimum: Tier::None,
            net: sandbox::Net::None,
            limits: sandbox::Limits {
                memory: 1 << 30,
                pids: 512,
                tmp: 1 << 28,
            },
        },
        frame: 64 << 20,
    };
    (Runtime::open(options).unwrap(), folders)
}

async fn setup() -> Setup {
    let (runtime, folders) = runtime();
    let listener = Listener::bind("127.0.0.1:0", Reach::Loopback)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    Setup {
        address: listener.address(),
        stop: stop.clone(),
        serving: tokio::spawn(serve_listen(
            runtime,
            listener,
            Token::new(TOKEN.into()).unwrap(),
            stop,
        )),
        _folders: folders,
    }
}

async fn connect(setup: &Setup) -> (Remote, JoinHandle<End>) {
    let stream = TcpStream::connect(setup.address).await.unwrap();
    let (reader, writer) = stream.into_split();
    let (peer, remote) = Peer::new(reader, writer, Limits::default());
    (remote, tokio::spawn(peer.run(NoService)))
}

async fn ask(remote: &Remote, method: &str, params: Value) -> Result<Value, Failure> {
    remote.call(method, &params).await
}

async fn the_token_lets_in_and_each_client_has_its_own_memory() {
    let setup = setup().await;
    let (one, _one) = connect(&setup).await;
    let (two, _two) = connect(&setup).await;
    for remote in [&one, &two] {
        let answer = ask(remote, "initialize", json!({"token": TOKEN})).await;
        assert_eq!(answer.unwrap()["name"], "ward");
    }
    // One id, two clients, two actions; the workspace is the same.
    let make = |path: &str| json!({"id": "1", "action": "fs.mkdir", "params": {"path": path}});
    for (remote, path, changed) in [(&one, "a", true), (&two, "a", false)] {
        let made = ask(remote, "action/execute", make(path)).await;
        assert_eq!(made, Ok(json!({"changed": changed})));
    }
    let conflict = ask(&one, "action/execute", make("b")).await;
    assert_eq!(conflict.unwrap_err().kind, ErrorKind::Conflict);
}

async fn a_wrong_token_is_told_and_ends_the_connection() {
    let setup = setup().await;
    for params in [
        json!({"token": "a token for these tesst"}),
        json!({"token": ""}),
        json!({}),
    ] {
        let (remote, running) = connect(&setup).await;
        let refused = ask(&remote, "initialize", params).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unauthorized);
        assert!(matches!(running.await.unwrap(), End::EndOfInput));
    }
}

async fn without_a_token_nothing_is_done() {
    let setup = setup().await;
    let (remote, _running) = connect(&setup).await;
    for method in [
        "action/execute",
        "action/resolve",
        "runtime/status",
        "shutdown",
    ] {
        let refused = ask(&remote, method, json!({})).await;
        assert_eq!(
            refused.unwrap_err().kind,
            ErrorKind::NotInitialized,
            "{method}"
        );
    }
}

async fn a_large_frame_is_only_taken_from_who_showed_the_token() {
    let setup = setup().await;
    let (remote, _running) = connect(&setup).await;
    let large = "x".repeat(100_000);
    let refused = ask(&remote, "initialize", json!({"token": large})).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::FrameTooLarge);
    ask(&remote, "initialize", json!({"token": TOKEN}))
        .await
        .unwrap();
    let write = json!({"id": "1", "action": "fs.write",
        "params": {"path": "a", "content": large}});
    let written = ask(&remote, "action/execute", write).await.unwrap();
    assert_eq!(written["created"], true);
}

async fn who_does_not_show_the_token_in_time_is_let_go() {
    let (runtime, _folders) = runtime();
    let (mut here, there) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(there);
    let entrance = Entrance::Port {
        token: Token::new(TOKEN.into()).unwrap(),
        place: None,
    };
    let started = tokio::time::Instant::now();
    let end = runtime
        .serve(reader, writer, entrance, CancellationToken::new())
        .await;
    assert!(matches!(end, End::Closed));
    let waited = started.elapsed();
    assert!((9..12).contains(&waited.as_secs()), "{waited:?}");
    let mut rest = Vec::new();
    here.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

async fn those_without_a_token_cannot_take_all_places() {
    let setup = setup().await;
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(TcpStream::connect(setup.address).await.unwrap());
    }
    // The system still takes the connection; nobody reads it until one of the others goes.
    let (remote, _running) = connect(&setup).await;
    let asking =
        tokio::spawn(async move { ask(&remote, "initialize", json!({"token": TOKEN})).await });
    for mut stream in idle.drain(..8) {
        stream.shutdown().await.unwrap();
    }
    let answer = tokio::time::timeout(Duration::from_secs(5), asking).await;
    assert_eq!(answer.unwrap().unwrap().unwrap()["name"], "ward");
}

async fn being_stopped_ends_every_connection() {
    let setup = setup().await;
    let (remote, running) = connect(&setup).await;
    ask(&remote, "initialize", json!({"token": TOKEN}))
        .await
        .unwrap();
    setup.stop.cancel();
    setup.serving.await.unwrap();
    assert!(matches!(running.await.unwrap(), End::EndOfInput));
    assert!(TcpStream::connect(setup.address).await.is_err());
}

async fn anything_but_loopback_has_to_be_allowed() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = Listener::bind(address, Reach::Loopback).await;
        assert!(
            matches!(refused, Err(ListenError::NotLoopback(_))),
            "{address}"
        );
    }
    let allowed = Listener::bind("0.0.0.0:0", Reach::Anywhere).await;
    assert!(allowed.is_ok());
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999"] {
        let refused = Listener::bind(address, Reach::Loopback).await;
        assert!(
            matches!(refused, Err(ListenError::BadAddress { .. })),
            "{address}"
        );
    }
}
