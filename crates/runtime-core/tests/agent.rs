//! An agent on a store in memory, where time stands still: what its handler says is in the notebook.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set itself up has failed"
)]

use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use notebook::{
    ArtifactRef, Bundle, CellCreated, CellId, CellType, ExecutionAssigned, ExecutionCancel,
    ExecutionId, ExecutionRequested, ExecutionState, Media, Notebook, NotebookEvent, Output,
    RuntimeRestart, RuntimeStarted, SessionId, SessionState, Termination, ipynb,
};
use runtime_core::{
    AgentOptions, Announced, Announcement, Capabilities, Ending, ExecutionContext, Finished, Lost,
    NotebookStore, Question, RuntimeAgent, Unanswered, echo,
};
use store::replica::{Base, Entry, EventId, Fold as _};

#[derive(Clone, Default)]
struct Memory(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    base: Base<Notebook>,
    log: Vec<NotebookEvent>,
    written: u64,
    changes: u64,
    uploads: Vec<(String, Vec<u8>)>,
    full: bool,
    refuses_renewal: bool,
}

impl Memory {
    fn say(&self, event: NotebookEvent) -> EventId {
        let mut state = self.0.borrow_mut();
        state.written += 1;
        let id = EventId {
            writer: "one".into(),
            number: state.written,
        };
        state
            .base
            .state
            .apply(&Entry::pending(id.clone(), event.clone()));
        state.base.seq = state.base.seq.next();
        state.log.push(event);
        state.changes += 1;
        id
    }

    /// A cell that is assigned to the session that will be there.
    fn assigned(&self, id: &str, source: &str) {
        let (cell_id, execution_id) = (CellId::new(id).unwrap(), execution(id));
        let place = self.0.borrow().base.state.place_last();
        self.say(NotebookEvent::CellCreated(CellCreated {
            cell_id: cell_id.clone(),
            cell_type: CellType::Code,
            place,
            source: source.into(),
            metadata: serde_json::Map::new(),
            extra: serde_json::Map::new(),
        }));
        self.say(NotebookEvent::ExecutionRequested(ExecutionRequested {
            execution_id: execution_id.clone(),
            cell_id,
            runtime_type: None,
            role: None,
        }));
        self.say(NotebookEvent::ExecutionAssigned(ExecutionAssigned {
            execution_id,
            session_id: session(),
        }));
    }

    fn state(&self, id: &str) -> ExecutionState {
        let state = self.0.borrow();
        state.base.state.execution(&execution(id)).unwrap().state
    }

    fn outputs(&self, id: &str) -> Vec<Output> {
        let cell = CellId::new(id).unwrap();
        self.0
            .borrow()
            .base
            .state
            .cell(&cell)
            .unwrap()
            .outputs
            .clone()
    }

    fn events(&self, kind: &str) -> usize {
        let state = self.0.borrow();
        state
            .log
            .iter()
            .filter(|event| event.kind() == kind)
            .count()
    }
}

fn execution(id: &str) -> ExecutionId {
    ExecutionId::new(format!("run-{id}")).unwrap()
}

fn session() -> SessionId {
    SessionId::new("s1").unwrap()
}

impl NotebookStore for Memory {
    fn user(&self) -> String {
        "ada".into()
    }

    fn look<T>(&self, look: impl FnOnce(&Base<Notebook>) -> T) -> T {
        let base = self.0.borrow().base.clone();
        look(&base)
    }

    fn write(&self, _: &SessionId, event: NotebookEvent) -> EventId {
        self.say(event)
    }

