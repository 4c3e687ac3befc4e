//! Who is let in, as what, and who is not.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use axum::body::Body;
use serde_json::{Value, json};
use server::auth::Tokens;
use support::{JSON, Ward};

/// Every operation that only persons may use.
const PERSONS: [(&str, &str); 16] = [
    ("POST", "/undo"),
    ("POST", "/login"),
    ("POST", "/logout"),
    ("GET", "/approvals"),
    ("GET", "/approvals/events"),
    ("GET", "/approvals/a"),
    ("POST", "/approvals/a"),
    ("POST", "/clients/client-1"),
    ("GET", "/grants"),
    ("DELETE", "/grants/a"),
    ("GET", "/ledger"),
    ("GET", "/ledger/verify"),
    ("GET", "/ledger/events"),
    ("GET", "/roles"),
    ("GET", "/runtimes"),
    ("GET", "/ledger?last=1"),
];

/// Those that agents may use too.
const ACTORS: [(&str, &str); 5] = [
    ("POST", "/actions"),
    ("GET", "/actions/a"),
    ("GET", "/actions/a/events"),
    ("POST", "/actions/a/cancel"),
    ("GET", "/gate"),
];

#[tokio::test]
async fn without_a_token_there_is_nothing() {
    let ward = Ward::start().await;
    for (method, path) in PERSONS.into_iter().chain(ACTORS) {
        let answer = ward.send(method, path, &[JSON], "{}").await;
        assert_eq!(answer.failure(), (401, "unauthorized".into()), "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_however_it_is_sent() {
    let ward = Ward::start().await;
    let token = ward.token.clone();
    for wrong in [
        "Bearer wrong".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {token}x"),
        format!("Bearer {}", &token[..token.len() - 1]),
        format!("Basic {token}"),
        token.clone(),
        format!("Bearer {}", "x".repeat(5000)),
    ] {
        let headers = [("authorization", &*wrong)];
        let answer = ward.send("GET", "/grants", &headers, Body::empty()).await;
        assert_eq!(answer.failure(), (401, "unauthorized".into()), "{wrong}");
    }
    // Two are none: nobody can say which was meant.
    let right = format!("Bearer {token}");
    let both = [("authorization", &*right), ("authorization", "Bearer x")];
    let answer = ward.send("GET", "/grants", &both, Body::empty()).await;
    assert_eq!(answer.failure(), (401, "unauthorized".into()));
    assert_eq!(ward.get("/grants", &token).await.status, 200);
}

#[tokio::test]
async fn an_agent_is_refused_wherever_only_persons_may() {
    let ward = Ward::start().await;
    let (_, agent) = ward.agent();
    let (_, runtime) = ward.tokens.add_runtime("notebook").unwrap();
    for token in [agent.clone(), runtime.clone()] {
        let bearer = format!("Bearer {token}");
        for (method, path) in PERSONS {
            let headers = [("authorization", &*bearer), JSON];
            let answer = ward.send(method, path, &headers, "{}").await;
            assert_eq!(answer.failure(), (403, "forbidden".into()), "{path}");
        }
    }
    let bearer = format!("Bearer {runtime}");
    for (method, path) in ACTORS {
        let headers = [("authorization", &*bearer), JSON];
        let answer = ward.send(method, path, &headers, "{}").await;
        assert_eq!(answer.failure(), (403, "forbidden".into()), "{path}");
    }
}

#[tokio::test]
async fn an_agent_chooses_neither_its_role_nor_its_mode_nor_its_workspace() {
    let ward = Ward::start().await;
    let (_, agent) = ward.agent();
    for chosen in [
        json!({"role": "backend"}),
        json!({"mode": "full"}),
        json!({"workspace": "/usr"}),
    ] {
        let mut body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 0});
        body.as_object_mut()
            .unwrap()
            .extend(chosen.as_object().unwrap().clone());
        let answer = ward.post("/actions", &agent, &body).await;
        assert_eq!(answer.failure(), (403, "forbidden".into()), "{chosen}");
    }
}

