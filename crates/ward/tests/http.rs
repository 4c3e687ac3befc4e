//! The gate over HTTP, end to end on the built binary: asked, answered, refused, followed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

#[path = "support/serving.rs"]
mod serving;
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};
use serving::{LONG, Serving, outside, with};
use support::Home;

#[test]
fn a_question_is_the_persons_to_answer_and_the_answer_is_for_what_was_shown() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let body = with(outside(&home, "out"), &json!({"wait": 0, "id": "it"}));
    assert_eq!(ward.act(&agent, &body).0, 202);
    let approval = ward.asked(1).remove(0);
    assert_eq!(approval["action"], "fs.write");
    assert_eq!(approval["params"]["content"], "written");
    let id = approval["id"].as_str().unwrap();
    let (status, state) = ward.ask("GET", "/actions/it", &agent, &Value::Null);
    assert_eq!(
        (status, state),
        (
            200,
            json!({"id": "it", "state": "asking", "approval_id": id})
        )
    );

    let allow = json!({"decision": "allow"});
    let (status, refused) = ward.answer(&agent, &approval, &allow);
    assert_eq!((status, &refused["kind"]), (403, &json!("forbidden")));
    let stale = with(allow.clone(), &json!({"digest": "sha256:00"}));
    let (status, refused) = ward.answer(&ward.token, &approval, &stale);
    assert_eq!((status, &refused["kind"]), (409, &json!("changed")));
    let (status, resolved) = ward.answer(&ward.token, &approval, &allow);
    assert_eq!((status, &resolved["resolution"]), (200, &json!("allowed")));
    let (status, late) = ward.answer(&ward.token, &approval, &allow);
    assert_eq!((status, &late["kind"]), (409, &json!("closed")));
    assert_eq!(late["by"], resolved["by"]);

    assert_eq!(ward.ended("it")["status"], "done");
    let written = home.workspace().parent().unwrap().join("out");
    assert_eq!(std::fs::read_to_string(written).unwrap(), "written");
    // Sent again, it is not done again, and nobody is asked.
    let (status, again) = ward.act(&agent, &with(body, &json!({"wait": 60})));
    assert_eq!((status, &again["outcome"]["status"]), (200, &json!("done")));
    ward.asked(0);
}

#[test]
fn what_is_refused_names_what_refused_it() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let watcher = ward.agent("watcher");
    let write = json!({"action": "fs.write", "params": {"path": "a", "content": "x"}, "id": "w"});
    let (status, refused) = ward.act(&watcher, &write);
    assert_eq!((status, &refused["kind"]), (403, &json!("denied")));
    assert_eq!(
        (&refused["code"], &refused["id"]),
        (&json!(403), &json!("w"))
    );
    assert_eq!(refused["rule"]["kind"], "skill");
    assert_eq!(refused["rule"]["text"], "fs.write");

    let agent = ward.agent("backend");
    let body = outside(&home, "out");
    let (status, refused) = ward.act(&agent, &with(body.clone(), &json!({"ask": "deny"})));
    assert_eq!((status, &refused["kind"]), (403, &json!("denied")));

    // By a person, while the agent waits.
    let body = with(body, &json!({"id": "asked"})).to_string();
    let mut waiting = ward.send("POST", "/actions", &agent, &body);
    let approval = ward.asked(1).remove(0);
    let deny = json!({"decision": "deny", "reason": "use the test database"});
    assert_eq!(ward.answer(&ward.token, &approval, &deny).0, 200);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let refused: Value = serde_json::from_str(body).unwrap();
    assert_eq!(refused["kind"], "denied");
    assert_eq!(refused["reason"], "use the test database");
    assert!(!home.workspace().parent().unwrap().join("out").exists());
}

