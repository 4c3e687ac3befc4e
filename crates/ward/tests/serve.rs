//! `ward serve` as it is used: it answers, it keeps a record, it has one owner, it ends when asked.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use support::Home;

/// A Ward that is ready, on a free port; it is gone after the test.
struct Serving {
    ward: Child,
    address: String,
    token: String,
}

impl Serving {
    #[track_caller]
    fn start(home: &Home) -> Self {
        Self::started(home.ward().args(["serve", "--addr", "127.0.0.1:0"]), home)
    }

    #[track_caller]
    fn started(command: &mut Command, home: &Home) -> Self {
        let mut ward = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(ward.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("Ward is on http://");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        let token = std::fs::read_to_string(home.config().join("token")).unwrap();
        let token = token.trim().to_owned();
        Self {
            ward,
            address,
            token,
        }
    }

    /// What is answered to a request, head and body.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn health(&self) -> Value {
        let answer = self.ask("GET /healthz");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    fn end(mut self, signal: &str) -> ExitStatus {
        let pid = self.ward.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        self.ward.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.ward.kill();
        let _ = self.ward.wait();
    }
}

#[test]
fn it_answers_and_ends_when_asked_and_keeps_a_record_of_both() {
    let home = Home::new();
    let first = Serving::start(&home);
    let health = first.health();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["workspace"], home.workspace().to_str().unwrap());
    // The record began, and Ward did.
    assert_eq!(health["store"]["events"], 2);
    assert!(first.ask("GET /").contains("ward exec -- npm test"));
    assert!(first.ask("GET /nowhere").starts_with("HTTP/1.1 404 "));
    assert_eq!(first.end("-TERM").code(), Some(0));

    let second = Serving::start(&home);
    assert_eq!(second.health()["store"]["events"], 4);
    assert_eq!(second.end("-INT").code(), Some(0));
}

#[test]
fn it_ends_with_its_standard_input_where_it_was_told_to() {
    let home = Home::new();
    let mut command = home.ward();
    command.args(["serve", "--addr", "127.0.0.1:0", "--until-stdin-ends"]);
    let mut serving = Serving::started(command.stdin(Stdio::piped()), &home);
    let mut input = serving.ward.stdin.take().unwrap();
    input.write_all(b"a word that means nothing\n").unwrap();
    assert_eq!(serving.health()["status"], "ok");
    drop(input);
    assert_eq!(serving.ward.wait().unwrap().code(), Some(0));
}

#[test]
fn what_was_recorded_survives_being_killed() {
    let home = Home::new();
    Serving::start(&home).end("-KILL");
    let second = Serving::start(&home);
    assert_eq!(second.health()["store"]["events"], 3);
}

#[test]
fn a_client_that_never_finishes_does_not_keep_it_from_ending() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let mut stuck = TcpStream::connect(&serving.address).unwrap();
    stuck.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    // The answer to a later request shows that the stuck one was taken.
    serving.health();
    assert_eq!(serving.end("-TERM").code(), Some(0));
}

#[test]
fn a_second_one_on_the_same_folder_is_told_who_owns_it() {
    let home = Home::new();
    let first = Serving::start(&home);
    let pid = first.ward.id().to_string();
    insta::assert_snapshot!(
        "second_owner",
        home.transcript(&["serve", "--addr", "127.0.0.1:0"])
            .replace(&pid, "[PID]")
    );
}

#[test]
fn what_cannot_be_served_is_refused_with_a_sentence() {
    let home = Home::new();
    let snapshot = |name: &str, arguments: &[&str]| {
        insta::assert_snapshot!(name, home.transcript(arguments));
    };
    snapshot("serve_remote", &["serve", "--addr", "0.0.0.0:3000"]);
    snapshot("serve_bad_address", &["serve", "--addr", "3000"]);
    snapshot("serve_bad_data", &["serve", "--data", "/proc/ward"]);

    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("ward.lock"), "").unwrap();
    std::fs::write(home.data().join("ward.db"), "not a database at all").unwrap();
    snapshot(
        "serve_foreign_database",
        &["serve", "--addr", "127.0.0.1:0"],
    );
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let transcript = Home::new().transcript(&["serve", "--addr", &address]);
    insta::assert_snapshot!(
        "serve_address_in_use",
        transcript.replace(&address, "[ADDRESS]")
    );
}