#[tokio::test]
async fn an_action_is_seen_by_its_agent_and_that_agents_person_alone() {
    let ward = Ward::start().await;
    let (_, agent) = ward.agent();
    let (_, other_agent) = ward.agent();
    let (_, stranger) = ward.tokens.add_person("bob").unwrap();
    let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 0, "id": "mine"});
    let answer = ward.post("/actions", &agent, &body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json(), json!({"id": "mine", "state": "deciding"}));
    for token in [&agent, &ward.token] {
        let answer = ward.get("/actions/mine", token).await;
        assert_eq!(answer.json(), json!({"id": "mine", "state": "deciding"}));
    }
    for token in [&other_agent, &stranger] {
        for (method, path) in [
            ("GET", "/actions/mine"),
            ("GET", "/actions/mine/events"),
            ("POST", "/actions/mine/cancel"),
        ] {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", &*bearer), JSON];
            let answer = ward.send(method, path, &headers, "{}").await;
            assert_eq!(answer.failure(), (404, "unknown".into()), "{path}");
        }
        // Nor is the id to be had for something else.
        let answer = ward.post("/actions", token, &body).await;
        assert_eq!(answer.failure(), (409, "conflict".into()));
    }
    let answer = ward.post("/actions/mine/cancel", &agent, &json!({})).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn health_tells_strangers_the_version_alone() {
    let ward = Ward::start().await;
    let bare = json!({"status": "ok", "version": "1.2.3"});
    let stale = [("cookie", "ward=gone")];
    for headers in [&[][..], &stale] {
        let answer = ward.send("GET", "/healthz", headers, Body::empty()).await;
        assert_eq!((answer.status, answer.json()), (200, bare.clone()));
    }
    assert_eq!(
        ward.get("/healthz", "wrong").await.failure(),
        (401, "unauthorized".into())
    );
    let answer = ward.get("/healthz", &ward.token).await;
    assert_eq!(
        answer.json(),
        json!({
            "status": "ok",
            "version": "1.2.3",
            "actor": format!("person:{}", ward.person),
            "address": ward.address.to_string(),
            "workspace": "/home/ada/<script>",
            "sandbox": {
                "tier": "walls",
                "minimum": "walls",
                "layers": [{"name": "landlock", "available": true, "detail": "ABI 5"}],
            },
            "store": {"path": "/home/ada/.local/share/ward/ward.db", "events": 1},
            "open_questions": 0,
        })
    );
}

#[tokio::test]
async fn a_request_for_another_host_is_refused_before_anything_looks_at_it() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    for path in ["/", "/healthz", "/nowhere", "/grants"] {
        for host in ["evil.example", "ward.sock", "localhost.evil.example:3000"] {
            let headers = [("host", host), ("authorization", &*bearer)];
            let answer = ward.send("GET", path, &headers, Body::empty()).await;
            assert_eq!(
                answer.failure(),
                (403, "wrong_host".into()),
                "{path} {host}"
            );
        }
    }
}

