//! Events: from where a client left off, without a gap and without a double, until there are none.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use serde_json::{Value, json};
use store::{Seq, Store as _, StreamName};
use support::{Told, Ward};

fn numbers(told: &[Told]) -> Vec<u64> {
    told.iter().filter_map(|(id, _, _)| *id).collect()
}

/// An action that ended long ago, as the store has it.
async fn past(ward: &Ward, id: &str, actor: &str, person: &str) {
    let requested = json!({"action": "fs.read", "actor": actor, "person": person});
    let ended = json!({"status": "done", "result": {"content": "a\nb"}, "duration_ms": 3});
    let mut events = vec![("action.requested", requested)];
    for number in 0..100 {
        events.push((
            "action.output",
            json!({"stream": "stdout", "data": format!("{number}\n\nid: 7\n")}),
        ));
    }
    events.push(("action.ended", ended));
    ward.write(&format!("action/{id}"), events).await;
}

#[tokio::test]
async fn a_past_action_is_told_whole_to_whom_it_concerns() {
    let ward = Ward::start().await;
    let me = format!("person:{}", ward.person);
    past(&ward, "old", &me, &ward.person.clone()).await;
    past(&ward, "theirs", "person:bob", "bob").await;
    assert_eq!(
        ward.get("/actions/old", &ward.token).await.json(),
        json!({
            "id": "old",
            "state": "ended",
            "outcome": {"status": "done", "result": {"content": "a\nb"}, "duration_ms": 3},
        })
    );
    for path in ["/actions/theirs", "/actions/theirs/events"] {
        let answer = ward.get(path, &ward.token).await;
        assert_eq!(answer.failure(), (404, "unknown".into()));
    }

    let mut events = ward.follow("/actions/old/events", &ward.token, None).await;
    let told = events.take(102).await;
    assert_eq!(events.next().await, None);
    assert_eq!(numbers(&told), (1..=102).collect::<Vec<_>>());
    // What is printed cannot pass for an event.
    assert_eq!(told[1].2["data"], "0\n\nid: 7\n");

    // Resumed by either way, and behind the end a browser is told not to come again.
    for (path, last) in [
        ("/actions/old/events", Some(40)),
        ("/actions/old/events?from=40", None),
        ("/actions/old/events?from=3", Some(40)),
    ] {
        let mut events = ward.follow(path, &ward.token, last).await;
        let told = events.take(62).await;
        assert_eq!(numbers(&told), (41..=102).collect::<Vec<_>>());
        assert_eq!(events.next().await, None);
    }
    let answer = ward.get("/actions/old/events?from=102", &ward.token).await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
}

#[tokio::test]
async fn an_action_is_followed_to_its_end() {
    let ward = Ward::start().await;
    let (id, agent) = ward.agent();
    let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 0, "id": "it"});
    assert_eq!(ward.post("/actions", &agent, &body).await.status, 202);
    let mut events = ward.follow("/actions/it/events", &agent, None).await;
    // The same id again is the same action.
    let again = ward.post("/actions", &agent, &body).await;
    assert_eq!(again.json(), json!({"id": "it", "state": "deciding"}));
    let other = json!({"action": "fs.read", "params": {"path": "b"}, "wait": 0, "id": "it"});
    let answer = ward.post("/actions", &agent, &other).await;
    assert_eq!(answer.failure(), (409, "conflict".into()));

    assert_eq!(
        ward.post("/actions/it/cancel", &agent, &json!({}))
            .await
            .status,
        200
    );
    let mut last = Value::Null;
    while let Some((_, kind, data)) = events.next().await {
        last = json!([kind, data["kind"]]);
    }
    assert_eq!(last, json!(["action.ended", "cancelled"]));
    let state = ward.get("/actions/it", &ward.token).await.json();
    assert_eq!(state["state"], "ended");
    assert_eq!(state["outcome"]["kind"], "cancelled");
    let ledger = ward
        .get("/ledger?action=it&kind=outcome", &ward.token)
        .await
        .json();
    assert_eq!(ledger["entries"][0]["actor"], format!("agent:{id}"));
}

#[tokio::test]
async fn an_inbox_is_resumed_without_a_gap_or_a_double_while_it_grows() {
    let ward = Ward::start().await;
    let inbox = format!("inbox/{}", ward.person);
    let event = |number: u64| {
        (
            "permission.resolved",
            json!({"approval_id": number.to_string()}),
        )
    };
    ward.write(&inbox, (1..=50).map(event).collect()).await;

    let write = async {
        for number in 51..=250 {
            ward.write(&inbox, vec![event(number)]).await;
        }
    };
    let read = async {
        let mut last = 0;
        let mut all = Vec::new();
        // Each time a few, then the connection is gone.
        while last < 250 {
            let mut events = ward
                .follow("/approvals/events", &ward.token, Some(last))
                .await;
            assert_eq!(events.next().await.unwrap().1, "hello");
            for (id, _, _) in events
                .take(usize::try_from(250 - last).unwrap().min(23))
                .await
            {
                last = id.unwrap();
                all.push(last);
            }
        }
        all
    };
    let ((), all) = tokio::join!(write, read);
    assert_eq!(all, (1..=250).collect::<Vec<_>>());
}