#[test]
fn what_is_protected_is_denied_by_its_rule_as_explain_says() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let write =
        |path: &str| json!({"action": "fs.write", "params": {"path": path, "content": "x"}});
    let token = home.config().join("token");
    let kept = home.data().join("ward.db");
    for (id, body, rule) in [
        ("a", write("ward.toml"), "ward.toml"),
        ("b", write(".ward/roles/x.md"), ".ward"),
        (
            "c",
            json!({"action": "fs.read", "params": {"path": token}}),
            home.config().to_str().unwrap(),
        ),
        (
            "d",
            write(kept.to_str().unwrap()),
            home.data().to_str().unwrap(),
        ),
    ] {
        let (status, refused) = ward.act(&agent, &with(body, &json!({"id": id})));
        let told = (status, &refused["kind"], &refused["rule"]["text"]);
        assert_eq!(told, (403, &json!("denied"), &json!(rule)), "{refused}");
        assert_eq!(refused["rule"]["kind"], "protected");
        let entries = ward.get("/ledger?limit=1000")["entries"].clone();
        let mut of_it = entries.as_array().unwrap().iter();
        let decision = of_it.find(|entry| entry["action_id"] == id && entry["kind"] == "decision");
        let decision = &decision.unwrap()["data"];
        assert_eq!(decision["verdict"], "deny");
        assert_eq!(decision["rule"], refused["rule"]);
    }
    ward.asked(0);
    assert!(!home.workspace().join("ward.toml").exists());
}

#[test]
fn hanging_up_cancels_nothing_and_cancelling_does() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let run = |id: &str, command: &str| {
        json!({"action": "terminal.run", "params": {"command": command}, "role": "backend", "id": id})
            .to_string()
    };
    let wait_for = |path: &str| {
        let begun = Instant::now();
        while !home.workspace().join(path).exists() {
            assert!(begun.elapsed() < LONG, "{path}");
        }
    };
    let gone = "touch began; while ! [ -e go ]; do sleep 0.01; done; touch went-on";
    let hung_up = ward.send("POST", "/actions", &ward.token, &run("gone", gone));
    wait_for("began");
    drop(hung_up);
    std::fs::write(home.workspace().join("go"), "").unwrap();
    assert_eq!(ward.ended("gone")["result"]["exit_code"], 0);
    wait_for("went-on");

    let forever = "touch forever; while :; do sleep 0.1; done";
    let _waiting = ward.send("POST", "/actions", &ward.token, &run("forever", forever));
    wait_for("forever");
    let cancel = "/actions/forever/cancel";
    assert_eq!(ward.ask("POST", cancel, &ward.token, &Value::Null).0, 200);
    assert_eq!(ward.ended("forever")["kind"], "cancelled");
}

#[test]
fn an_actions_events_go_on_until_its_terminal_has_ended() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let command = "echo one; while ! [ -e go ]; do sleep 0.01; done; echo two";
    let body = json!({
        "action": "terminal.run", "role": "backend", "id": "back",
        "params": {"command": command, "background": true},
    });
    assert_eq!(ward.act(&ward.token, &body).0, 200);
    let mut events = ward.follow("/actions/back/events", &ward.token);
    assert_eq!(events.of("action.ended")["status"], "done");
    std::fs::write(home.workspace().join("go"), "").unwrap();
    assert_eq!(events.of("terminal.exited")["exit_code"], 0);
    assert_eq!(events.next(), None);

    let mut all = ward.follow("/actions/back/events?from=0", &ward.token);
    let mut printed = String::new();
    while let Some((kind, data)) = all.next() {
        if kind == "action.output" {
            printed.push_str(data["data"].as_str().unwrap());
        }
    }
    assert_eq!(printed, "one\ntwo\n");
}

