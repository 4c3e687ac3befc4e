//! Several streams over one websocket, each as a request for it alone would be answered.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use futures_util::{SinkExt as _, StreamExt as _};
use protocol::http::{Told, Wish};
use serde_json::json;
use support::Ward;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(ward: &Ward, headers: &[(&'static str, &str)]) -> Result<Self, Error> {
        let stream = TcpStream::connect(ward.address).await.unwrap();
        let url = format!("ws://{}/events", ward.address);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = client_async(request, stream).await?;
        Ok(Self(socket))
    }

    async fn of(ward: &Ward, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        Self::open(ward, &[("authorization", &bearer)])
            .await
            .unwrap()
    }

    async fn follow(&mut self, id: u64, path: &str, after: Option<u64>) {
        let path = path.to_owned();
        self.say(&Wish::Follow { id, path, after }).await;
    }

    async fn say(&mut self, wish: &Wish) {
        let text = serde_json::to_string(wish).unwrap();
        self.0.send(text.into()).await.unwrap();
    }

    /// What is told next; none at the end.
    async fn next(&mut self) -> Option<Told> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.next());
        match next.await.unwrap()? {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(_) | Err(_) => None,
        }
    }

    /// Of each stream what was told, until so many have ended.
    async fn until_ended(&mut self, mut count: usize) -> BTreeMap<u64, (u16, String)> {
        let mut all: BTreeMap<u64, (u16, String)> = BTreeMap::new();
        while count > 0 {
            match self.next().await.unwrap() {
                Told::Answered { id, status } => all.entry(id).or_default().0 = status,
                Told::Piece { id, data } => all.entry(id).or_default().1.push_str(&data),
                Told::Ended { .. } => count -= 1,
            }
        }
        all
    }
}

/// The status and text of what a request for it alone is answered.
async fn alone(ward: &Ward, path: &str, token: &str) -> (u16, String) {
    let answer = ward.get(path, token).await;
    (answer.status, answer.body)
}

/// An action that ended long ago.
async fn past(ward: &Ward, id: &str, person: &str) {
    let requested =
        json!({"action": "fs.read", "actor": format!("person:{person}"), "person": person});
    let ended = json!({"status": "done", "result": {"content": "a"}, "duration_ms": 3});
    let events = vec![("action.requested", requested), ("action.ended", ended)];
    ward.write(&format!("action/{id}"), events).await;
}

#[tokio::test]
async fn each_is_told_as_if_it_was_asked_for_alone() {
    let ward = Ward::start().await;
    past(&ward, "one", &ward.person).await;
    past(&ward, "two", &ward.person).await;
    past(&ward, "theirs", "bob").await;
    let mut socket = Socket::of(&ward, &ward.token).await;
    let asked = [
        "/actions/one/events",
        "/actions/two/events?from=1",
        "/actions/two/events?from=2",
        "/actions/theirs/events",
        // What tells no events is not to be had here, and neither is another connection.
        "/healthz",
        "/events",
        "no path",
    ];
    for (id, path) in (1..).zip(asked) {
        socket.follow(id, path, None).await;
    }
    socket.follow(8, "/actions/two/events", Some(1)).await;
    let told = socket.until_ended(8).await;
    for (id, path) in (1..).zip(&asked[..4]) {
        assert_eq!(told[&id], alone(&ward, path, &ward.token).await, "{path}");
    }
    assert_eq!(told[&8], told[&2]);
    let statuses: Vec<_> = told.values().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 204, 404, 404, 404, 400, 200]);
}

#[tokio::test]
async fn one_that_is_stopped_is_told_no_more_and_the_others_go_on() {
    let ward = Ward::start().await;
    let mut socket = Socket::of(&ward, &ward.token).await;
    let person = &ward.person;
    for id in [1, 2] {
        let path = format!("/approvals/events?front={}", id == 1);
        socket.follow(id, &path, None).await;
        assert_eq!(
            socket.next().await,
            Some(Told::Answered { id, status: 200 })
        );
        let Some(Told::Piece { data, .. }) = socket.next().await else {
            panic!("no hello");
        };
        assert!(data.starts_with("event: hello\n"), "{data}");
    }
    socket.say(&Wish::Stop { id: 1 }).await;
    // It is followed to its end: what was said before it was heard by then.
    past(&ward, "it", person).await;
    socket.follow(3, "/actions/it/events", None).await;
    socket.until_ended(1).await;
    let resolved = json!({"approval_id": "a"});
    let inbox = format!("inbox/{person}");
    ward.write(&inbox, vec![("permission.resolved", resolved)])
        .await;
    let Some(Told::Piece { id: 2, data }) = socket.next().await else {
        panic!("the other one was told");
    };
    assert_eq!(
        data,
        "id: 1\nevent: permission.resolved\ndata: {\"approval_id\":\"a\"}\n\n"
    );
    socket.say(&Wish::Stop { id: 2 }).await;
    socket.follow(4, "/actions/it/events", None).await;
    assert_eq!(socket.until_ended(1).await.len(), 1);
}

#[tokio::test]
async fn who_may_not_ask_has_no_websocket_and_who_is_revoked_has_it_no_longer() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    for (headers, expected) in [
        (&[][..], 401),
        (&[("authorization", "Bearer wrong")], 401),
        (
            &[
                ("authorization", &*bearer),
                ("origin", "http://evil.example"),
            ],
            403,
        ),
        (
            &[("authorization", &*bearer), ("host", "evil.example")],
            403,
        ),
    ] {
        match Socket::open(&ward, headers).await.map(|_| ()) {
            Err(Error::Http(response)) => assert_eq!(response.status(), expected),
            other => panic!("{other:?}"),
        }
    }
    let headers = [("authorization", &*bearer)];
    let plain = ward.send("GET", "/events", &headers, Body::empty()).await;
    assert_eq!(plain.failure(), (426, "upgrade_required".into()));
    assert_eq!(plain.headers["upgrade"], "websocket");

    let (id, agent) = ward.agent();
    let mut socket = Socket::of(&ward, &agent).await;
    socket.follow(1, "/approvals/events", None).await;
    let told = socket.until_ended(1).await;
    assert_eq!(told[&1], alone(&ward, "/approvals/events", &agent).await);
    ward.tokens.revoke(&id).unwrap();
    assert_eq!(socket.next().await, None);
}

#[tokio::test]
async fn what_cannot_be_read_ends_it_and_too_many_are_refused() {
    let ward = Ward::start().await;
    let mut socket = Socket::of(&ward, &ward.token).await;
    for id in 0..65 {
        socket.follow(id, "/ledger/events", None).await;
    }
    let told = socket.until_ended(1).await;
    assert_eq!(told[&64].0, 503);
    socket.0.send("nonsense".into()).await.unwrap();
    let closed = loop {
        if let Message::Close(frame) = socket.0.next().await.unwrap().unwrap() {
            break frame.unwrap();
        }
    };
    assert!(closed.reason.contains("follow"), "{closed:?}");
}
