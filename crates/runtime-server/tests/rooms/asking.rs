//! Hosts behind a gate: each connection waits for its answer.

use protocol::wall::WallAskResult;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{Client, Permitted, gate, odd_seconds, until_processes};

crate::trials!(
    a_connection_waits_until_the_gate_allows_it,
    a_connection_that_is_denied_reaches_nobody,
    a_question_names_who_may_have_asked,
    a_question_is_withdrawn_when_its_command_is_cancelled,
    a_question_is_withdrawn_when_the_client_hangs_up,
    a_gate_that_fails_says_no,
);

/// A server of this machine, and who it heard.
async fn server() -> (u16, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tell.send(()).unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            let _ = stream.write_all(answer).await;
        }
    });
    (port, heard)
}

/// Loopback is left out of the proxy's variables, so that curl has to be told.
fn curl(port: u16) -> String {
    format!("curl -sS --max-time 30 --noproxy '' http://127.0.0.1:{port}/")
}

async fn start(
    gate: &Client,
    permitted: Permitted<'_>,
) -> tokio::task::JoinHandle<Result<Value, protocol::Failure>> {
    let request = gate.decide(permitted).await.unwrap();
    let remote = gate.remote.clone();
    tokio::spawn(async move { remote.call("action/execute", &request).await })
}

fn run<'a>(id: &'a str, line: &str) -> Permitted<'a> {
    Permitted::new(id, "terminal.run", json!({"command": line})).of("s")
}

async fn a_connection_waits_until_the_gate_allows_it() {
    let mut gate = gate().await;
    let (port, mut heard) = server().await;
    let running = start(&gate, run("1", &curl(port))).await;
    let question = gate.questions.recv().await.unwrap();
    assert_eq!(question.asked.host, format!("127.0.0.1:{port}"));
    assert_eq!(question.asked.session.as_deref(), Some("s"));
    assert_eq!(question.asked.actions, ["1"]);
    assert!(heard.try_recv().is_err() && !running.is_finished());
    let yes = WallAskResult {
        allow: true,
        reason: None,
    };
    question.answer.send(yes).unwrap();
    let answer = running.await.unwrap().unwrap();
    assert_eq!(answer["stdout"], "hello", "{answer}");
    heard.recv().await.unwrap();
}

async fn a_connection_that_is_denied_reaches_nobody() {
    let mut gate = gate().await;
    let (port, mut heard) = server().await;
    let running = start(&gate, run("1", &curl(port))).await;
    let question = gate.questions.recv().await.unwrap();
    let no = WallAskResult {
        allow: false,
        reason: Some("Ada said no".into()),
    };
    question.answer.send(no).unwrap();
    let answer = running.await.unwrap().unwrap();
    let said = format!("Ward stopped the connection to 127.0.0.1:{port}: Ada said no.\n");
    assert_eq!(answer["stdout"], said);
    let stopped = json!([{"access": "connect", "target": format!("127.0.0.1:{port}")}]);
    assert_eq!(answer["sandbox"]["stopped"], stopped);
    assert!(heard.try_recv().is_err());
}

async fn a_question_names_who_may_have_asked() {
    let mut gate = gate().await;
    let (port, _heard) = server().await;
    let seconds = odd_seconds();
    let sleep = start(&gate, run("sleeps", &format!("sleep {seconds}"))).await;
    let other = run("other", &format!("sleep {seconds}"));
    let other = start(
        &gate,
        Permitted {
            session: Some("t"),
            ..other
        },
    )
    .await;
    until_processes(&seconds, 2).await;
    let running = start(&gate, run("asks", &curl(port))).await;
    let question = gate.questions.recv().await.unwrap();
    let mut actions = question.asked.actions;
    actions.sort();
    assert_eq!(actions, ["asks", "sleeps"]);
    for task in [sleep, other, running] {
        task.abort();
    }
    until_processes(&seconds, 0).await;
}

async fn a_question_is_withdrawn_when_its_command_is_cancelled() {
    let mut gate = gate().await;
    let (port, mut heard) = server().await;
    let running = start(&gate, run("1", &curl(port))).await;
    let mut question = gate.questions.recv().await.unwrap();
    running.abort();
    question.answer.closed().await;
    assert!(heard.try_recv().is_err());
}

async fn a_question_is_withdrawn_when_the_client_hangs_up() {
    let mut gate = gate().await;
    let (port, _heard) = server().await;
    let line = format!("{} & sleep 0.2; kill $!; wait; echo still here", curl(port));
    let running = start(&gate, run("1", &line)).await;
    let mut question = gate.questions.recv().await.unwrap();
    question.answer.closed().await;
    let answer = running.await.unwrap().unwrap();
    assert_eq!(answer["stdout"], "still here\n");
}

async fn a_gate_that_fails_says_no() {
    let mut gate = gate().await;
    let (port, mut heard) = server().await;
    let running = start(&gate, run("1", &curl(port))).await;
    drop(gate.questions.recv().await.unwrap());
    let answer = running.await.unwrap().unwrap();
    let said = answer["stdout"].as_str().unwrap();
    assert!(said.contains("nobody could be asked"), "{answer}");
    assert!(heard.try_recv().is_err());
}