#[test]
fn the_client_in_front_is_asked_first_and_the_next_when_it_goes() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let mut back = ward.follow("/approvals/events", &ward.token);
    let back_id = back.of("hello")["client_id"].clone();
    let mut front = ward.follow("/approvals/events?front=true", &ward.token);
    let front_id = front.of("hello")["client_id"].clone();

    let agent = ward.agent("backend");
    let body = with(outside(&home, "out"), &json!({"wait": 0}));
    assert_eq!(ward.act(&agent, &body).0, 202);
    for client in [&mut back, &mut front] {
        let asked = client.of("permission.requested");
        let routed = client.of("permission.routed");
        assert_eq!(routed, json!({"approval_id": asked["id"], "to": front_id}));
        // As soon as it is told it can be looked at.
        let path = format!("/approvals/{}", asked["id"].as_str().unwrap());
        assert_eq!(ward.get(&path)["to"], front_id);
    }
    drop(front);
    assert_eq!(back.of("permission.routed")["to"], back_id);

    // Who attaches later has it too, and becomes the first by turning to it.
    let mut late = ward.follow("/approvals/events", &ward.token);
    let late_id = late.of("hello")["client_id"].clone();
    let asked = late.of("permission.requested");
    let path = format!("/clients/{}", late_id.as_str().unwrap());
    assert_eq!(
        ward.ask("POST", &path, &ward.token, &json!({"front": true}))
            .0,
        200
    );
    while back.of("permission.routed")["to"] != late_id {}
    let deny = json!({"decision": "deny"});
    assert_eq!(ward.answer(&ward.token, &asked, &deny).0, 200);
    for client in [&mut back, &mut late] {
        assert_eq!(client.of("permission.resolved")["approval_id"], asked["id"]);
    }
}

#[test]
fn a_browser_signs_in_by_a_link_that_a_command_prints() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let output = home.ward().args(["tokens", "link"]).output().unwrap();
    let link = String::from_utf8(output.stdout).unwrap();
    let path = link
        .trim()
        .strip_prefix(&format!("http://{}", ward.address));
    let enter = || {
        let mut stream = TcpStream::connect(&ward.address).unwrap();
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            path.unwrap(),
            ward.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let first = enter();
    assert!(first.starts_with("HTTP/1.1 303 "), "{first}");
    assert!(first.contains("set-cookie: ward="), "{first}");
    assert!(enter().starts_with("HTTP/1.1 401 "));
}

#[test]
fn a_wider_answer_is_a_grant_that_can_be_taken_back() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let body = with(outside(&home, "out"), &json!({"wait": 0}));
    ward.act(&agent, &body);
    let approval = ward.asked(1).remove(0);
    let allow = json!({"decision": "allow", "scope": "workspace"});
    let (status, resolved) = ward.answer(&ward.token, &approval, &allow);
    assert_eq!(status, 200, "{resolved}");
    let grant = ward.get("/grants")["grants"][0].clone();
    assert_eq!(grant["pattern"], resolved["grants"][0]);

    let (status, done) = ward.act(&agent, &with(body.clone(), &json!({"wait": 60})));
    assert_eq!((status, &done["outcome"]["status"]), (200, &json!("done")));
    let path = format!("/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(
        ward.ask("DELETE", &path, &ward.token, &Value::Null),
        (200, grant)
    );
    assert_eq!(ward.get("/grants"), json!({"grants": []}));
    ward.act(&agent, &body);
    ward.asked(1);
    let kinds: Vec<Value> = ward.get("/ledger?limit=1000")["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["kind"].clone())
        .collect();
    assert!(kinds.contains(&json!("grant")) && kinds.contains(&json!("revoked")));
    assert_eq!(ward.get("/ledger/verify")["ok"], true);
}

/// A command that goes on writing to a file outside, which exists.
fn keeps_writing(file: &std::path::Path, more: &Value) -> Value {
    let line = format!(
        "echo x >> {0} || exit 1; while sleep 0.02; do echo x >> {0}; done",
        file.display()
    );
    let params = with(json!({"command": line}), more);
    json!({"action": "terminal.run", "params": params, "wait": 0})
}

