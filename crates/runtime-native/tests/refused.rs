//! The store of a native agent, where Ward refuses what its runtime says.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use notebook::{
    Bundle, Capabilities, ExecutionId, Notebook, NotebookEvent, ResultOutput, RuntimeStarted,
    RuntimeTerminated, SessionId, StreamKind, Terminal, Termination,
};
use runtime_native::{
    AgentOptions, Answer, Ending, Events, Happened, Http, HttpStore, NotebookStore as _, Request,
    RuntimeAgent, echo,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A Ward that takes every event but results.
#[derive(Clone, Default)]
struct Ward(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    taken: Vec<Value>,
    follower: Option<mpsc::UnboundedSender<Happened>>,
    /// What a runtime says is refused: its session is over, and the notebook says so after that.
    over: Option<Termination>,
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer {
        status,
        body: body.to_string().into_bytes(),
    }
}

impl Http for Ward {
    async fn call(&self, request: Request<'_>) -> Result<Answer, String> {
        Ok(match (request.method, request.path.as_str()) {
            ("GET", "/healthz") => answer(200, &json!({"actor": "person:ada"})),
            ("GET", _) => {
                let state = Notebook::default();
                let about = json!({"workspace": "/"});
                answer(200, &json!({"seq": 0, "state": state, "notebook": about}))
            }
            ("POST", "/notebooks/n/runtimes") => self.announce(),
            ("POST", _) if request.runtime.is_some() => self.refuse(),
            ("POST", _) => self.append(&serde_json::from_slice(&request.body).unwrap()),
            (method, path) => panic!("{method} {path}"),
        })
    }

    async fn follow(&self, _: &str) -> Result<Result<Events, Answer>, String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.borrow_mut().follower = Some(sender);
        let events = futures_util::stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await?;
            Some((Ok(event), receiver))
        });
        Ok(Ok(Box::pin(events)))
    }
}

impl Ward {
    fn announce(&self) -> Answer {
        self.tell(&NotebookEvent::RuntimeStarted(RuntimeStarted {
            session_id: SessionId::new("s").unwrap(),
            runtime_id: "r".to_owned(),
            runtime_type: "echo".to_owned(),
            client_id: "ada".to_owned(),
            capabilities: Capabilities::default(),
        }));
        let given = json!({"session_id": "s", "token": "t", "lease_s": 30, "head": 1});
        answer(201, &given)
    }

    /// Says no to a runtime; what the notebook says about it comes later.
    fn refuse(&self) -> Answer {
        if let Some(reason) = self.0.borrow_mut().over.take() {
            let ward = self.clone();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                ward.tell(&NotebookEvent::RuntimeTerminated(RuntimeTerminated {
                    session_id: SessionId::new("s").unwrap(),
                    reason,
                    message: None,
                }));
            });
        }
        answer(403, &json!({"error": "It is over.", "kind": "forbidden"}))
    }

    /// What happens in the notebook by itself.
    fn tell(&self, event: &NotebookEvent) {
        let mut state = self.0.borrow_mut();
        state.taken.push(json!(event));
        let number = state.taken.len() as u64;
        let id = json!({"writer": "ward", "number": number});
        let recorded = json!({"id": id, "event": event, "actor": "person:ada", "at": 1});
        let told = Happened {
            id: Some(number),
            data: recorded.to_string(),
        };
        state.follower.as_ref().unwrap().send(told).unwrap();
    }

    fn append(&self, asked: &Value) -> Answer {
        let entries = asked["entries"].as_array().unwrap();
        if entries
            .iter()
            .any(|one| one["event"]["kind"] == "output.result")
        {
            return answer(413, &json!({"error": "Too deep.", "kind": "too_large"}));
        }
        let mut state = self.0.borrow_mut();
        for entry in entries {
            state.taken.push(entry["event"].clone());
            let recorded =
                json!({"id": entry["id"], "event": entry["event"], "actor": "person:ada", "at": 1});
            let told = Happened {
                id: Some(state.taken.len() as u64),
                data: recorded.to_string(),
            };
            state.follower.as_ref().unwrap().send(told).unwrap();
        }
        answer(200, &json!({"head": state.taken.len(), "appended": 1}))
    }
}

#[tokio::test]
async fn an_output_that_ward_refuses_is_dropped_alone_and_its_runtime_goes_on() {
    let ward = Ward::default();
    let store = HttpStore::open(ward.clone(), "n").await.unwrap();
    let session = SessionId::new("s").unwrap();
    let execution_id = ExecutionId::new("e").unwrap();
    let printed = |text: &str| {
        NotebookEvent::Terminal(Terminal {
            execution_id: execution_id.clone(),
            stream: StreamKind::Stdout,
            text: text.to_owned(),
        })
    };
    let result = NotebookEvent::ResultOutput(ResultOutput {
        execution_id: execution_id.clone(),
        bundle: Bundle::text("what is refused"),
        execution_count: None,
    });
    let said = [printed("a"), result.clone(), printed("b")];
    for event in said {
        runtime_native::NotebookStore::write(&store, &session, event);
    }
    let settled = async {
        while ward.0.borrow().taken.len() < 3 {
            store.changed().await;
        }
    };
    tokio::select! {
        why = store.sync() => panic!("{why}"),
        () = settled => {}
    }
    let kept = [printed("a"), result.instead().unwrap(), printed("b")];
    assert_eq!(ward.0.borrow().taken, kept.map(|event| json!(event)));
    assert_eq!(store.lost(&session), None);
}

/// How an agent ends whose first words are refused.
async fn ended(over: Option<Termination>) -> Ending {
    let ward = Ward::default();
    ward.0.borrow_mut().over = over;
    let store = HttpStore::open(ward, "n").await.unwrap();
    let options = AgentOptions {
        runtime_id: "r".to_owned(),
        runtime_type: "echo".to_owned(),
        client_id: "ada".to_owned(),
        session_id: None,
    };
    let mut agent = RuntimeAgent::new(store.clone(), Capabilities::default(), options).unwrap();
    agent.on_execution(echo);
    let going = async {
        tokio::select! {
            biased;
            why = store.sync() => panic!("{why}"),
            ending = agent.start() => ending.unwrap(),
        }
    };
    tokio::task::LocalSet::new().run_until(going).await
}

#[tokio::test]
async fn an_agent_whose_words_are_refused_ends_for_the_reason_that_the_notebook_gives() {
    let displaced = ended(Some(Termination::Displaced)).await;
    assert_eq!(displaced, Ending::Displaced);
    let late = ended(Some(Termination::Timeout)).await;
    assert_eq!(late, Ending::Terminated(Termination::Timeout));
}

#[tokio::test]
async fn an_agent_whose_words_are_refused_without_a_reason_ends_all_the_same() {
    assert_eq!(ended(None).await, Ending::Lost("It is over.".to_owned()));
}