    fn changed(&self) -> impl Future<Output = ()> {
        let seen = self.0.borrow().changes;
        poll_fn(move |_| match self.0.borrow().changes > seen {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
    }

    fn lost(&self, _: &SessionId) -> Option<Lost> {
        None
    }

    async fn announce(&self, asked: &Announcement) -> Result<Announced, Unanswered> {
        self.say(NotebookEvent::RuntimeStarted(RuntimeStarted {
            session_id: session(),
            runtime_id: asked.runtime_id.clone(),
            runtime_type: asked.runtime_type.clone(),
            client_id: asked.client_id.clone(),
            capabilities: asked.capabilities.clone(),
        }));
        Ok(Announced {
            session_id: session(),
            head: self.0.borrow().base.seq,
            lease: Duration::from_secs(30),
        })
    }

    async fn renew(&self, _: &SessionId) -> Result<Duration, Unanswered> {
        Err(Unanswered::Refused("The session is over.".into()))
    }

    async fn sleep(&self, time: Duration) {
        if time > Duration::from_secs(1) && self.0.borrow().refuses_renewal {
            return;
        }
        pending::<()>().await;
    }

    async fn upload(
        &self,
        _: &SessionId,
        media: &str,
        bytes: Vec<u8>,
    ) -> Result<ArtifactRef, Unanswered> {
        if self.0.borrow().full {
            return Err(Unanswered::Refused("It is full.".into()));
        }
        let size = bytes.len() as u64;
        self.0.borrow_mut().uploads.push((media.to_owned(), bytes));
        Ok(ArtifactRef {
            digest: format!("sha256:{}", "0".repeat(64)),
            size,
            media_type: media.to_owned(),
            name: None,
        })
    }

    async fn ask(&self, _: &SessionId, _: &ExecutionId, question: Question) -> Option<String> {
        (!question.password).then(|| format!("answer to {}", question.prompt))
    }
}

fn agent(store: &Memory) -> RuntimeAgent<Memory> {
    let options = AgentOptions {
        runtime_id: "test".into(),
        runtime_type: "echo".into(),
        client_id: "ada".into(),
        session_id: None,
    };
    let capabilities = Capabilities {
        can_execute_code: true,
        ..Capabilities::default()
    };
    RuntimeAgent::new(store.clone(), capabilities, options).unwrap()
}

/// Drives an agent until nothing more happens; its end, where it came to one.
fn settle<T, F: Future<Output = T> + ?Sized>(going: &mut Pin<Box<F>>) -> Option<T> {
    for _ in 0..100 {
        let polled = going.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(end) = polled {
            return Some(end);
        }
    }
    None
}

fn run<F: Future<Output = Finished> + 'static>(
    store: &Memory,
    handler: impl Fn(ExecutionContext) -> F + 'static,
) {
    let mut agent = agent(store);
    agent.on_execution(handler);
    assert!(settle(&mut Box::pin(agent.start())).is_none());
}

#[test]
fn the_echo_agent_answers_what_the_cell_says() {
    let store = Memory::default();
    store.assigned("a", "1+1");
    run(&store, echo);
    assert_eq!(store.state("a"), ExecutionState::Completed);
    let expected = Output::Result {
        bundle: Bundle::text("Echo: 1+1"),
        execution_count: None,
    };
    assert_eq!(store.outputs("a"), [expected]);
    let state = store.0.borrow();
    let session = state.base.state.session(&session()).unwrap();
    assert_eq!(session.state, SessionState::Ready);
}

#[test]
fn a_client_id_that_is_somebody_elses_makes_no_agent() {
    let options = AgentOptions {
        runtime_id: "test".into(),
        runtime_type: "echo".into(),
        client_id: "eve".into(),
        session_id: None,
    };
    let made = RuntimeAgent::new(Memory::default(), Capabilities::default(), options);
    assert_eq!(made.err().unwrap().kind(), "forbidden");
}

#[test]
fn a_thousand_prints_are_one_event() {
    let store = Memory::default();
    store.assigned("a", "");
    run(&store, |context| async move {
        for number in 0..1000 {
            context.stdout(&format!("{number}\n"));
        }
        Finished::Ok
    });
    assert_eq!(store.events("output.terminal"), 1);
    assert!(
        matches!(&store.outputs("a")[..], [Output::Terminal { text, .. }] if text.ends_with("999\n"))
    );
}

#[test]
fn what_is_large_is_kept_beside_the_notebook_and_said_to_be_dropped_where_it_cannot_be() {
    for full in [false, true] {
        let store = Memory::default();
        store.0.borrow_mut().full = full;
        store.assigned("a", "");
        run(&store, |context| async move {
            let mut bundle = Bundle::text("small");
            let large = Media::Inline("x".repeat(1 << 20).into());
            bundle.data.insert("text/html".into(), large);
            context.display(bundle, None).unwrap();
            Finished::Ok
        });
        let outputs = store.outputs("a");
        let Output::Display { bundle, .. } = &outputs[0] else {
            panic!("{outputs:?}");
        };
        assert!(bundle.data.contains_key("text/plain"));
        let kept = matches!(bundle.data.get("text/html"), Some(Media::Artifact(_)));
        assert_eq!(kept, !full);
        let dropped = outputs.contains(&Output::Dropped { bytes: 1 << 20 });
        assert_eq!(dropped, full, "{outputs:?}");
    }
}

#[test]
fn large_json_is_kept_as_json_with_all_digits() {
    let written = format!("[{}9]", "12345678901234567890123,".repeat(1 << 16));
    let store = Memory::default();
    store.assigned("a", "");
    let json = ipynb::parse_value(&written).unwrap();
    run(&store, move |context| {
        let data = [("application/json".to_owned(), Media::Inline(json.clone()))];
        async move {
            let bundle = Bundle {
                data: data.into(),
                ..Bundle::default()
            };
            context.display(bundle, None).unwrap();
            Finished::Ok
        }
    });
    let (media, bytes) = store.0.borrow_mut().uploads.remove(0);
    assert_eq!(media, "application/json");
    assert!(bytes == written.into_bytes());
}

#[test]
fn a_cell_is_told_to_stop_and_is_cancelled_and_the_next_one_runs() {
    let store = Memory::default();
    store.assigned("a", "");
    store.assigned("b", "");
    let mut agent = agent(&store);
    agent.on_execution(|context| async move {
        if context.cell().cell_id.as_str() == "a" {
            context.cancelled().await;
            return Finished::failed("KeyboardInterrupt");
        }
        Finished::Ok
    });
    let mut going = Box::pin(agent.start());
    assert!(settle(&mut going).is_none());
    assert_eq!(store.state("a"), ExecutionState::Running);
    assert_eq!(store.state("b"), ExecutionState::Assigned);
    store.say(NotebookEvent::ExecutionCancel(ExecutionCancel {
        execution_id: execution("a"),
    }));
    assert!(settle(&mut going).is_none());
    assert_eq!(store.state("a"), ExecutionState::Cancelled);
    assert_eq!(store.state("b"), ExecutionState::Completed);
}

#[test]
fn a_runtime_that_is_to_begin_anew_stops_its_cell_first_and_runs_the_next_one_after() {
    let store = Memory::default();
    store.assigned("a", "");
    store.assigned("b", "");
    let begun: Rc<RefCell<Vec<&str>>> = Rc::default();
    let mut agent = agent(&store);
    let said = Rc::clone(&begun);
    agent.on_execution(move |context| {
        let said = Rc::clone(&said);
        async move {
            if context.cell().cell_id.as_str() == "a" {
                context.cancelled().await;
                said.borrow_mut().push("a was stopped");
                return Finished::Ok;
            }
            said.borrow_mut().push("b ran");
            Finished::Ok
        }
    });
    let said = Rc::clone(&begun);
    agent.on_restart(move || {
        said.borrow_mut().push("anew");
        async { Err("The kernel is slow.".to_owned()) }
    });
    let mut going = Box::pin(agent.start());
    assert!(settle(&mut going).is_none());
    let session_id = session();
    store.say(NotebookEvent::RuntimeRestart(RuntimeRestart { session_id }));
    assert!(settle(&mut going).is_none());
    assert_eq!(*begun.borrow(), ["a was stopped", "anew", "b ran"]);
    assert_eq!(store.state("b"), ExecutionState::Completed);
    let state = store.0.borrow();
    let session = state.base.state.session(&session()).unwrap();
    assert_eq!(session.state, SessionState::Ready);
}

#[test]
fn a_shutdown_cuts_off_what_runs_and_ends_the_session() {
    let store = Memory::default();
    store.assigned("a", "");
    let mut agent = agent(&store);
    let handle = agent.handle();
    agent.on_execution(|_| pending());
    let mut going = Box::pin(agent.start());
    assert!(settle(&mut going).is_none());
    handle.shutdown();
    assert_eq!(settle(&mut going), Some(Ok(Ending::Shutdown)));
    let state = store.0.borrow();
    let run = state.base.state.execution(&execution("a")).unwrap();
    assert_eq!(run.failed.as_ref().unwrap().kind, "runtime_lost");
    let session = state.base.state.session(&session()).unwrap();
    assert_eq!(session.ended, Some(Termination::Shutdown));
}

#[test]
fn an_agent_whose_lease_is_not_renewed_ends() {
    let store = Memory::default();
    store.0.borrow_mut().refuses_renewal = true;
    let mut agent = agent(&store);
    agent.on_execution(echo);
    let mut going = Box::pin(agent.start());
    let ended = settle(&mut going);
    assert_eq!(ended, Some(Ok(Ending::Lost("The session is over.".into()))));
}

#[test]
fn a_cell_that_asks_is_answered_by_the_store_or_told_that_nobody_can_be() {
    let store = Memory::default();
    store.assigned("a", "");
    run(&store, |context| async move {
        for password in [false, true] {
            let asked = context.input(Question {
                prompt: "q".into(),
                password,
            });
            match asked.await {
                Ok(answer) => context.stdout(&answer),
                Err(nobody) => context.stderr(&nobody.to_string()),
            }
        }
        Finished::Ok
    });
    let outputs = format!("{:?}", store.outputs("a"));
    assert!(
        outputs.contains("answer to q") && outputs.contains("Nobody can be asked"),
        "{outputs}"
    );
}

#[test]
fn an_agent_without_a_handler_does_not_start() {
    let store = Memory::default();
    let ended = settle(&mut Box::pin(agent(&store).start()));
    assert!(ended.unwrap().is_err());
    assert_eq!(store.events("runtime.started"), 0);
}