/// Waits until a file has grown; then, whether it still does, is for the test to find out.
fn size_once_it_grows(file: &std::path::Path) -> u64 {
    let size = || file.metadata().unwrap().len();
    let (begun, before) = (Instant::now(), size());
    while size() <= before {
        assert!(begun.elapsed() < LONG);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    size()
}

fn grows(file: &std::path::Path) -> bool {
    let size = || file.metadata().unwrap().len();
    let before = size();
    std::thread::sleep(std::time::Duration::from_millis(500));
    size() > before
}

#[test]
fn a_command_ends_when_the_grant_that_widens_its_wall_is_revoked() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().canonicalize().unwrap().join("file");
    std::fs::write(&file, "").unwrap();
    // What has its leave from elsewhere goes on.
    let other = json!({"command": "until [ -e stop ]; do sleep 0.02; done"});
    let other = json!({"action": "terminal.run", "params": other, "wait": 0, "id": "other"});
    ward.act(&agent, &other);
    let run = with(keeps_writing(&file, &json!({})), &json!({"id": "run"}));
    assert_eq!(ward.act(&agent, &run).0, 202);
    let approval = ward.asked(1).remove(0);
    let allow = json!({"decision": "allow", "scope": "workspace"});
    assert_eq!(ward.answer(&ward.token, &approval, &allow).0, 200);
    size_once_it_grows(&file);
    let behind = keeps_writing(&file, &json!({"background": true}));
    let behind = with(behind, &json!({"id": "behind", "wait": 60}));
    assert_eq!(ward.act(&agent, &behind).0, 200);

    let grant = ward.get("/grants")["grants"][0]["id"].clone();
    let path = format!("/grants/{}", grant.as_str().unwrap());
    assert_eq!(ward.ask("DELETE", &path, &ward.token, &Value::Null).0, 200);
    let ended = ward.ended("run");
    assert_eq!(ended["kind"], "denied", "{ended}");
    let told = "The grant that this ran under was revoked or has expired, so it was ended. What it had done by then is done.";
    assert_eq!(ended["error"], told, "{ended}");
    assert!(!grows(&file));
    std::fs::write(home.workspace().join("stop"), "").unwrap();
    assert_eq!(ward.ended("other")["status"], "done");
}

#[test]
fn a_command_that_a_grant_let_run_ends_when_the_grant_is_revoked() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let file = home.workspace().join("file");
    std::fs::write(&file, "").unwrap();
    let run = keeps_writing(&file, &json!({}));
    let run = with(
        run,
        &json!({"id": "run", "mode": "full", "role": "backend"}),
    );
    assert_eq!(ward.act(&ward.token, &run).0, 202);
    let approval = ward.asked(1).remove(0);
    let pattern = approval["questions"][0]["pattern"].as_str().unwrap();
    assert!(pattern.starts_with("terminal.run("), "{pattern}");
    let allow = json!({"decision": "allow", "scope": "workspace"});
    assert_eq!(ward.answer(&ward.token, &approval, &allow).0, 200);
    size_once_it_grows(&file);
    let grant = ward.get("/grants")["grants"][0]["id"].clone();
    let path = format!("/grants/{}", grant.as_str().unwrap());
    assert_eq!(ward.ask("DELETE", &path, &ward.token, &Value::Null).0, 200);
    assert_eq!(ward.ended("run")["kind"], "denied");
    assert!(!grows(&file));
}

#[test]
fn a_command_that_would_make_a_file_asks_for_its_folder_and_names_the_file() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().canonicalize().unwrap();
    let file = folder.join("new");
    let run = json!({"command": format!("echo x > {}", file.display())});
    ward.act(
        &agent,
        &json!({"action": "terminal.run", "params": {"argv": ["sh", "-c", run["command"]]}, "wait": 0}),
    );
    let approval = ward.asked(1).remove(0);
    assert_eq!(
        approval["subject"],
        json!({
            "about": "again",
            "widen": [{"path": folder, "access": "write"}],
            "wanted": [file],
        })
    );
    let listed = home.ward().arg("approvals").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let told = format!(
        "run again, and write {}, to make {}",
        folder.display(),
        file.display()
    );
    assert!(listed.contains(&told), "{listed}");
}

#[test]
fn what_the_command_line_says_is_advice_for_the_command_line() {
    let home = Home::new();
    let _ward = Serving::start(&home);
    let said = |arguments: &[&str]| {
        let output = home.ward().args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        said(&["approvals", "allow", "zz"]),
        "ward: There is no approval `zz` that is yours. `ward approvals` lists those that are open.\n"
    );
    let tail = said(&["ledger", "tail", "-n", "0"]);
    assert!(tail.contains("0 is not in 1..=1000"), "{tail}");
    let add = said(&["tokens", "add"]);
    assert!(add.contains("--role <ROLE>|--person <NAME>"), "{add}");
}

