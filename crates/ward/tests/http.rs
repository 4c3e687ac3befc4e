//! The gate over HTTP, end to end on the built binary: asked, answered, refused, followed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::Home;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

/// A Ward that is ready, on a free port; it is gone after the test.
struct Serving<'a> {
    home: &'a Home,
    ward: Child,
    address: String,
    /// The person's token.
    token: String,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let _ = self.ward.kill();
        let _ = self.ward.wait();
    }
}

impl<'a> Serving<'a> {
    fn start(home: &'a Home) -> Self {
        let mut ward = home
            .ward()
            .args(["serve", "--addr", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(ward.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("Ward is on http://");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        // It goes on printing; nobody listens.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let token = std::fs::read_to_string(home.config().join("token")).unwrap();
        Self {
            home,
            ward,
            address,
            token: token.trim().to_owned(),
        }
    }

    /// An agent's token, made by the command that makes them.
    fn agent(&self, role: &str) -> String {
        let output = self
            .home
            .ward()
            .args(["tokens", "add", "--role", role])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Sends a request, and leaves the answer to be read.
    fn send(&self, method: &str, path: &str, token: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut answer = String::new();
        self.send(method, path, token, &body)
            .read_to_string(&mut answer)
            .unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, &self.token, &Value::Null);
        assert_eq!(status, 200, "{body}");
        body
    }

    fn act(&self, token: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", "/actions", token, body)
    }

    /// What the person is asked, once it is so many things.
    fn asked(&self, count: usize) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let body = self.get("/approvals");
            let approvals = body["approvals"].as_array().unwrap();
            if approvals.len() == count {
                return approvals.clone();
            }
            assert!(begun.elapsed() < LONG, "{body}");
        }
    }

    fn answer(&self, token: &str, approval: &Value, answer: &Value) -> (u16, Value) {
        let mut body = json!({"digest": approval["digest"]});
        body.as_object_mut()
            .unwrap()
            .extend(answer.as_object().unwrap().clone());
        let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
        self.ask("POST", &path, token, &body)
    }

    /// An action, once it has ended.
    fn ended(&self, id: &str) -> Value {
        let begun = Instant::now();
        loop {
            let body = self.get(&format!("/actions/{id}"));
            if body["state"] == "ended" {
                return body["outcome"].clone();
            }
            assert!(begun.elapsed() < LONG, "{body}");
        }
    }

    fn follow(&self, path: &str, token: &str) -> Events {
        let mut lines = BufReader::new(self.send("GET", path, token, ""));
        let mut status = String::new();
        lines.read_line(&mut status).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        Events(lines)
    }
}

/// Events as they come. Each is sent as one piece, so that lines are whole.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event's kind and data; none at the end.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut kind = None;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(event) = line.strip_prefix("event: ") {
                kind = Some(event.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((kind.unwrap(), serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// The data of the next event of this kind.
    fn of(&mut self, kind: &str) -> Value {
        loop {
            let (found, data) = self.next().unwrap();
            if found == kind {
                return data;
            }
        }
    }
}

/// A write to a file that is outside the workspace, which asks.
fn outside(home: &Home, name: &str) -> Value {
    let path = home.workspace().parent().unwrap().join(name);
    json!({"action": "fs.write", "params": {"path": path, "content": "written"}})
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

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
}