#[tokio::test]
async fn another_sites_page_can_change_nothing() {
    let ward = Ward::start().await;
    let bearer = format!("Bearer {}", ward.token);
    let body = json!({"action": "fs.read", "wait": 0}).to_string();
    for from in [
        ("origin", "http://evil.example"),
        ("origin", "http://127.0.0.1:1"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let headers = [("authorization", &*bearer), JSON, from];
        let answer = ward.send("POST", "/actions", &headers, body.clone()).await;
        assert_eq!(answer.failure(), (403, "wrong_origin".into()), "{from:?}");
        // What only reads gets an answer that no other page can read.
        let headers = [("authorization", &*bearer), from];
        let answer = ward.send("GET", "/grants", &headers, Body::empty()).await;
        assert_eq!(answer.status, 200, "{from:?}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
        assert_eq!(
            answer.headers["cross-origin-resource-policy"],
            "same-origin"
        );
    }
}

#[tokio::test]
async fn a_browser_signs_in_by_a_link_that_works_once_and_stays_so_over_a_restart() {
    let ward = Ward::start().await;
    let link = ward.server.login_link().unwrap().unwrap();
    let path = link
        .strip_prefix(&format!("http://{}", ward.address))
        .unwrap();

    // To look at it does not use it up.
    assert_eq!(
        ward.send("HEAD", path, &[], Body::empty()).await.status,
        405
    );
    let answer = ward.send("GET", path, &[], Body::empty()).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/");
    let cookie = answer.headers["set-cookie"].to_str().unwrap().to_owned();
    let (cookie, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(
        attributes,
        "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"
    );
    let again = ward.send("GET", path, &[], Body::empty()).await;
    assert_eq!(again.failure(), (401, "unauthorized".into()));

    let with = |site: &'static str| [("cookie", cookie), ("sec-fetch-site", site)];
    let answer = ward
        .send("GET", "/grants", &with("same-origin"), Body::empty())
        .await;
    assert_eq!(answer.json(), json!({"grants": []}));
    for site in ["cross-site", "same-site"] {
        let answer = ward
            .send("GET", "/grants", &with(site), Body::empty())
            .await;
        assert_eq!(answer.failure(), (403, "wrong_origin".into()));
    }
    // What changes something has to say that Ward's page sent it.
    let silent = [("cookie", cookie), JSON];
    let answer = ward.send("POST", "/logout", &silent, "{}").await;
    assert_eq!(answer.failure(), (403, "wrong_origin".into()));

    // Another process that reads the same file knows it too, and has only its hash.
    let secret = cookie.strip_prefix("ward=").unwrap();
    let config = ward.folder.path().join("config");
    let restarted = Tokens::open(&config).unwrap();
    let own = Some(rustix::process::getuid().as_raw());
    assert!(restarted.recognize(secret, || own).is_some());
    assert!(restarted.recognize(secret, || None).is_none());
    assert!(restarted.recognize(secret, || Some(65533)).is_none());
    let file = std::fs::read_to_string(config.join("tokens.json")).unwrap();
    assert!(!file.contains(secret) && !file.contains(&ward.token));

    let origin = format!("http://{}", ward.address);
    let own = [("cookie", cookie), ("origin", &*origin)];
    let answer = ward.send("POST", "/logout", &own, Body::empty()).await;
    assert_eq!(answer.status, 204);
    let answer = ward
        .send("GET", "/grants", &with("same-origin"), Body::empty())
        .await;
    assert_eq!(answer.failure(), (401, "unauthorized".into()));
}

#[tokio::test]
async fn every_person_can_have_a_link_of_their_own() {
    let ward = Ward::start().await;
    let (_, bob) = ward.tokens.add_person("bob").unwrap();
    let link = ward.post("/login", &bob, &json!({})).await.json();
    let url = link["url"].as_str().unwrap();
    let path = url
        .strip_prefix(&format!("http://{}", ward.address))
        .unwrap();
    let answer = ward.send("GET", path, &[], Body::empty()).await;
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let answer = ward
        .send("GET", "/healthz", &[("cookie", cookie)], Body::empty())
        .await;
    assert_eq!(answer.json()["actor"], "person:bob");
}

#[tokio::test]
async fn a_cookie_that_another_server_set_is_no_obstacle() {
    let ward = Ward::start().await;
    let link = ward.server.login_link().unwrap().unwrap();
    let path = link.split_once("/login").unwrap().1;
    let path = format!("/login{path}");
    let answer = ward.send("GET", &path, &[], Body::empty()).await;
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let both = format!("a=1; ward=evil; {cookie}");
    let answer = ward
        .send("GET", "/grants", &[("cookie", &both)], Body::empty())
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn wrong_guesses_are_held_up_and_right_tokens_never() {
    let ward = Ward::start().await;
    for _ in 0..10 {
        assert_eq!(ward.get("/grants", "wrong").await.status, 401);
    }
    let answer = ward.get("/grants", "wrong").await;
    assert_eq!(answer.failure(), (429, "too_many_attempts".into()));
    let pause: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&pause));
    for guess in [
        ward.send("GET", "/login?code=guess", &[], Body::empty()),
        ward.send("GET", "/grants", &[("cookie", "ward=x")], Body::empty()),
    ] {
        assert_eq!(guess.await.failure(), (429, "too_many_attempts".into()));
    }
    assert_eq!(ward.get("/grants", &ward.token).await.status, 200);
    // Who says nothing guesses nothing.
    let silent = ward.send("GET", "/grants", &[], Body::empty()).await;
    assert_eq!(silent.failure(), (401, "unauthorized".into()));
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_its_streams_end() {
    let ward = Ward::start().await;
    let (id, bob) = ward.tokens.add_person("bob").unwrap();
    let mut events = ward.follow("/approvals/events", &bob, None).await;
    assert_eq!(events.next().await.unwrap().1, "hello");
    let body = json!({"action": "fs.read", "params": {"path": "a"}, "wait": 3600});
    let waiting = ward.post("/actions", &bob, &body);
    let revoke = async {
        // As another process does it.
        let config = ward.folder.path().join("config");
        Tokens::open(&config).unwrap().revoke(&id).unwrap();
        assert_eq!(
            ward.get("/grants", &bob).await.failure(),
            (401, "unauthorized".into())
        );
        assert_eq!(events.next().await, None);
    };
    let (answer, ()) = tokio::join!(waiting, revoke);
    assert_eq!(answer.failure(), (401, "unauthorized".into()));
}

#[tokio::test]
async fn a_person_who_is_no_more_takes_their_agents_and_browsers_along() {
    let ward = Ward::start().await;
    let (id, bob) = ward.tokens.add_person("bob").unwrap();
    let link = ward.post("/login", &bob, &json!({})).await.json();
    let path = link["url"]
        .as_str()
        .unwrap()
        .split_once("/login")
        .unwrap()
        .1;
    let path = format!("/login{path}");
    let answer = ward.send("GET", &path, &[], Body::empty()).await;
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let agent = server::auth::NewAgent {
        name: "a".into(),
        role: "watcher".into(),
        mode: protocol::Mode::Sandbox,
        workspace: ward.folder.path().join("work"),
        person: "bob".into(),
    };
    let (_, agent) = ward.tokens.add_agent(agent).unwrap();
    assert_eq!(ward.get("/actions/x", &agent).await.status, 404);
    ward.tokens.revoke(&id).unwrap();
    assert_eq!(ward.get("/actions/x", &agent).await.status, 401);
    let answer = ward
        .send("GET", "/grants", &[("cookie", &cookie)], Body::empty())
        .await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_token_that_was_chosen_by_hand_is_the_first_persons_and_is_kept_nowhere() {
    let chosen = "a-token-chosen-by-hand";
    let ward = Ward::start_with(|tokens| tokens.accept(chosen).unwrap()).await;
    let health = ward.get("/healthz", chosen).await.json();
    assert_eq!(health["actor"], format!("person:{}", ward.person));
    let config = ward.folder.path().join("config");
    for file in std::fs::read_dir(&config).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(chosen));
    }
    assert!(Tokens::open(&config).unwrap().accept("short").is_err());
    // It can make a link, too.
    assert_eq!(ward.post("/login", chosen, &json!({})).await.status, 200);
}

#[tokio::test]
async fn the_use_of_a_token_is_noted() {
    let ward = Ward::start().await;
    let used = |tokens: &Tokens| tokens.list().unwrap().first().unwrap().last_used;
    assert_eq!(used(&ward.tokens), None);
    ward.get("/grants", &ward.token).await;
    while used(&ward.tokens).is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_answer_keeps_others_from_reading_or_keeping_it() {
    let ward = Ward::start().await;
    for path in ["/", "/healthz", "/nowhere", "/grants", "/openapi.json"] {
        let answer = ward.get(path, &ward.token).await;
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
    }
    let answer: Value = ward.get("/nowhere", &ward.token).await.json();
    assert_eq!(
        answer,
        json!({
            "error": "There is nothing at `/nowhere`. `GET /openapi.json` says what is there.",
            "code": 404,
            "kind": "not_found",
        })
    );
    let answer = ward.post("/healthz", &ward.token, &json!({})).await;
    assert_eq!(answer.headers["allow"], "GET,HEAD");
    assert_eq!(answer.failure(), (405, "method_not_allowed".into()));
}