#[test]
fn a_command_ends_when_the_grant_that_widens_its_wall_expires() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().canonicalize().unwrap().join("file");
    std::fs::write(&file, "").unwrap();
    let run = with(keeps_writing(&file, &json!({})), &json!({"id": "run"}));
    ward.act(&agent, &run);
    let approval = ward.asked(1).remove(0);
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let soon = u64::try_from(now.as_millis()).unwrap() + 4_000;
    let allow = json!({"decision": "allow", "scope": "workspace", "expires_at": soon});
    assert_eq!(ward.answer(&ward.token, &approval, &allow).0, 200);
    size_once_it_grows(&file);
    assert_eq!(ward.ended("run")["kind"], "denied");
    assert!(!grows(&file));
}

#[test]
fn an_answer_for_a_session_says_what_to_do_where_there_is_none() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    ward.act(&agent, &with(outside(&home, "out"), &json!({"wait": 0})));
    let approval = ward.asked(1).remove(0);
    let allow = |scope: &str| {
        let id = approval["id"].as_str().unwrap();
        let arguments = ["approvals", "allow", id, "--scope", scope];
        let output = home.ward().args(arguments).output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), out, err)
    };
    let told = "ward: This action belongs to no session, so a yes cannot hold for one. Leave out --scope to allow it once, or allow it from now on with `--scope workspace`; an action is of a session where its request names one.\n";
    assert_eq!(allow("session"), (Some(1), String::new(), told.to_owned()));
    let pattern = approval["questions"][0]["pattern"].as_str().unwrap();
    assert_eq!(
        allow("workspace"),
        (
            Some(0),
            format!("allowed.\n  granted  {pattern}\n"),
            String::new()
        )
    );
}

#[test]
fn a_token_that_is_revoked_by_command_is_refused_and_its_events_end() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let body = with(outside(&home, "out"), &json!({"wait": 0, "id": "it"}));
    assert_eq!(ward.act(&agent, &body).0, 202);
    let mut events = ward.follow("/actions/it/events", &agent);
    events.of("permission.requested");
    let listed = home
        .ward()
        .args(["tokens", "list", "--json"])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["kind"] == "agent")
        .unwrap()["id"]
        .clone();
    let revoked = home
        .ward()
        .args(["tokens", "revoke", id.as_str().unwrap()])
        .status()
        .unwrap();
    assert!(revoked.success());
    let (status, refused) = ward.ask("GET", "/actions/it", &agent, &Value::Null);
    assert_eq!((status, &refused["kind"]), (401, &json!("unauthorized")));
    while events.next().is_some() {}
    // Nobody is left who could do anything with an answer.
    ward.asked(0);
    let outcome = ward.ended("it");
    assert_eq!(outcome["kind"], "forbidden", "{outcome}");
    let entries = ward.get("/ledger?limit=1000")["entries"].clone();
    let closed = entries.as_array().unwrap().iter();
    let closed = closed
        .rev()
        .find(|entry| entry["kind"] == "answer")
        .unwrap();
    assert_eq!(closed["data"]["resolution"], "withdrawn");
    assert_eq!(closed["data"]["reason"], outcome["error"]);
}

#[test]
fn a_secret_that_a_request_sets_for_its_command_is_in_no_event() {
    let home = Home::new();
    let ward = Serving::start(&home);
    let agent = ward.agent("backend");
    let body = json!({
        "id": "it", "action": "terminal.run",
        "params": {"command": "echo it is $MY_SECRET, $PLAIN", "env": {"MY_SECRET": "tulips-at-noon", "PLAIN": "in the open"}},
    });
    let (status, done) = ward.act(&agent, &body);
    assert_eq!(status, 200, "{done}");
    assert_eq!(
        done["outcome"]["result"]["stdout"],
        "it is tulips-at-noon, in the open\n"
    );
    let mut events = ward.follow("/actions/it/events", &agent);
    let told = std::iter::from_fn(|| events.next()).map(|(_, data)| data);
    let told: Vec<String> = told.map(|data| data.to_string()).collect();
    let told = told.join("\n");
    assert!(told.contains("it is [redacted], in the open"), "{told}");
    assert!(!told.contains("tulips"), "{told}");
    let ledger = ward.get("/ledger?limit=1000").to_string();
    assert!(!ledger.contains("tulips"), "{ledger}");
}
