//! Ward's own socket: for its user alone, with the same answers, and a door to the gate.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use axum::body::Body;
use hyper_util::rt::TokioIo;
use server::Socket;
use support::{Ward, converse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

#[tokio::test]
async fn the_same_service_is_on_the_socket_for_who_has_a_token() {
    let ward = Ward::start().await;
    let path = ward.folder.path().join("data/ward.sock");
    let socket = Socket::bind(&path).unwrap();
    let mode = path.symlink_metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let served = tokio::spawn(server::serve_unix(
        socket,
        ward.server.router(),
        ward.stop.clone().cancelled_owned(),
    ));
    let bearer = format!("Bearer {}", ward.token);
    let token = ("authorization", &*bearer);
    for (headers, host, status) in [
        (&[token][..], "ward.sock", 200),
        (&[token], "localhost", 200),
        (&[token], "evil.example", 403),
        (&[], "ward.sock", 401),
        (&[("authorization", "Bearer x")], "ward.sock", 401),
    ] {
        let stream = UnixStream::connect(&path).await.unwrap();
        let answer = converse(stream, "GET", "/grants", host, headers, Body::empty()).await;
        assert_eq!(answer.status(), status, "{host}");
    }
    // Nobody takes it over while it is in use; what is left of one that was killed is replaced.
    assert!(Socket::bind(&path).is_err());
    ward.stop.cancel();
    served.await.unwrap();
    assert!(!path.exists());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Socket::bind(&path).unwrap());

    std::fs::write(&path, "mine").unwrap();
    assert!(Socket::bind(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let long = ward.folder.path().join("x".repeat(120));
    let error = Socket::bind(&long).unwrap_err().to_string();
    assert!(error.contains("shorter path"), "{error}");
}

#[tokio::test]
async fn a_connection_becomes_one_of_json_rpc_with_the_gate() {
    let ward = Ward::start().await;
    let (id, agent) = ward.agent();
    let bearer = format!("Bearer {agent}");
    let token = ("authorization", &*bearer);
    let answer = ward.send("GET", "/gate", &[token], Body::empty()).await;
    assert_eq!(answer.failure(), (426, "upgrade_required".into()));
    assert_eq!(answer.headers["upgrade"], "ward-gate");

    let upgrade = [token, ("connection", "upgrade"), ("upgrade", "ward-gate")];
    let mut response = ward.open("GET", "/gate", &upgrade, Body::empty()).await;
    assert_eq!(response.status(), 101);
    let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
    let mut stream = TokioIo::new(upgraded);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"action/execute","params":{}}"#;
    let frame = format!("Content-Length: {}\r\n\r\n{call}", call.len());
    stream.write_all(frame.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.contains("not_initialized"), "{answer}");

    // It ends with the token that opened it.
    ward.tokens.revoke(&id).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}
