//! A Ward that serves, and what asks and answers it over HTTP.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Home;

/// How long anything may take.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A Ward that is ready, on a free port; it is gone after the test.
pub(crate) struct Serving<'a> {
    pub(crate) home: &'a Home,
    pub(crate) ward: Child,
    pub(crate) address: String,
    /// The person's token.
    pub(crate) token: String,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let _ = self.ward.kill();
        let _ = self.ward.wait();
    }
}

impl<'a> Serving<'a> {
    pub(crate) fn start(home: &'a Home) -> Self {
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
    pub(crate) fn agent(&self, role: &str) -> String {
        let output = self
            .home
            .ward()
            .args(["tokens", "add", "--role", role])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Sends a request, and leaves the answer to be read.
    pub(crate) fn send(&self, method: &str, path: &str, token: &str, body: &str) -> TcpStream {
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

    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
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

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, &self.token, &Value::Null);
        assert_eq!(status, 200, "{body}");
        body
    }

    pub(crate) fn act(&self, token: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", "/actions", token, body)
    }

    /// What the person is asked, once it is so many things.
    pub(crate) fn asked(&self, count: usize) -> Vec<Value> {
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

    pub(crate) fn answer(&self, token: &str, approval: &Value, answer: &Value) -> (u16, Value) {
        let mut body = json!({"digest": approval["digest"]});
        body.as_object_mut()
            .unwrap()
            .extend(answer.as_object().unwrap().clone());
        let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
        self.ask("POST", &path, token, &body)
    }

    /// An action, once it has ended.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let begun = Instant::now();
        loop {
            let body = self.get(&format!("/actions/{id}"));
            if body["state"] == "ended" {
                return body["outcome"].clone();
            }
            assert!(begun.elapsed() < LONG, "{body}");
        }
    }

    pub(crate) fn follow(&self, path: &str, token: &str) -> Events {
        let mut lines = BufReader::new(self.send("GET", path, token, ""));
        let mut status = String::new();
        lines.read_line(&mut status).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        Events(lines)
    }
}

/// Events as they come. Each is sent as one piece, so that lines are whole.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event's kind and data; none at the end.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
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
    pub(crate) fn of(&mut self, kind: &str) -> Value {
        loop {
            let (found, data) = self.next().unwrap();
            if found == kind {
                return data;
            }
        }
    }
}

/// A write to a file that is outside the workspace, which asks.
pub(crate) fn outside(home: &Home, name: &str) -> Value {
    let path = home.workspace().parent().unwrap().join(name);
    json!({"action": "fs.write", "params": {"path": path, "content": "written"}})
}

pub(crate) fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}
