//! Sessions behind a gate come and go, and their rooms with them.

use std::time::Duration;

use libtest_mimic::Trial;
use protocol::ErrorKind;
use protocol::method::StatusResult;
use serde_json::{Value, json};

use crate::support::{Client, Permitted, gate, odd_seconds, processes_with, until_processes};

crate::trials!(
    more_sessions_than_rooms_take_the_place_of_those_that_are_idle,
    a_room_that_is_in_use_is_never_given_away,
    closing_a_session_ends_what_it_runs_and_nothing_else,
);

/// Those that are open at once.
const ROOMS: usize = 64;

async fn rooms(gate: &Client) -> u32 {
    let status: StatusResult = gate.remote.call("runtime/status", &()).await.unwrap();
    status.rooms
}

async fn run(gate: &Client, session: &str, line: &str) -> Result<Value, protocol::Failure> {
    let id = format!("{session} {line}");
    let permitted = Permitted::new(&id, "terminal.run", json!({"command": line}));
    gate.permitted(permitted.of(session)).await
}

async fn more_sessions_than_rooms_take_the_place_of_those_that_are_idle() {
    let gate = gate().await;
    for number in 0..=ROOMS {
        let line = "echo kept > /tmp/mark";
        let answer = run(&gate, &number.to_string(), line).await.unwrap();
        assert_eq!(answer["exit_code"], 0, "{number}: {answer}");
    }
    assert_eq!(rooms(&gate).await as usize, ROOMS);
    // The first one had waited longest, so that its place was taken; the second is as it was.
    let second = run(&gate, "1", "cat /tmp/mark").await.unwrap();
    assert_eq!(second["stdout"], "kept\n");
    let first = run(&gate, "0", "cat /tmp/mark").await.unwrap();
    assert_eq!(first["stdout"], "");
}

async fn a_room_that_is_in_use_is_never_given_away() {
    let gate = gate().await;
    for number in 0..ROOMS {
        let (id, session) = (format!("open {number}"), number.to_string());
        let open = json!({"argv": ["sleep", "1000"], "background": true});
        let permitted = Permitted::new(&id, "terminal.run", open).of(&session);
        gate.permitted(permitted).await.unwrap();
    }
    let busy = run(&gate, "more", "true").await.unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Busy, "{busy}");
    let close = json!({"session": "7"});
    let closed: Value = gate.remote.call("session/close", &close).await.unwrap();
    assert_eq!(closed, json!({"changed": true}));
    run(&gate, "more", "echo now").await.unwrap();
}

async fn closing_a_session_ends_what_it_runs_and_nothing_else() {
    let gate = gate().await;
    let (one, two) = (odd_seconds(), odd_seconds());
    for (session, seconds) in [("one", &one), ("two", &two)] {
        for mode in ["sandbox", "full"] {
            let id = format!("{session} {mode}");
            let params = json!({"argv": ["sleep", seconds], "background": true});
            let permitted = Permitted::new(&id, "terminal.run", params).of(session);
            gate.permitted(Permitted { mode, ..permitted })
                .await
                .unwrap();
        }
    }
    let waits = Permitted::new("waits", "terminal.run", json!({"argv": ["sleep", one]})).of("one");
    let request = gate.decide(waits).await.unwrap();
    let remote = gate.remote.clone();
    let waits =
        tokio::spawn(async move { remote.call::<_, Value>("action/execute", &request).await });
    until_processes(&one, 3).await;
    until_processes(&two, 2).await;
    assert_eq!(rooms(&gate).await, 4);

    let close = json!({"session": "one"});
    let closed: Value = gate.remote.call("session/close", &close).await.unwrap();
    assert_eq!(closed, json!({"changed": true}));
    assert_eq!((processes_with(&one), processes_with(&two)), (0, 2));
    assert_eq!(rooms(&gate).await, 2);
    assert_eq!(waits.await.unwrap().unwrap_err().kind, ErrorKind::Cancelled);
    let list = Permitted::new("list", "terminal.list", json!({})).of("one");
    assert_eq!(
        gate.permitted(list).await.unwrap(),
        json!({"terminals": []})
    );
    let again: Value = gate.remote.call("session/close", &close).await.unwrap();
    assert_eq!(again, json!({"changed": false}));
}

/// A room that nobody uses is closed after ten minutes, and one that is used is not.
pub(crate) fn with_time_standing_still() -> Trial {
    Trial::test("sessions::a_room_that_is_idle_for_long_is_closed", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let gate = gate().await;
            run(&gate, "idle", "true").await.unwrap();
            let open = json!({"argv": ["sleep", "1000"], "background": true});
            gate.permitted(Permitted::new("1", "terminal.run", open).of("used"))
                .await
                .unwrap();
            assert_eq!(rooms(&gate).await, 2);
            tokio::time::pause();
            for _ in 0..9 {
                tokio::time::advance(Duration::from_secs(60)).await;
                assert_eq!(rooms(&gate).await, 2);
            }
            while rooms(&gate).await != 1 {
                tokio::time::advance(Duration::from_secs(60)).await;
            }
        });
        Ok(())
    })
}
