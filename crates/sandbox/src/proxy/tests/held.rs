//! A connection that is held while somebody is asked.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::{oneshot, watch};

use super::super::{Bounds, Judge, Pending, Target, Verdict};
use super::harness::{PATIENCE, TestProxy, Web};

/// A question on its way to a person; the other end is told when it is no longer waited for.
struct Question {
    target: String,
    answer: oneshot::Sender<Verdict>,
}

/// Passes each question on and waits for its answer.
#[derive(Debug)]
struct Person(Mutex<Sender<Question>>);

impl Judge for Person {
    fn judge<'a>(&'a self, target: &'a Target) -> Pending<'a, Verdict> {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            target: target.to_string(),
            answer,
        };
        self.0.lock().unwrap().send(question).unwrap();
        Box::pin(async { answered.await.unwrap_or(Verdict::NotListed) })
    }
}

fn asking() -> (TestProxy, Receiver<Question>) {
    let (ask, questions) = channel();
    let person = Arc::new(Person(Mutex::new(ask)));
    let names: &[(&str, &[&str])] = &[("dev.test", &["127.0.0.1"])];
    let proxy = TestProxy::with(person, names, Bounds::default());
    (proxy, questions)
}

#[test]
fn a_connection_waits_for_its_answer_while_others_go_on() {
    let web = Web::start();
    let (proxy, questions) = asking();
    let mut client = proxy.client();
    let port = web.port;
    write!(client, "GET http://dev.test:{port}/ HTTP/1.1\r\n\r\n").unwrap();
    let by_name = questions.recv_timeout(PATIENCE).unwrap();
    assert_eq!(by_name.target, format!("dev.test:{port}"));

    let mut other = proxy.client();
    other
        .write_all(b"CONNECT other.test:1 HTTP/1.1\r\n\r\n")
        .unwrap();
    let question = questions.recv_timeout(PATIENCE).unwrap();
    let why = "Ada said no".to_owned();
    question.answer.send(Verdict::Denied(why)).unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(
        answer.ends_with("Ward stopped the connection to other.test:1: Ada said no.\n"),
        "{answer}"
    );
    assert!(web.heard_nothing());

    by_name.answer.send(Verdict::Allowed).unwrap();
    let by_address = questions.recv_timeout(PATIENCE).unwrap();
    assert_eq!(by_address.target, format!("127.0.0.1:{port}"));
    assert!(web.heard_nothing());
    by_address.answer.send(Verdict::Allowed).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(proxy.stopped(), ["other.test:1"]);
}

#[test]
fn a_question_is_withdrawn_when_the_client_hangs_up() {
    let (proxy, questions) = asking();
    let mut client = proxy.client();
    client
        .write_all(b"CONNECT dev.test:1 HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut question = questions.recv_timeout(PATIENCE).unwrap();
    drop(client);
    question.answer.closed_within_patience();
}

#[test]
fn dropping_the_handle_withdraws_what_is_asked() {
    let (proxy, questions) = asking();
    let mut client = proxy.client();
    client
        .write_all(b"CONNECT dev.test:1 HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut question = questions.recv_timeout(PATIENCE).unwrap();
    drop(proxy);
    question.answer.closed_within_patience();
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
}

/// Lets everything through until its word is taken back.
#[derive(Debug)]
struct Fickle(watch::Sender<u64>);

impl Judge for Fickle {
    fn judge<'a>(&'a self, _: &'a Target) -> Pending<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Allowed))
    }

    fn reviews(&self) -> u64 {
        *self.0.borrow()
    }

    fn taken_back<'a>(&'a self, reviews: u64, targets: &'a [Target]) -> Pending<'a, ()> {
        let targets: Vec<String> = targets.iter().map(Target::to_string).collect();
        Box::pin(async move {
            let mut counted = self.0.subscribe();
            counted.wait_for(|count| *count != reviews).await.unwrap();
            assert_eq!(targets.len(), 2, "{targets:?}");
        })
    }
}

#[test]
fn a_connection_is_closed_at_both_ends_when_its_leave_is_taken_back() {
    let there = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = there.local_addr().unwrap().port();
    let judge = Arc::new(Fickle(watch::Sender::new(0)));
    // Judged as a name, and as the address that is not public.
    let names: &[(&str, &[&str])] = &[("dev.test", &["127.0.0.1"])];
    let proxy = TestProxy::with(Arc::clone(&judge) as _, names, Bounds::default());
    let mut client = proxy.client();
    write!(client, "CONNECT dev.test:{port} HTTP/1.1\r\n\r\n").unwrap();
    let (mut upstream, _) = there.accept().unwrap();
    upstream.set_read_timeout(Some(PATIENCE)).unwrap();
    let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
    let mut said = vec![0; established.len()];
    client.read_exact(&mut said).unwrap();
    assert_eq!(said, established);
    client.write_all(b"ping").unwrap();
    let mut heard = [0; 4];
    upstream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"ping");

    judge.0.send_replace(1);
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    assert!(matches!(upstream.read(&mut [0]), Ok(0) | Err(_)));
    assert_eq!(proxy.stopped(), [format!("dev.test:{port}")]);
}

trait ClosedWithinPatience {
    fn closed_within_patience(&mut self);
}

impl ClosedWithinPatience for oneshot::Sender<Verdict> {
    fn closed_within_patience(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let closed = async { tokio::time::timeout(PATIENCE, self.closed()).await };
        runtime.block_on(closed).unwrap();
    }
}