#[tokio::test]
async fn whoever_knows_nothing_begins_with_now() {
    let ward = Ward::start().await;
    let inbox = format!("inbox/{}", ward.person);
    let event = |text: &str| ("permission.resolved", json!({"approval_id": text}));
    ward.write(&inbox, vec![event("old"), event("older")]).await;
    let mut events = ward.follow("/approvals/events", &ward.token, None).await;
    let (id, kind, hello) = events.next().await.unwrap();
    assert_eq!((id, kind.as_str()), (None, "hello"));
    ward.write(&inbox, vec![event("new")]).await;
    assert_eq!(
        events.next().await.unwrap(),
        (
            Some(3),
            "permission.resolved".into(),
            json!({"approval_id": "new"})
        )
    );

    // It can say where its person is, for as long as it is there, and only it can.
    let client = format!("/clients/{}", hello["client_id"].as_str().unwrap());
    let turned = json!({"front": true, "session": "s"});
    let answer = ward.post(&client, &ward.token, &turned).await;
    assert_eq!((answer.status, answer.json()), (200, turned.clone()));
    let (_, bob) = ward.tokens.add_person("bob").unwrap();
    let answer = ward.post(&client, &bob, &turned).await;
    assert_eq!(answer.failure(), (404, "unknown".into()));
    drop(events);
    while ward.post(&client, &ward.token, &turned).await.status == 200 {}
}

#[tokio::test]
async fn the_ledger_is_followed_and_read_in_pieces() {
    let ward = Ward::start().await;
    let mut events = ward.follow("/ledger/events", &ward.token, None).await;
    let (id, kind, entry) = events.next().await.unwrap();
    assert_eq!(
        (id, kind.as_str(), &entry["kind"]),
        (Some(1), "begun", &json!("begun"))
    );
    let (_, agent) = ward.agent();
    for number in 0..5 {
        let id = format!("a{number}");
        let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 0, "id": id});
        ward.post("/actions", &agent, &body).await;
        ward.post(&format!("/actions/{id}/cancel"), &agent, &json!({}))
            .await;
        assert_eq!(events.next().await.unwrap().2["action_id"], id);
    }
    let page = |query: &'static str| {
        let ward = &ward;
        async move {
            ward.get(&format!("/ledger?{query}"), &ward.token)
                .await
                .json()
        }
    };
    let places = |page: &Value| -> Vec<u64> {
        let entries = page["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| entry["seq"].as_u64().unwrap())
            .collect()
    };
    let whole = page("").await;
    assert_eq!(places(&whole), [1, 2, 3, 4, 5, 6]);
    assert_eq!((&whole["next"], &whole["more"]), (&json!(6), &json!(false)));
    let first = page("limit=4").await;
    assert_eq!(places(&first), [1, 2, 3, 4]);
    assert_eq!((&first["next"], &first["more"]), (&json!(4), &json!(true)));
    assert_eq!(places(&page("after=4").await), [5, 6]);
    assert_eq!(places(&page("last=2").await), [5, 6]);
    assert_eq!(places(&page("action=a2").await), [4]);
    assert_eq!(places(&page("kind=begun").await), [1]);
    let verdict = ward.get("/ledger/verify", &ward.token).await.json();
    assert_eq!(
        (&verdict["ok"], &verdict["entries"]),
        (&json!(true), &json!(6))
    );
    let stream = StreamName::new("ledger").unwrap();
    let kept = ward
        .gate
        .store()
        .read(&stream, Seq::START, 10)
        .await
        .unwrap();
    assert_eq!(kept.len(), 6);
}

#[tokio::test]
async fn what_is_followed_ends_with_ward() {
    let ward = Ward::start().await;
    let mut events = ward.follow("/approvals/events", &ward.token, None).await;
    events.next().await.unwrap();
    let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 3600, "id": "it"});
    let stop = async {
        while ward.get("/actions/it", &ward.token).await.status != 200 {}
        ward.stop.cancel();
    };
    let (answer, ()) = tokio::join!(ward.post("/actions", &ward.token, &body), stop);
    assert_eq!(answer.status, 202);
    assert_eq!(events.next().await, None);
}
